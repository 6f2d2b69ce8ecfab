"""Request files for a long-running process (PRF-7): what was read is not read again until its file has changed.

Every file is checked each time, so that the caller gets exactly what a fresh read gives. Only a glance at a large
folder may be a moment old: looking at ten thousand files takes longer than drawing a page of them.
"""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING

from aiflow.adapters.files.file_marks import is_telling, mark_of
from aiflow.adapters.markdown_requests.scan import read_request
from aiflow.adapters.markdown_requests.source import FileSource
from aiflow.adapters.markdown_requests.store import MarkdownRequests, read_plain_file, separate_duplicates
from aiflow.domain.backlog.folder import SUFFIX, is_request_file
from aiflow.domain.request import InvalidRequest, Request

if TYPE_CHECKING:
    from pathlib import Path

    from aiflow.adapters.files.file_marks import Mark
    from aiflow.adapters.markdown_requests.store import Written

# A folder with no more files is always looked through: that takes a few milliseconds.
FEW_FILES = 1000
GLANCE_SECONDS = 1.0
# A folder's time is no finer than the kernel's tick: one that is younger may have changed again under the same time.
YOUNG_NS = 100_000_000

_Read = Request | InvalidRequest
_All = tuple[list[Request], list[InvalidRequest]]


class RememberedRequests(MarkdownRequests):
    """Reads the request files of one folder, those that changed since the last time; for any number of threads."""

    def __init__(self, root: Path | str, folder: str, written: Written | None = None) -> None:
        super().__init__(root, folder, written)
        self._turn = threading.Lock()
        self._known: dict[str, tuple[Mark, _Read]] = {}
        self._count = 0
        self._last: _All | None = None
        self._looked_at = 0.0
        self._folder_mark: Mark | None = None

    def load(self) -> _All:
        """Read every request file; a broken one is returned separately and stops nothing (REQ-4)."""
        with self._turn:
            return self._look()

    def glance(self) -> _All:
        """Return what the last look showed if that was a moment ago; a name that came or went since is seen at once.

        What was written in its place since then is not seen, in a folder of more than a few files.
        """
        with self._turn:
            known, age = self._last, time.monotonic() - self._looked_at
            if known is None or self._count <= FEW_FILES or age >= GLANCE_SECONDS:
                return self._look()
            if self._folder_mark is None or self._folder_mark != self._mark_of_folder():
                return self._look()
            return list(known[0]), list(known[1])

    def _look(self) -> _All:
        folder_fd = self._open_folder()
        try:
            self._looked_at, self._folder_mark = time.monotonic(), _settled(os.fstat(folder_fd))
            valid, broken = self._load(folder_fd)
        finally:
            os.close(folder_fd)
        return list(valid), list(broken)

    def _mark_of_folder(self) -> Mark | None:
        try:
            return mark_of(os.stat(self._folder))
        except OSError:  # looking at it says what is wrong
            return None

    def _load(self, folder_fd: int) -> _All:
        known, is_same = self._known, True
        found: dict[str, tuple[Mark, _Read]] = {}
        results: list[_Read] = []
        with os.scandir(folder_fd) as entries:
            for entry in entries:
                name = entry.name
                if not is_request_file(name):
                    continue
                status = _status(entry)
                before = known.get(name)
                if before is not None and status is not None and before[0] == mark_of(status):
                    found[name] = before
                    results.append(before[1])
                    continue
                is_same, is_kept = False, status is not None and is_telling(status)
                results.append(self._read_one(name, folder_fd))
                if status is not None and is_kept:
                    found[name] = (mark_of(status), results[-1])
        self._known = found
        if self._last is None or not is_same or len(results) != self._count:
            self._count = len(results)
            valid = [result for result in results if isinstance(result, Request)]
            broken = [result for result in results if isinstance(result, InvalidRequest)]
            self._last = separate_duplicates(valid, sorted(broken, key=lambda file: file.where))
        return self._last

    def _read_one(self, name: str, folder_fd: int) -> _Read:
        data = read_plain_file(name, folder_fd)
        if data and name.isprintable():
            return read_request(name.removesuffix(SUFFIX), f"{self._name}/{name}", data)
        return self._look_closer(name)


def _status(entry: os.DirEntry[str]) -> os.stat_result | None:
    try:
        return entry.stat(follow_symlinks=False)
    except OSError:  # it has just gone: reading it says so
        return None


def _settled(folder: os.stat_result) -> Mark | None:
    """Return a folder's mark if it will show every name that comes or goes; None of one that changed just now."""
    is_old = time.time_ns() - max(folder.st_mtime_ns, folder.st_ctime_ns) > YOUNG_NS
    return mark_of(folder) if is_old else None


class GlancedRequests(FileSource):
    """The requests of one checkout as pages look at them: what is listed may be a moment old, nothing else is."""

    def __init__(self, files: RememberedRequests) -> None:
        super().__init__(files)
        self._remembered = files

    def load_all(self) -> _All:
        """Return every request as it was a moment ago."""
        return self._remembered.glance()
