"""Processes that were written down (LCK-4, QUE-7): whether one still lives, as far as this machine can tell.

A process number means something only where it was given out: on one machine, since one boot, in one pid namespace. Two
containers may share a host name and a kernel, and never see each other's processes: what is not there is not dead.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

# D39's own example names the host so: a lock written that way is of this machine.
LOOPBACK_HOSTS = frozenset({"127.0.0.1", "::1", "localhost"})


class Liveness(StrEnum):
    """Whether a process lives, as far as this machine can tell."""

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
    """Tell whether a process lives: another boot, a gone pid, another start time or a zombie is dead (LCK-4).

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
