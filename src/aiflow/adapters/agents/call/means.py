"""What a call's program brings with it (AGT-4), as far as its prompt must say so before the agent runs into it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiflow.adapters.agents.call.fence import expanded
from aiflow.adapters.files.atomic_files import read_regular
from aiflow.domain.agents.answers import Role

if TYPE_CHECKING:
    from aiflow.adapters.agents.call.command import Launch, Surroundings
    from aiflow.domain.agents.call import AgentCall

# Where a project keeps what everybody who works on it should know; the first ones are for agents.
GUIDANCE = ("AGENTS.md", "CLAUDE.md", "CONTRIBUTING.md", ".github/CONTRIBUTING.md", "docs/CONTRIBUTING.md")
MAX_GUIDANCE = 1_000_000


@dataclass(frozen=True, slots=True)
class Means:
    """What an agent can do in a call, and what its program already gives or asks of it.

    With `has_schema` the program itself holds the answer to its form. `reads` are the project's instructions that it
    reads without instruction; `writable` the folders that the settings add; `is_confined` says that nothing else can be
    written; a reader that `has_commands` can run some, and write below its temporary folder if it `has_scratch`.
    """

    has_schema: bool = False
    reads: tuple[str, ...] = ()
    is_confined: bool = False
    has_caches: bool = False
    has_commands: bool = True
    has_scratch: bool = True
    has_network: bool = True
    writable: tuple[str, ...] = ()
    # What else its program keeps it from: a piece of the prompts.
    also: str = ""
    # How long the call may take, and how long it may be silent; in seconds.
    times: tuple[float, float] | None = None


def times_of(call: AgentCall, launch: Launch) -> tuple[float, float]:
    """Return how long a call may take, and how long it may be silent."""
    return launch.seconds_for(call), launch.idle_seconds


def added_paths(launch: Launch, around: Surroundings) -> tuple[str, ...]:
    """Return the folders that the settings add to what an agent may write."""
    return tuple(expanded(path, around) for path in launch.writable)


def may_command(role: Role, *, is_confined: bool) -> bool:
    """Return whether a role gets commands: a reviewer only where the kernel keeps them from writing, a planner none."""
    return role is Role.IMPLEMENTER or (role is Role.QA and is_confined)


def guidance_in(cwd: str, reads: tuple[str, ...]) -> tuple[str, ...]:
    """Name the project's instructions that an agent does not read automatically; of files with the same text, one."""
    known = {text for name in reads if (text := _content(cwd, name)) is not None}
    named = []
    for name in GUIDANCE:
        text = _content(cwd, name)
        is_imported = text is not None and any(f"@{name}".encode() in other for other in known)
        if text is None or not text.strip() or text in known or is_imported:
            continue
        known.add(text)
        named.append(name)
    return tuple(named)


def _content(cwd: str, name: str) -> bytes | None:
    """Return what is in a file, as far as it counts; None if there is none to read."""
    try:
        return read_regular(os.path.join(cwd, name), MAX_GUIDANCE)
    except OSError:
        return None
