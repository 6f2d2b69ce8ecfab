"""Reading the lock files of `.aiflow/locks/` (LCK-1): looking never changes, makes or reclaims one."""

from __future__ import annotations

import json
import os
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from aiflow.adapters.atomic_files import STATE_DIR, read_regular
from aiflow.domain.request import RequestId, normalize_id, parse_instant
from aiflow.errors import as_problem

if TYPE_CHECKING:
    from pathlib import Path

    from aiflow.domain.lock import Lock, LockType

FOLDER = "locks"
QUEUE_NAME = "queue.lock.json"
MAX_LOCK_BYTES = 65_536
_REQUEST_NAME = re.compile(r"request\.(.+)\.lock\.json", re.DOTALL)


class LockFiles:
    """The locks of one checkout."""

    def __init__(self, root: Path | str) -> None:
        self._folder = f"{root}/{STATE_DIR}/{FOLDER}"

    def held(self) -> tuple[dict[RequestId, Lock], Lock | None]:
        """Return the request locks by request, and the queue lock; a file that exists is a lock that is held."""
        requests: dict[RequestId, Lock] = {}
        queue: Lock | None = None
        try:
            names = os.listdir(self._folder)
        except (FileNotFoundError, NotADirectoryError):
            return requests, queue
        except OSError as error:  # who may not look must not guess that nothing is locked
            raise as_problem(error, self._folder) from error
        names = [name for name in names if name.endswith(".lock.json")]
        if not names:
            return requests, queue
        from aiflow.domain.lock import LockType

        for name in names:
            if name == QUEUE_NAME:
                queue = self._read(name, LockType.QUEUE, None)
            elif match := _REQUEST_NAME.fullmatch(name):
                request_id = normalize_id(match[1])
                lock = self._read(name, LockType.REQUEST, request_id)
                if lock is not None:
                    requests[request_id] = lock
        return requests, queue

    def _read(self, name: str, lock_type: LockType, request_id: str | None) -> Lock | None:
        """Read one lock file; None if it was released meanwhile, an unreadable lock if it is damaged."""
        from aiflow.domain.lock import Lock

        try:
            data = read_regular(f"{self._folder}/{name}", MAX_LOCK_BYTES)
            written_at = datetime.fromtimestamp(os.stat(f"{self._folder}/{name}").st_mtime, UTC)
        except FileNotFoundError:
            return None
        except OSError:
            return Lock(lock_type, request_id, is_readable=False)
        try:
            fields = json.loads(data)
        except (ValueError, RecursionError):
            fields = None
        if not isinstance(fields, dict):
            return Lock(lock_type, request_id, is_readable=False, written_at=written_at)
        return _parse(fields, lock_type, request_id, written_at)


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
    )


def _as_float(value: object) -> float | None:
    try:
        return float(value) if isinstance(value, (int, float)) else None
    except OverflowError:
        return None
