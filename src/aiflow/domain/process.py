"""Processes that were recorded (LCK-4, QUE-7), and those that a lost agent left running (AGT-5).

A process number means something only where it was given out: on one machine, since one boot, in one pid namespace. Two
containers may share a host name and a kernel, and never see each other's processes: one not found may still run.

An agent's processes carry its run's mark. One that empties its environment is known by where it works and since when;
a person's shell or editor in the same folder is left alone, and so is every other program of a person: agents
have no terminal, and a person's programs have one, or variables of a session that no agent is given.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

# What adopts orphans; in a container it may well be a person's shell.
INIT = 1
# What a session of a person has in its environment, on a screen, over ssh, in an editor or as a service of theirs; no
# agent gets any of it automatically.
_PERSONS = "DISPLAY WAYLAND_DISPLAY SSH_CONNECTION SSH_TTY TERM_PROGRAM INSIDE_EMACS INVOCATION_ID XPC_SERVICE_NAME"
PERSONS_VARIABLES = frozenset(_PERSONS.split())
AGENTS_TERMINAL = "dumb"
# D39's own example names the host so: a lock written that way is of this machine.
LOOPBACK_HOSTS = frozenset({"127.0.0.1", "::1", "localhost"})


class Liveness(StrEnum):
    """Whether a process is running, as far as this machine can tell."""

    ALIVE = "alive"
    DEAD = "dead"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Process:
    """One process as it was written down; what an older record lacks is None, and is not compared.

    `machine_id` is there where machines with the same name may meet: in a store that they share.
    """

    host: str | None
    pid: int | None
    boot_id: str | None = None
    pid_namespace: str | None = None
    started_at: float | None = None
    machine_id: str | None = None


@dataclass(frozen=True, slots=True)
class OwnerFacts:
    """What this machine knows about itself, and about the process that has a number now.

    A hidden one is there, and somebody else's: more than that we may not know.
    """

    host: str
    boot_id: str | None
    process_started_at: float | None
    is_zombie: bool = False
    is_hidden: bool = False
    pid_namespace: str | None = None
    machine_id: str | None = None


def liveness(process: Process, facts: OwnerFacts) -> Liveness:
    """Return whether a process is running: with another boot or start time, or as a zombie, it is not (LCK-4).

    Of another machine's, or of one in another pid namespace, nothing is known.
    """
    if process.host is None or process.pid is None or process.host not in {facts.host, *LOOPBACK_HOSTS}:
        return Liveness.UNKNOWN
    if _differ(process.boot_id, facts.boot_id):
        return Liveness.UNKNOWN if _differ(process.machine_id, facts.machine_id) else Liveness.DEAD
    if _differ(process.pid_namespace, facts.pid_namespace) or facts.is_hidden:
        return Liveness.UNKNOWN
    if facts.process_started_at is None or facts.is_zombie:
        return Liveness.DEAD
    if process.started_at is not None and process.started_at != facts.process_started_at:
        return Liveness.DEAD
    return Liveness.ALIVE


def _differ(one: str | None, other: str | None) -> bool:
    return bool(one and other and one != other)


@dataclass(frozen=True, slots=True)
class Seen:
    """A process as the search for what a call left behind sees it.

    `is_inside`: it works inside the run's worktree. `is_persons`: it is another user's, or its
    environment is that of a person's session.
    """

    parent: int
    session: int
    started_at: float
    has_terminal: bool = False
    is_inside: bool = False
    is_marked: bool = False
    is_persons: bool = False


def own_folder(cwd: str, run_id: str) -> str | None:
    """Return the worktree of a run that a folder is, or is inside of; None if it is not in one of the run's own."""
    parts = cwd.split("/")
    for end, part in enumerate(parts, 1):
        if part == run_id or part.startswith(f"{run_id}."):
            return "/".join(parts[:end])
    return None


def is_persons(environ: Mapping[str, str]) -> bool:
    """Return whether an environment is that of a person's session."""
    terminal = environ.get("TERM", AGENTS_TERMINAL)
    return terminal != AGENTS_TERMINAL or not PERSONS_VARIABLES.isdisjoint(environ)


def left_by_call(seen: Mapping[int, Seen], since: float, spared: Collection[int] = ()) -> set[int]:
    """Return what a call that began at `since` left running: what is marked or works in its worktree, and its kin.

    Kin is a descendant of a found one, or shares with it a session that has no other member. Nothing older than the
    call, with a terminal or below one, or of a person is found.
    """
    may_be = {
        pid
        for pid, one in seen.items()
        if one.started_at >= since and pid not in spared and not one.is_persons and not _is_at_terminal(pid, seen)
    }
    found = {pid for pid in may_be if seen[pid].is_marked or seen[pid].is_inside}
    shared = {one.session for pid, one in seen.items() if pid not in may_be}
    while True:
        sessions = {seen[pid].session for pid in found} - shared
        kin = {pid for pid in may_be - found if seen[pid].parent in found or seen[pid].session in sessions}
        if not kin:
            return found
        found |= kin


def _is_at_terminal(pid: int, seen: Mapping[int, Seen]) -> bool:
    """Return whether a process has a terminal, or an ancestor has: a person's shell starts more than it shows."""
    passed: set[int] = set()
    while pid in seen and pid != INIT and pid not in passed:
        if seen[pid].has_terminal:
            return True
        passed.add(pid)
        pid = seen[pid].parent
    return False
