"""The journal (ERR-4): `.aiflow/activity/<n>.jsonl`, appended by every process, followed by offset.

An entry is one line, written at once under a guard file. A line torn by a crash is closed by the next writer and
skipped by readers. Full files are closed and a new one begun; only the newest are kept.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aiflow.adapters.atomic_files import STATE_DIR, guarded, state_dir, translated

if TYPE_CHECKING:
    from pathlib import Path

    from aiflow.domain.activity import Activity

FOLDER = "activity"
MAX_FILE_BYTES = 4_000_000
MAX_FILES = 50
_flush = getattr(os, "fdatasync", os.fsync)  # macOS has only the latter
_NAME = re.compile(r"(\d{8})\.jsonl")


@dataclass(frozen=True, slots=True, order=True)
class Cursor:
    """A place in the journal: the file's number and the byte in it. Text form `<number>:<offset>`."""

    number: int = 0
    offset: int = 0

    def __str__(self) -> str:
        return f"{self.number}:{self.offset}"

    @classmethod
    def parse(cls, text: str) -> Cursor:
        """Read a cursor's text form; raises ValueError if it is none."""
        number, offset = text.split(":")
        return cls(int(number), int(offset))


@dataclass(frozen=True, slots=True)
class Page:
    """What was read: entries, where to go on, how many damaged lines were passed, and whether entries are gone."""

    entries: tuple[dict[str, Any], ...]
    cursor: Cursor
    damaged: int = 0
    has_gap: bool = False


class ActivityLog:
    """Appends to and reads the journal of one checkout."""

    def __init__(self, root: Path, *, max_file_bytes: int = MAX_FILE_BYTES, max_files: int = MAX_FILES) -> None:
        self._root = root
        self._folder = root / STATE_DIR / FOLDER
        self._max_file_bytes = max_file_bytes
        self._max_files = max_files

    def append(self, activity: Activity) -> None:
        """Add one entry; it is on disk when this returns."""
        line = _encode(activity)
        with translated(self._folder):
            folder = state_dir(self._root, FOLDER)
            with guarded(folder / "guard"):
                self._append_line(line)

    def _append_line(self, line: bytes) -> None:
        numbers = self._numbers()
        number = numbers[-1] if numbers else 1
        if numbers and self._path(number).stat().st_size >= self._max_file_bytes:
            number += 1
            for old in numbers[: -(self._max_files - 1) or None]:
                self._path(old).unlink(missing_ok=True)
        fd = os.open(self._path(number), os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            size = os.fstat(fd).st_size
            is_torn = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
            _write_all(fd, b"\n" + line if is_torn else line, size)
            _flush(fd)
        finally:
            os.close(fd)

    def read(self, after: Cursor | None = None, limit: int = 1000) -> Page:
        """Read entries behind a cursor (from the start without one), oldest first, at most `limit`."""
        numbers = self._numbers()
        start = after or Cursor()
        has_gap = after is not None and bool(numbers) and start.number < numbers[0]
        entries: list[dict[str, Any]] = []
        damaged, cursor = 0, start
        for number in numbers:
            if number < start.number or len(entries) >= limit:
                continue
            offset = start.offset if number == start.number else 0
            cursor, spoiled = self._read_file(Cursor(number, offset), entries, limit)
            damaged += spoiled
        return Page(tuple(entries), cursor, damaged, has_gap)

    def end(self) -> Cursor:
        """Return the cursor behind the last entry, to follow only what comes."""
        numbers = self._numbers()
        return Cursor(numbers[-1], self._path(numbers[-1]).stat().st_size) if numbers else Cursor()

    def _read_file(self, at: Cursor, entries: list[dict[str, Any]], limit: int) -> tuple[Cursor, int]:
        """Read one file's complete lines; the last one without a line end is still being written."""
        offset, damaged = at.offset, 0
        try:
            file = self._path(at.number).open("rb")
        except FileNotFoundError:  # rotated away meanwhile
            return at, 0
        with file:
            file.seek(offset)
            for line in file:
                if not line.endswith(b"\n") or len(entries) >= limit:
                    break
                entry = _decode(line)
                if entry is None:
                    damaged += bool(line.strip())
                else:
                    entries.append({"cursor": str(Cursor(at.number, offset)), **entry})
                offset += len(line)
        return Cursor(at.number, offset), damaged

    def _numbers(self) -> list[int]:
        try:
            names = os.listdir(self._folder)
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(int(match[1]) for name in names if (match := _NAME.fullmatch(name)))

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:08d}.jsonl"


def _write_all(fd: int, data: bytes, size_before: int) -> None:
    """Write a line whole or not at all: on a full disk the part that went out is taken back."""
    try:
        written = os.write(fd, data)
        while written < len(data):
            written += os.write(fd, data[written:])
    except OSError:
        os.ftruncate(fd, size_before)
        raise


def _encode(activity: Activity) -> bytes:
    fields = {
        "at": activity.at.isoformat(),
        "kind": activity.kind.value,
        "actor": activity.actor.value,
        "request_id": activity.request_id,
        "run_id": activity.run_id,
        "reason_code": activity.reason_code,
        "pid": os.getpid(),
        "data": dict(activity.data),
    }
    kept = {name: value for name, value in fields.items() if value not in (None, {})}
    return json.dumps(kept, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace") + b"\n"


def _decode(line: bytes) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None
