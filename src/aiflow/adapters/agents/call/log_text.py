"""What the logs of all agents show alike (AGT-4): long outputs, paths of the worktree, and what a call used.

Pure.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiflow.domain.agents.usage import Usage

# Enough to see what went wrong; the agent itself saw all of it.
MAX_OUTPUT = 8_000


def shortened(text: str) -> str:
    """Return a text as a log shows it: of a long one the begin and the end."""
    if len(text) <= MAX_OUTPUT:
        return text
    left_out = len(text) - MAX_OUTPUT
    return f"{text[: MAX_OUTPUT // 2]}\n[… {left_out} characters left out …]\n{text[-MAX_OUTPUT // 2 :]}"


def inside(path: str, cwd: str) -> str:
    """Return a path as one reads it in the worktree; one of elsewhere stays whole."""
    return path.removeprefix(f"{cwd.rstrip(os.sep)}{os.sep}")


def used_tokens(usage: Usage) -> str:
    """Say what a call used."""
    return f"{usage.input_tokens} tokens read ({usage.cached_tokens} cached), {usage.output_tokens} written"
