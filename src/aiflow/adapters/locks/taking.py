"""Taking, judging and reclaiming the locks of `.aiflow/locks/` (LCK-1, 2, 4, 5, 7).

A process that changes a lock file holds one permanent guard file for that moment: read, check, write, undisturbed.
The guard file's content is the last fence number that was given out.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import time
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from aiflow.adapters.files.atomic_files import STATE_DIR, create_file, state_dir, translated
from aiflow.adapters.files.guard_files import guarded
from aiflow.adapters.locks.holder_life import is_kept
from aiflow.adapters.locks.lease import LockGuard, LockLease, LockSite, to_bytes
from aiflow.adapters.locks.lock_files import FOLDER, QUEUE_NAME, TURN_NAME, LockFiles
from aiflow.adapters.processes.guard_notes import liveness_files
from aiflow.adapters.processes.leftovers import are_guards_at_work, end_leftovers
from aiflow.adapters.processes.machine import boot_id, host_name, pid_namespace
from aiflow.adapters.processes.table import facts_of
from aiflow.domain.lock import Lock, LockStatus, LockType, find_rival, judge, renewed_until
from aiflow.domain.process import LOOPBACK_HOSTS, Liveness, liveness
from aiflow.domain.request import normalize_id
from aiflow.errors import ConflictError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from aiflow.domain.request import RequestId

GUARD = "guard"
RECLAIM_GUARD = "reclaim.guard"
GUARDS_FOLDER = "guards"
_FENCE = re.compile(rb"[0-9]{20}\n")
_MAX_FENCE = 10**19


def _now() -> datetime:
    return datetime.now().astimezone()


class LockTaking(LockFiles):
    """The locks of one checkout, for the engine: nothing else takes them (LCK-7)."""

    def __init__(self, root: str, ttl_seconds: float, clock: Callable[[], datetime] = _now) -> None:
        super().__init__(root)
        self._root = root
        self._guards = f"{root}/{STATE_DIR}/{GUARDS_FOLDER}"
        self._site = LockSite(self._folder, self, LockGuard(f"{self._folder}/{GUARD}"), ttl_seconds, clock)

    def acquire_request(
        self, request_id: RequestId, run_id: str, *, beside_others: bool = False, turn: str | None = None
    ) -> LockLease | Lock:
        """Take a request's lock, or return the lock of the run that is active here, stale or not (LCK-7)."""
        request_id = normalize_id(request_id)
        wanted = Lock(LockType.REQUEST, request_id, run_id)
        lease = self._acquire(f"request.{request_id}.lock.json", wanted, beside_others=beside_others, turn=turn)
        if isinstance(lease, LockLease):
            self._end_before(lease, run_id)
        return lease

    def _end_before(self, lease: LockLease, run_id: str) -> None:
        """Wait for what a run's last holder still has at work: after a person broke its lock, it may be running."""
        try:
            if liveness_files(self._guards, run_id):
                end_leftovers(self._guards, run_id, None)
                self._require_ended(lease.lock, run_id)
        except BaseException:
            lease.release()
            raise

    def _require_ended(self, lock: Lock, run_id: str) -> None:
        """Raise RUN_IN_PROGRESS if an agent is still at work where we cannot end it: in another container, paused."""
        if are_guards_at_work(self._guards, run_id):
            raise ConflictError(reason_code="RUN_IN_PROGRESS", request_id=lock.request_id, run_id=run_id)

    def acquire_queue(self) -> LockLease | Lock:
        """Take the queue lock, or return its holder's lock."""
        return self._acquire(QUEUE_NAME, Lock(LockType.QUEUE))

    def acquire_turn(self) -> LockLease | Lock:
        """Take the turn of this checkout, or return the lock of the run that is or will be active."""
        return self._acquire(TURN_NAME, Lock(LockType.TURN))

    def survey(self) -> list[LockStatus]:
        """Judge every lock that exists; changes nothing."""
        return [self._status(lock) for _, lock in self.files()]

    def reclaim(self) -> list[LockStatus]:
        """Remove every stale lock, after what its holder's agent left running is ended; return those removed."""
        if not any(status.verdict.is_stale for status in self.survey()):
            return []
        # One at a time: who comes second would otherwise end the agent of the first one's next run as a leftover.
        with translated(self._folder), guarded(f"{self._folder}/{RECLAIM_GUARD}"):
            return [status for name, lock in self.files() if (status := self._reclaim(name, lock)) is not None]

    def break_lock(self, request_id: RequestId | None, kind: LockType = LockType.QUEUE) -> LockStatus | None:
        """Remove a lock of any holder, a request's or (None) the queue's or the turn; None if there is none."""
        wanted = (kind, None) if request_id is None else (LockType.REQUEST, normalize_id(request_id))
        if not any((lock.lock_type, lock.request_id) == wanted for _, lock in self.files()):
            return None
        with translated(self._folder), self._site.guard.entered():
            for name, lock in self.files():
                if (lock.lock_type, lock.request_id) == wanted:
                    status = self._status(lock)
                    self._site.remove(name)
                    return status
        return None

    @contextlib.contextmanager
    def standstill(self) -> Iterator[Mapping[RequestId, Lock]]:
        """For a moment, let no process take a lock and no holder write; gives the request locks that are held."""
        with contextlib.ExitStack() as stack:
            with translated(self._folder):
                state_dir(Path(self._root), FOLDER)
                stack.enter_context(self._site.guard.entered())
                held = self.held()[0]
            yield held

    def _acquire(
        self, name: str, wanted: Lock, *, beside_others: bool = False, turn: str | None = None
    ) -> LockLease | Lock:
        """Write a lock file unless there is one of its kind; its fence is on disk before it is seen."""
        path = f"{self._folder}/{name}"
        with translated(path):
            state_dir(Path(self._root), FOLDER)
            with self._site.guard.entered() as guard:
                held = [lock for _, lock in self.files()]
                rival = find_rival(wanted, held, beside_others=beside_others, turn=turn)
                if rival is not None:
                    return rival
                self._remove_torn()
                lock = self._filled(wanted, _next_fence(guard, held))
                return self._create(path, LockLease(self._site, name, lock))

    def _create(self, path: str, lease: LockLease) -> LockLease:
        try:
            lease.live()
            is_made = create_file(Path(path), to_bytes(lease.lock), Path(self._folder))
            if is_made:
                lease.start()
        except BaseException:  # whatever happens: leave no lock that is never released
            lease.release()
            raise
        if not is_made:  # something is there that is no file: a broken link
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        return lease

    def _filled(self, wanted: Lock, fence: int) -> Lock:
        now, pid = self._site.clock(), os.getpid()
        return replace(
            wanted,
            pid=pid,
            host=host_name(),
            created_at=now,
            expires_at=renewed_until(now, self._site.ttl_seconds),
            token=secrets.token_hex(16),
            fence=fence,
            boot_id=boot_id(),
            process_started_at=facts_of(pid).process_started_at,
            pid_namespace=pid_namespace(),
        )

    def _remove_torn(self) -> None:
        """Remove temporary files: they are made under the guard, which we hold, so their makers are gone."""
        for name in os.listdir(self._folder):
            if name.endswith(".tmp"):
                os.unlink(f"{self._folder}/{name}")

    def _status(self, lock: Lock) -> LockStatus:
        alive = self._liveness(lock)
        return LockStatus(lock, alive, judge(lock, alive, self._site.clock(), self._site.ttl_seconds))

    def _liveness(self, lock: Lock) -> Liveness:
        """Return whether a holder is running: by its process, or for another container by what the kernel shows."""
        alive = liveness(lock.holder, facts_of(lock.pid))
        if alive is not Liveness.UNKNOWN or lock.fence is None or not _is_in_container(lock):
            return alive
        kept = is_kept(self._site.holders, lock.fence)
        return alive if kept is None else Liveness.ALIVE if kept else Liveness.DEAD

    def _reclaim(self, name: str, lock: Lock) -> LockStatus | None:
        """Remove one lock if it is stale, and still the same and stale once its holder's leftovers are ended."""
        if not self._status(lock).verdict.is_stale:
            return None
        if lock.run_id is not None and (lock.host in {host_name(), *LOOPBACK_HOSTS} or _is_in_container(lock)):
            since = lock.process_started_at if lock.boot_id == boot_id() else None
            end_leftovers(self._guards, lock.run_id, since)
            if are_guards_at_work(self._guards, lock.run_id):
                return None  # its agent is still at work where we cannot end it: in another container, paused
        with self._site.guard.entered():
            current = dict(self.files()).get(name)
            if current is None or not _is_same(lock, current):
                return None
            status = self._status(current)
            if not status.verdict.is_stale:
                return None
            self._site.remove(name)
            return status


def _is_in_container(lock: Lock) -> bool:
    """Return whether a lock's holder is under our kernel, and shows that it is running (`lock_life`)."""
    return lock.pid_namespace is not None and lock.boot_id is not None and lock.boot_id == boot_id()


def _is_same(one: Lock, other: Lock) -> bool:
    """Return whether two looks saw the same holder's lock; without a token it may not have been written since."""
    return one == other if one.token is None else one.token == other.token


def _next_fence(guard: int, held: Iterable[Lock]) -> int:
    """Give out the next fence number and keep it in the guard file.

    Where that is new or damaged, the microseconds of the clock are greater than any number counted up before.
    """
    kept = os.pread(guard, 64, 0)
    last = int(kept) if _FENCE.fullmatch(kept) else time.time_ns() // 1000
    fence = max(last, *(lock.fence or 0 for lock in held if (lock.fence or 0) < _MAX_FENCE), 0) + 1
    os.pwrite(guard, b"%020d\n" % fence, 0)
    os.truncate(guard, 21)
    os.fsync(guard)
    return fence
