"""A codex thread as a session (AGT-4): its id, and what it had used, for codex counts a thread and not a call.

Pure. `01a1e371-c68c-7fe2-8fc6-738f2ad90db4+200,0,14` is a thread after 200 tokens in, none of them cached, and 14 out.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from aiflow.domain.agents.usage import Usage

# The id goes into an argument vector: nothing but an id may.
_NAME = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:\+(\d{1,15}),(\d{1,15}),(\d{1,15}))?")


class CodexThread(NamedTuple):
    """A thread, and what it has used in all its turns."""

    thread_id: str
    used: Usage


def named(session: CodexThread) -> str:
    """Write a session as the run keeps it."""
    used = session.used
    return f"{session.thread_id}+{used.input_tokens},{used.cached_tokens},{used.output_tokens}"


def session_of(name: str | None) -> CodexThread | None:
    """Read what the run kept; None if it is no thread of codex."""
    found = _NAME.fullmatch(name or "")
    if found is None:
        return None
    read, cached, written = (int(number or 0) for number in found.groups()[1:])
    return CodexThread(found[1], Usage(input_tokens=read, cached_tokens=cached, output_tokens=written))
