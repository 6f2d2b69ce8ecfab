"""Locks (LCK-1, 3, 4, 5): what a lock file says, and whether its holder still counts.

Whether its holder lives is found out elsewhere; this module only judges.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from aiflow.domain.process import Liveness, Process

LOCK_VERSION = "1.0"


class LockType(StrEnum):
    """The two kinds of lock (D39 §1)."""

    REQUEST = "request"
    QUEUE = "queue"


@dataclass(frozen=True, slots=True)
class Lock:
    """A lock file's content; what an older or damaged file lacks is None."""

    lock_type: LockType
    request_id: str | None = None
    run_id: str | None = None
    pid: int | None = None
    host: str | None = None
    created_at: datetime | None = None
    expires_at: datetime | None = None
    token: str | None = None
    fence: int | None = None
    boot_id: str | None = None
    process_started_at: float | None = None
    is_readable: bool = True
    written_at: datetime | None = None
    pid_namespace: str | None = None

    @property
    def holder(self) -> Process:
        """The process that holds it. No machine is named: locks are never on a network file system (LCK-9)."""
        return Process(self.host, self.pid, self.boot_id, self.pid_namespace, self.process_started_at)


class LockVerdict(StrEnum):
    """What may be done with a lock: nothing, or reclaim it, and why."""

    HELD = "held"
    HELD_EXPIRED = "held_expired"
    STALE_DEAD = "stale_dead"
    STALE_EXPIRED = "stale_expired"
    STALE_DAMAGED = "stale_damaged"

    @property
    def is_stale(self) -> bool:
        """Whether the lock may be reclaimed."""
        return self not in (LockVerdict.HELD, LockVerdict.HELD_EXPIRED)


@dataclass(frozen=True, slots=True)
class LockStatus:
    """A lock that exists, and what is known of its holder."""

    lock: Lock
    liveness: Liveness
    verdict: LockVerdict


def judge(lock: Lock, alive: Liveness, now: datetime, ttl_seconds: float) -> LockVerdict:
    """Decide whether a lock may be reclaimed (LCK-4, LCK-5).

    Dead: at once. Alive: never, also when expired. Unknown: once expired. Damaged, or of nobody knows whom and until
    when: once older than the TTL.
    """
    is_timeless = lock.expires_at is None and alive is Liveness.UNKNOWN
    if not lock.is_readable or is_timeless:
        written = lock.written_at
        is_old = written is not None and now - written > timedelta(seconds=ttl_seconds)
        return LockVerdict.STALE_DAMAGED if is_old else LockVerdict.HELD
    if alive is Liveness.DEAD:
        return LockVerdict.STALE_DEAD
    if lock.expires_at is None or lock.expires_at >= now:
        return LockVerdict.HELD
    return LockVerdict.HELD_EXPIRED if alive is Liveness.ALIVE else LockVerdict.STALE_EXPIRED


def may_write(current: Lock | None, token: str) -> bool:
    """Tell whether the holder of `token` still owns the lock, the only case in which it may write (LCK-3)."""
    return current is not None and current.token is not None and current.token == token


def renewed_until(now: datetime, ttl_seconds: float) -> datetime:
    """Return the new expiry of a lock renewed now."""
    return now + timedelta(seconds=ttl_seconds)


def heartbeat_seconds(ttl_seconds: float) -> float:
    """Return how often a holder renews: often enough that two missed beats do no harm."""
    return ttl_seconds / 4
