"""Taking, keeping and judging locks in memory (LCK): the same rules as with files, and the guard in one piece."""

from __future__ import annotations

import contextlib
import secrets
import threading
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from aiflow.domain.lock import (
    Lock,
    LockStatus,
    LockType,
    find_rival,
    heartbeat_seconds,
    judge,
    may_write,
    renewed_until,
)
from aiflow.domain.process import Liveness
from aiflow.domain.request import RequestId, normalize_id
from aiflow.errors import ConflictError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from aiflow.domain.process import Process
    from aiflow.ports import Time

LOOK_SECONDS = 0.5
# What the queue's lock and the turn are found under; no request has such a name.
QUEUE, TURN = ".queue", ".turn"


def _end_nothing(_run_id: str) -> None:
    """End what a run's last holder left running: in memory nothing outlives its process."""


@dataclass
class MemoryLockTable:
    """The locks of one checkout, by request; the queue's and the turn have names that no request has.

    `guard` lets one process at a time be alone with them, `life` checks whether each holder is running,
    `end_leftovers` ends what a run's last holder still has at work.
    """

    locks: dict[str, Lock] = field(default_factory=dict)
    fence: int = 0
    guard: contextlib.AbstractContextManager[object] = field(default_factory=threading.RLock)
    life: Callable[[Process], Liveness] = lambda _holder: Liveness.ALIVE
    end_leftovers: Callable[[str], None] = _end_nothing

    def held(self) -> tuple[dict[RequestId, Lock], Lock | None]:
        """Return the request locks by request, and the queue lock."""
        names = sorted(name for name in self.locks if name not in (QUEUE, TURN))
        return {RequestId(name): self.locks[name] for name in names}, self.locks.get(QUEUE)


class MemoryLocking:
    """The locks of one checkout, as one process takes them."""

    def __init__(self, table: MemoryLockTable, me: Process, time: Time, ttl_seconds: float) -> None:
        self._table = table
        self._me = me
        self._time = time
        self._ttl_seconds = ttl_seconds

    def held(self) -> tuple[dict[RequestId, Lock], Lock | None]:
        """Return the request locks by request, and the queue lock."""
        return self._table.held()

    def holder(self) -> Lock | None:
        """Return the lock of whatever run is in progress in this checkout."""
        return next(iter(self.held()[0].values()), None)

    def holder_of(self, request_id: RequestId) -> Lock | None:
        """Return a request's lock."""
        return self.held()[0].get(request_id)

    def queue_holder(self) -> Lock | None:
        """Return the queue lock."""
        return self.held()[1]

    def turn_holder(self) -> Lock | None:
        """Return the turn of a runner that is about to claim a task."""
        return self._table.locks.get(TURN)

    def acquire_request(
        self, request_id: RequestId, run_id: str, *, beside_others: bool = False, turn: str | None = None
    ) -> MemoryLease | Lock:
        """Take a request's lock, or return the lock of who runs here, or (beside others) of who runs that."""
        name = normalize_id(request_id)
        lease = self._acquire(name, Lock(LockType.REQUEST, name, run_id), beside_others=beside_others, turn=turn)
        if isinstance(lease, MemoryLease):
            self._table.end_leftovers(run_id)
        return lease

    def acquire_queue(self) -> MemoryLease | Lock:
        """Take the queue lock, or return its holder's lock."""
        return self._acquire(QUEUE, Lock(LockType.QUEUE))

    def acquire_turn(self) -> MemoryLease | Lock:
        """Take the turn of this checkout, or return the lock of the process that runs or is about to."""
        return self._acquire(TURN, Lock(LockType.TURN))

    def survey(self) -> list[LockStatus]:
        """Judge every lock that exists; changes nothing."""
        return [self._status(lock) for _, lock in sorted(self._table.locks.items())]

    def reclaim(self) -> list[LockStatus]:
        """Remove every stale lock, after what its holder's agent left running is ended; return those removed."""
        with self._table.guard:
            stale = [status for status in self.survey() if status.verdict.is_stale]
            for status in stale:
                if status.lock.run_id is not None:
                    self._table.end_leftovers(status.lock.run_id)
                del self._table.locks[_name_of(status.lock)]
            return stale

    def break_lock(self, request_id: RequestId | None, kind: LockType = LockType.QUEUE) -> LockStatus | None:
        """Remove a lock, any holder's: a request's or (None) the queue's or the turn; None if there is none."""
        name = normalize_id(request_id) if request_id is not None else _name_of(Lock(kind))
        with self._table.guard:
            lock = self._table.locks.pop(name, None)
            return self._status(lock) if lock is not None else None

    @contextlib.contextmanager
    def standstill(self) -> Iterator[Mapping[RequestId, Lock]]:
        """Let no process take a lock, nor a holder write, for a moment; gives the request locks that are held."""
        with self._table.guard:
            yield self.held()[0]

    def _acquire(
        self, name: str, wanted: Lock, *, beside_others: bool = False, turn: str | None = None
    ) -> MemoryLease | Lock:
        with self._table.guard:
            rival = find_rival(wanted, self._table.locks.values(), beside_others=beside_others, turn=turn)
            if rival is not None:
                return rival
            self._table.fence += 1
            lock = self._filled(wanted)
            self._table.locks[name] = lock
            lease = MemoryLease(self._table, lock, self._time, self._ttl_seconds)
        lease.start()
        return lease

    def _filled(self, wanted: Lock) -> Lock:
        now, me = self._time.now(), self._me
        return replace(
            wanted,
            pid=me.pid,
            host=me.host,
            created_at=now,
            expires_at=renewed_until(now, self._ttl_seconds),
            token=secrets.token_hex(16),
            fence=self._table.fence,
            boot_id=me.boot_id,
            process_started_at=me.started_at,
            written_at=now,
            pid_namespace=me.pid_namespace,
        )

    def _status(self, lock: Lock) -> LockStatus:
        alive = self._table.life(lock.holder)
        return LockStatus(lock, alive, judge(lock, alive, self._time.now(), self._ttl_seconds))


