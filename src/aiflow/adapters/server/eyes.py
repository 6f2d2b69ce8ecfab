"""Looking at a checkout's files (API-3): a few calls of `stat` where nothing happens, more only where something does.

What changes by a new name (a lock, a request that an editor saves) shows in its folder; what is written in its place
only in the file, so all files of the requests are looked at now and then, the less often the more there are.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from typing import TYPE_CHECKING

from aiflow.adapters.files.atomic_files import STATE_DIR, read_own
from aiflow.domain.backlog.folder import SUFFIX, is_request_file
from aiflow.domain.request import is_valid_id, normalize_id
from aiflow.domain.runs.log_names import log_of_file
from aiflow.domain.server.facts import HeldLock, Mark, Sight
from aiflow.errors import AiflowError
from aiflow.settings import FILE_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from aiflow.domain.lock import LockStatus

SCAN_SECONDS = 2.0
# All files of the requests are looked at for at most this share of the time.
SCAN_SHARE = 0.02
SURVEY_SECONDS = 1.0
# A folder's time is no finer than the kernel's tick: what changed in the same one is seen at the next look.
YOUNG_NS = 100_000_000
MOST_BYTES = 50_000_000
_RUN_ID = re.compile(r"RUN-[0-9a-z-]{1,40}", re.ASCII)


class CheckoutFiles:
    """The files of one checkout, looked at by one watcher."""

    def __init__(self, root: str, requests_dir: Callable[[], str], survey: Callable[[], Sequence[LockStatus]]) -> None:
        self._root = root
        self._state = f"{root}/{STATE_DIR}"
        self._marked = {
            "runs": f"{root}/runs",
            "settings": f"{root}/{FILE_NAME}",
            "sessions": f"{self._state}/server/sessions.json",
        }
        self._requests_dir = requests_dir
        self._survey = survey
        self._last = Sight()
        self._folder = ""
        self._lock_mark = self._request_mark = _GONE
        self._surveyed_at = self._scan_at = 0.0

    def look(self, named: Iterable[tuple[str, str]] = ()) -> Sight:
        """Return how it is now, of these runs, too; what cannot be looked at is as if it were not there."""
        last, locks = self._last, self._locks()
        # What was just released is read once more: its last words were written before that.
        held = ((lock.request_id or "", lock.run_id or "") for lock in (*last.locks, *locks))
        watched = [key for key in dict.fromkeys((*held, *named)) if is_valid_id(key[0]) and _RUN_ID.fullmatch(key[1])]
        self._last = Sight(
            requests=self._requests(),
            runs={key: stage for key in watched if (stage := self._stage(*key)) is not None},
            logs={(*key, number): size for key in watched for number, size in self._logs(*key)},
            locks=locks,
            auto=self._auto(),
            marks={name: _mark(path) for name, path in self._marked.items()},
        )
        return self._last

    def _locks(self) -> tuple[HeldLock, ...]:
        """Return the locks; whether their holders are running is checked again now and then, for no file says it."""
        mark, now = _mark(f"{self._state}/locks"), time.monotonic()
        is_due = bool(self._last.locks) and now - self._surveyed_at >= SURVEY_SECONDS
        if mark == self._lock_mark and not is_due:
            return self._last.locks
        self._lock_mark, self._surveyed_at = _settled(mark), now
        try:
            found = self._survey()
        except AiflowError:
            return self._last.locks
        return tuple(HeldLock(each.lock.request_id, each.lock.run_id, each.verdict.is_stale) for each in found)

    def _requests(self) -> Mapping[str, Mark]:
        with contextlib.suppress(AiflowError):  # a mistake in the settings: the folder is the one that it was
            self._folder = f"{self._root}/{self._requests_dir()}"
        mark, began = (*_mark(self._folder), hash(self._folder)), time.monotonic()
        known = self._last.requests
        if mark == self._request_mark and began < self._scan_at:
            return known
        self._request_mark = _settled(mark)
        found = _request_marks(self._folder)
        took = time.monotonic() - began
        self._scan_at = began + max(SCAN_SECONDS, took / SCAN_SHARE)
        return known if found == known else found

    def _stage(self, request_id: str, run_id: str) -> tuple[Mark, str | None] | None:
        path = f"{self._root}/runs/{request_id}/{run_id}/stage.json"
        return self._with_state(path, self._last.runs.get((request_id, run_id)))

    def _auto(self) -> tuple[Mark, str | None]:
        return self._with_state(f"{self._state}/auto.json", self._last.auto) or ((), None)

    @staticmethod
    def _with_state(path: str, known: tuple[Mark, str | None] | None) -> tuple[Mark, str | None] | None:
        """Return a file's mark and the state it says; read only if it is another one than the one that is known."""
        mark = _mark(path)
        if not mark or (known is not None and known[0] == mark):
            return known if mark else None
        try:
            told = json.loads(read_own(path, MOST_BYTES))
        except (OSError, ValueError, RecursionError):
            told = None
        state = told.get("state") if isinstance(told, dict) else None
        return mark, state if isinstance(state, str) else None

    def _logs(self, request_id: str, run_id: str) -> list[tuple[int, int]]:
        found = []
        with contextlib.suppress(OSError), os.scandir(f"{self._root}/runs/{request_id}/{run_id}/logs") as entries:
            for entry in entries:
                number = log_of_file(entry.name)
                if number is not None:
                    found.append((number, entry.stat(follow_symlinks=False).st_size))
        return sorted(found)


_GONE: Mark = (-1,)


def _mark(path: str) -> Mark:
    try:
        found = os.stat(path)
    except OSError:
        return ()
    return found.st_mtime_ns, found.st_ino, found.st_size, found.st_ctime_ns


def _settled(mark: Mark) -> Mark:
    """Return a folder's mark if nothing more can change under it, else one that no folder ever has."""
    return mark if mark and abs(time.time_ns() - mark[0]) > YOUNG_NS else _GONE


def _request_marks(folder: str) -> dict[str, Mark]:
    marks: dict[str, Mark] = {}
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if is_request_file(entry.name):
                with contextlib.suppress(OSError):
                    found = entry.stat(follow_symlinks=False)
                    marks[normalize_id(entry.name.removesuffix(SUFFIX))] = (found.st_mtime_ns, found.st_size)
    return marks
