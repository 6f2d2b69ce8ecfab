"""Request files for a process that stays (PRF-7): what was read is not read again until its file has changed.

Every file is looked at each time, so that whoever asks gets exactly what a fresh read gives.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from aiflow.adapters.files.file_marks import is_telling, mark_of
from aiflow.adapters.markdown_requests.scan import read_request
from aiflow.adapters.markdown_requests.store import MarkdownRequests, read_plain_file, separate_duplicates
from aiflow.domain.backlog.folder import SUFFIX, is_request_file
from aiflow.domain.request import InvalidRequest, Request

if TYPE_CHECKING:
    from pathlib import Path

    from aiflow.adapters.files.file_marks import Mark
    from aiflow.adapters.markdown_requests.store import Written

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

    def load(self) -> _All:
        """Read every request file; a broken one is told apart and stops nothing (REQ-4)."""
        with self._turn:
            folder_fd = self._open_folder()
            try:
                valid, broken = self._load(folder_fd)
            finally:
                os.close(folder_fd)
        return list(valid), list(broken)

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
