"""Reading the lock files of `.aiflow/locks/` (LCK-1): looking never changes, makes or reclaims one.

Taking them is `lock_taking`: this module is on the way of every `aiflow next`.
"""

from __future__ import annotations

import errno
import json
import os
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from aiflow.adapters.files.atomic_files import STATE_DIR, read_own
from aiflow.domain.request import RequestId, normalize_id, parse_instant
from aiflow.errors import as_problem

if TYPE_CHECKING:
    from pathlib import Path

    from aiflow.domain.lock import Lock, LockType

FOLDER = "locks"
QUEUE_NAME = "queue.lock.json"
TURN_NAME = "turn.lock.json"
MAX_LOCK_BYTES = 65_536
# A folder, a pipe or a socket, a huge file, a link.
_NO_LOCK_FILE = (errno.EISDIR, errno.EINVAL, errno.ENXIO, errno.EFBIG, errno.ELOOP)
_REQUEST_NAME = re.compile(r"request\.(.+)\.lock\.json", re.DOTALL)


class LockFiles:
    """The locks of one checkout."""

    def __init__(self, root: Path | str) -> None:
        self._folder = f"{root}/{STATE_DIR}/{FOLDER}"

    def held(self) -> tuple[dict[RequestId, Lock], Lock | None]:
        """Return the request locks by request, and the queue lock; a file that exists is a lock that is held."""
        requests: dict[RequestId, Lock] = {}
        queue: Lock | None = None
        for name, lock in self.files():
            if name == QUEUE_NAME:
                queue = lock
            elif lock.request_id is not None:
                requests[RequestId(lock.request_id)] = lock
        return requests, queue

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
        return next((lock for name, lock in self.files() if name == TURN_NAME), None)

    def files(self) -> list[tuple[str, Lock]]:
        """Return every lock with the name of its file."""
        try:
            names = os.listdir(self._folder)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:  # who may not look must not guess that nothing is locked
            raise as_problem(error, self._folder) from error
        names = [name for name in names if name in (QUEUE_NAME, TURN_NAME) or _REQUEST_NAME.fullmatch(name)]
        locks = [(name, self._read(name)) for name in sorted(names)]
        return [(name, lock) for name, lock in locks if lock is not None]

    def load(self, name: str) -> Lock:
        """Read one lock file: a damaged one is an unreadable lock, one that cannot be read an OSError."""
        from aiflow.domain.lock import Lock

        data = read_own(f"{self._folder}/{name}", MAX_LOCK_BYTES)
        written_at = self._written_at(name)
        try:
            fields = json.loads(data)
        except (ValueError, RecursionError):
            fields = None
        if not isinstance(fields, dict):
            return Lock(*_owner(name), is_readable=False, written_at=written_at)
        return _parse(fields, *_owner(name), written_at)

    def _read(self, name: str) -> Lock | None:
        """Read one lock file; None if it was released meanwhile, an unreadable lock whatever else is wrong."""
        from aiflow.domain.lock import Lock

        try:
            return self.load(name)
        except FileNotFoundError:
            return None
        except OSError as error:
            # A file that is not ours is damage, judged by its age; if we may only not read it, we must not guess.
            written_at = self._written_at(name) if error.errno in _NO_LOCK_FILE else None
            return Lock(*_owner(name), is_readable=False, written_at=written_at)

    def _written_at(self, name: str) -> datetime:
        return datetime.fromtimestamp(os.lstat(f"{self._folder}/{name}").st_mtime, UTC)


def _owner(name: str) -> tuple[LockType, str | None]:
    """Return, from a lock file's name, what is locked."""
    from aiflow.domain.lock import LockType

    match = _REQUEST_NAME.fullmatch(name)
    if match:
        return LockType.REQUEST, normalize_id(match[1])
    return (LockType.TURN if name == TURN_NAME else LockType.QUEUE), None


def _parse(fields: dict[str, Any], lock_type: LockType, request_id: str | None, written_at: datetime) -> Lock:
    """Take what the file says, as far as it makes sense; the file name decides whose lock it is."""
    from aiflow.domain.lock import Lock

    def text(name: str) -> str | None:
        value = fields.get(name)
        return value if isinstance(value, str) else None

    def number(name: str) -> int | None:
        value = fields.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    started = fields.get("process_started_at")
    return Lock(
        lock_type=lock_type,
        request_id=request_id,
        run_id=text("run_id"),
        pid=number("pid"),
        host=text("host"),
        created_at=parse_instant(text("created_at") or ""),
        expires_at=parse_instant(text("expires_at") or ""),
        token=text("token"),
        fence=number("fence"),
        boot_id=text("boot_id"),
        process_started_at=_as_float(started),
        written_at=written_at,
        pid_namespace=text("pid_namespace"),
    )


def _as_float(value: object) -> float | None:
    try:
        return float(value) if isinstance(value, (int, float)) else None
    except OverflowError:
        return None