class MemoryLease:
    """A lock that is ours, looked after beside the work as long as that is allowed."""

    def __init__(self, table: MemoryLockTable, lock: Lock, time: Time, ttl_seconds: float) -> None:
        self.lock = lock
        self._table = table
        self._time = time
        self._ttl_seconds = ttl_seconds
        self._pause = min(LOOK_SECONDS, heartbeat_seconds(ttl_seconds))
        self._name = _name_of(lock)
        self._beside = time.beside(f"heartbeat of {self._name}", self._look)
        self._is_lost = False
        self._is_released = False
        self.allow(ttl_seconds)

    @property
    def is_lost(self) -> bool:
        """Whether somebody else has taken the lock: then nothing may be written any more."""
        return self._is_lost

    def start(self) -> None:
        """Start the heartbeat."""
        self._beside.start(self._pause)

    def allow(self, seconds: float) -> None:
        """Let the heartbeat renew the lock for this long from now; after that it expires."""
        self._allowed_until = self._time.monotonic() + seconds

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the guard while something is written; raises LOCK_LOST if the lock is no longer ours."""
        with self._table.guard:
            if not self._is_ours():
                self._is_lost = True
                raise ConflictError(reason_code="LOCK_LOST", request_id=self.lock.request_id, run_id=self.lock.run_id)
            yield

    def release(self) -> None:
        """Give the lock back if it is still ours; twice does no harm."""
        self._is_released = True
        self._beside.close()
        with self._table.guard:
            if self._is_ours():
                del self._table.locks[self._name]

    def _is_ours(self) -> bool:
        return may_write(self._table.locks.get(self._name), self.lock.token or "")

    def _look(self) -> float:
        """Look after the lock: see whether it is lost, renew it where that is due."""
        if not self._is_released and not self._is_lost:
            self._is_lost = not self._is_ours()
            if not self._is_lost and self._is_due():
                lock = replace(self.lock, expires_at=renewed_until(self._time.now(), self._ttl_seconds))
                self.lock = self._table.locks[self._name] = lock
        return self._pause

    def _is_due(self) -> bool:
        if self._time.monotonic() > self._allowed_until or self.lock.expires_at is None:
            return False
        full = timedelta(seconds=self._ttl_seconds)
        left = self.lock.expires_at - self._time.now()
        return left > full or full - left >= timedelta(seconds=heartbeat_seconds(self._ttl_seconds))


def _name_of(lock: Lock) -> str:
    """Return what a lock is found under."""
    return lock.request_id or (TURN if lock.lock_type is LockType.TURN else QUEUE)
