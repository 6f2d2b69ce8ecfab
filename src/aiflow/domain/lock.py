"""Locks (LCK-1, 3, 4, 5): what a lock file says, and whether its holder still counts.

Other modules find out whether its holder is running; this one only judges.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from aiflow.domain.process import Liveness, Process

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

LOCK_VERSION = "1.0"


class LockType(StrEnum):
    """The two kinds of lock of D39 §1, and the turn of a runner that is about to claim a task (QUE-5)."""

    REQUEST = "request"
    QUEUE = "queue"
    TURN = "turn"


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
    """Whether a lock may be reclaimed, and why."""

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

    Dead: at once. Alive: never, even if expired. Unknown: once expired. Damaged, or with unknown holder and end: once
    older than the TTL.
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


def find_rival(
    wanted: Lock, held: Iterable[Lock], *, beside_others: bool = False, turn: str | None = None
) -> Lock | None:
    """Return the lock that keeps another from being taken, None if none does (LCK-7, QUE-5).

    Only one request's lock or turn may be held in a checkout, unless it is taken `beside_others`. A process that holds
    the `turn`, by its token, is that one: only a lock of the same request, taken beside others, can be in its way.
    """
    here = tuple(held)
    is_ours = beside_others or any(lock.lock_type is LockType.TURN and may_write(lock, turn or "") for lock in here)
    kinds = {wanted.lock_type} if wanted.lock_type is LockType.QUEUE else {LockType.REQUEST, LockType.TURN}
    if wanted.lock_type is LockType.REQUEST and is_ours:
        rivals = [lock for lock in here if lock.lock_type is LockType.REQUEST and lock.request_id == wanted.request_id]
    else:
        rivals = [lock for lock in here if lock.lock_type in kinds]
    return min(rivals, key=_nearness(wanted), default=None)


def _nearness(wanted: Lock) -> Callable[[Lock], tuple[bool, bool]]:
    """Order rivals: the very request's first, then another run's, then one that is about to start."""
    return lambda lock: (lock.request_id != wanted.request_id, lock.lock_type is LockType.TURN)


def may_write(current: Lock | None, token: str) -> bool:
    """Return whether the holder of `token` still owns the lock, the only case in which it may write (LCK-3)."""
    return current is not None and current.token is not None and current.token == token


def renewed_until(now: datetime, ttl_seconds: float) -> datetime:
    """Return the new expiry of a lock renewed now."""
    return now + timedelta(seconds=ttl_seconds)


def heartbeat_seconds(ttl_seconds: float) -> float:
    """Return how often a holder renews: often enough that two missed beats do no harm."""
    return ttl_seconds / 4
