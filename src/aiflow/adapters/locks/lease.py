"""A lock that we hold (LCK-3): renewed by a heartbeat, written under its guard, released only if still ours."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import threading
import time
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from aiflow.adapters.files.atomic_files import replace_file, translated
from aiflow.adapters.files.guard_files import guarded
from aiflow.adapters.locks.holder_life import can_keep, keep, let_go
from aiflow.domain.lock import LOCK_VERSION, Lock, heartbeat_seconds, may_write, renewed_until
from aiflow.errors import ConflictError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from aiflow.adapters.locks.lock_files import LockFiles

# A lock that was lost is to be noticed within about a second, however long the TTL is.
LOOK_SECONDS = 0.5


class LockGuard:
    """The permanent guard file of all locks; a thread that is inside may enter once more."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._threads = threading.RLock()
        self._fd: int | None = None

    @contextlib.contextmanager
    def entered(self) -> Iterator[int]:
        """Be alone with the locks for a moment; gives the open guard file."""
        with self._threads:
            if self._fd is not None:
                yield self._fd
                return
            with guarded(self._path) as fd:
                self._fd = fd
                try:
                    yield fd
                finally:
                    self._fd = None


@dataclass(frozen=True, slots=True)
class LockSite:
    """What all locks of one checkout share."""

    folder: str
    files: LockFiles
    guard: LockGuard
    ttl_seconds: float
    clock: Callable[[], datetime]

    @property
    def holders(self) -> str:
        """The file in which a lock's holder has a byte locked (`lock_life`)."""
        return f"{self.folder}/holders"

    def remove(self, name: str) -> None:
        """Remove a lock file for good, or what is in its place; only under the guard."""
        path = f"{self.folder}/{name}"
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)
        fd = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


class LockLease:
    """A lock that is ours, renewed by a thread beside us as long as that is allowed."""

    def __init__(self, site: LockSite, name: str, lock: Lock) -> None:
        self.lock = lock
        self._site = site
        self._name = name
        self._is_lost = False
        self._life: int | None = None
        self._released = threading.Event()
        self._heartbeat = threading.Thread(target=self._beat, name=f"heartbeat of {name}", daemon=True)
        self.allow(site.ttl_seconds)

    @property
    def is_lost(self) -> bool:
        """Whether somebody else has taken the lock: then nothing may be written any more."""
        return self._is_lost

    def live(self) -> None:
        """Show every container of this machine that we are running; before the lock is visible."""
        if can_keep():
            self._life = keep(self._site.holders, self.lock.fence or 0)

    def start(self) -> None:
        """Start the heartbeat."""
        self._heartbeat.start()

    def allow(self, seconds: float) -> None:
        """Let the heartbeat renew the lock for this long from now; after that it expires."""
        self._allowed_until = time.monotonic() + seconds

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the guard while something is written; raises LOCK_LOST if the lock is no longer ours."""
        with contextlib.ExitStack() as stack:
            with translated(f"{self._site.folder}/{self._name}"):
                is_ours = stack.enter_context(self._guarded())
            if not is_ours:
                self._is_lost = True
                raise ConflictError(reason_code="LOCK_LOST", request_id=self.lock.request_id, run_id=self.lock.run_id)
            yield

    def release(self) -> None:
        """Give the lock back if it is still ours; twice does no harm."""
        self._released.set()
        try:
            with translated(f"{self._site.folder}/{self._name}"), self._guarded() as is_ours:
                if is_ours:
                    self._site.remove(self._name)
        finally:
            life, self._life = self._life, None
            if life is not None:
                let_go(life, self.lock.fence or 0)
            if self._heartbeat.is_alive():
                self._heartbeat.join(timeout=1)  # not for ever: it may wait at the guard that our caller holds

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[bool]:
        """Hold the guard if the lock is ours, and return whether it is.

        Checks before, too: if `.aiflow` was cleaned away, entering the guard would create a part of it again.
        """
        if not self._is_ours():
            yield False
            return
        with self._site.guard.entered():
            yield self._is_ours()

    def _is_ours(self) -> bool:
        """Read whose lock it is now; a file that cannot be read raises OSError: then that is unknown."""
        try:
            current = self._site.files.load(self._name)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return may_write(current, self.lock.token or "")

    def _beat(self) -> None:
        """Look after the lock until it is given back or lost."""
        pause = min(LOOK_SECONDS, heartbeat_seconds(self._site.ttl_seconds))
        while not self._is_lost and not self._released.wait(pause):
            with contextlib.suppress(OSError):  # a full disk, too many open files: the next look may do better
                if not self._is_ours() or (self._is_due() and not self._renew()):
                    self._is_lost = not self._released.is_set()

    def _is_due(self) -> bool:
        """Return whether to renew: by the clock, so that a laptop renews as soon as it wakes or its clock is set."""
        if time.monotonic() > self._allowed_until or self.lock.expires_at is None:
            return False
        full = timedelta(seconds=self._site.ttl_seconds)
        left = self.lock.expires_at - self._site.clock()
        return left > full or full - left >= timedelta(seconds=heartbeat_seconds(self._site.ttl_seconds))

    def _renew(self) -> bool:
        """Write a later expiry; False if the lock is no longer ours."""
        with self._guarded() as is_ours:
            if is_ours:
                lock = replace(self.lock, expires_at=renewed_until(self._site.clock(), self._site.ttl_seconds))
                folder = Path(self._site.folder)
                replace_file(folder / self._name, to_bytes(lock), folder)
                self.lock = lock
            return is_ours


def to_bytes(lock: Lock) -> bytes:
    """Write a lock down: D39's fields in its order, then what makes the rest sound (LCK-1)."""
    fields = {
        "version": LOCK_VERSION,
        "lock_type": lock.lock_type.value,
        "request_id": lock.request_id,
        "run_id": lock.run_id,
        "pid": lock.pid,
        "host": lock.host,
        "created_at": lock.created_at.isoformat() if lock.created_at else None,
        "expires_at": lock.expires_at.isoformat() if lock.expires_at else None,
        "token": lock.token,
        "fence": lock.fence,
        "boot_id": lock.boot_id,
        "process_started_at": lock.process_started_at,
        "pid_namespace": lock.pid_namespace,
    }
    return f"{json.dumps(fields, ensure_ascii=False, indent=2)}\n".encode("utf-8", "surrogateescape")
