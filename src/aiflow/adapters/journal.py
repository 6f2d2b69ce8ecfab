"""The journal (ERR-4): `.aiflow/activity/<n>.jsonl`, appended by every process, followed by offset.

An entry is one line, written at once under a guard file. A line torn by a crash is closed by the next writer and
skipped by readers. Full files are closed and a new one begun; only the newest are kept.
"""

from __future__ import annotations

import json
import os
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

from aiflow.adapters.files.atomic_files import STATE_DIR, state_dir, translated
from aiflow.adapters.files.guard_files import guarded
from aiflow.domain.activity import entry_fields
from aiflow.errors import BadInputError
from aiflow.ports.journal import JournalEntry, JournalPage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from aiflow.domain.activity import Activity

FOLDER = "activity"
MAX_FILE_BYTES = 4_000_000
MAX_FILES = 50
POLL_SECONDS = 0.2
# So much of a file is read at once from its end.
BLOCK_BYTES = 65_536
_flush = getattr(os, "fdatasync", os.fsync)  # macOS has only the latter
_NAME = re.compile(r"(\d{8})\.jsonl")
_CURSOR = re.compile(r"(\d{1,8}):(\d{1,12})", re.ASCII)


@dataclass(frozen=True, slots=True, order=True)
class Cursor:
    """A place in the journal: the file's number and the byte in it. Text form `<number>:<offset>`."""

    number: int = 0
    offset: int = 0

    def __str__(self) -> str:
        return f"{self.number}:{self.offset}"

    @classmethod
    def parse(cls, text: str) -> Cursor:
        """Read a cursor's text form, or refuse what is none."""
        match = _CURSOR.fullmatch(text)
        if match is None:
            raise BadInputError(detail=f"cursor: {text[:40]!r}")
        return cls(int(match[1]), int(match[2]))


class ActivityLog:
    """Appends to and reads the journal of one checkout."""

    def __init__(
        self,
        root: Path,
        *,
        person: str = "",
        max_file_bytes: int = MAX_FILE_BYTES,
        max_files: int = MAX_FILES,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._root = root
        self._folder = root / STATE_DIR / FOLDER
        self._person = person
        self._max_file_bytes = max_file_bytes
        self._max_files = max_files
        self._wait = wait

    def append(self, activity: Activity) -> None:
        """Add one entry; it is on disk when this returns."""
        line = _encode(activity, self._person)
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
        fd = os.open(self._path(number), os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        try:
            size = os.fstat(fd).st_size
            is_torn = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
            _write_all(fd, b"\n" + line if is_torn else line, size)
            _flush(fd)
        finally:
            os.close(fd)

    def read(self, after: str | None = None, limit: int = 1000) -> JournalPage:
        """Read what follows a cursor (from the start without one), oldest first, at most `limit` entries."""
        with translated(self._folder):
            numbers = self._numbers()
            cursor, has_gap = self._place(after, numbers)
            entries: list[JournalEntry] = []
            damaged = 0
            for number in (each for each in numbers if each >= cursor.number):
                for start, line in self._lines(number, cursor.offset if number == cursor.number else 0):
                    if len(entries) >= limit:
                        return JournalPage(tuple(entries), str(cursor), damaged, has_gap)
                    if not line.endswith(b"\n"):  # in the newest file still being written, in another never finished
                        damaged += number != numbers[-1]
                        break
                    cursor = Cursor(number, start + len(line))
                    damaged += _take(line, cursor, entries)
        return JournalPage(tuple(entries), str(cursor), damaged, has_gap)

    def read_back(self, before: str | None = None, limit: int = 1000) -> JournalPage:
        """Read what is before a cursor (from the end without one), newest first, at most `limit` entries."""
        with translated(self._folder):
            numbers = self._numbers()
            cursor, has_gap = self._place(str(self._end(numbers)) if before is None else before, numbers)
            entries: list[JournalEntry] = []
            damaged = 0
            for number in sorted((each for each in numbers if each <= cursor.number), reverse=True):
                until = cursor.offset if number == cursor.number else None
                for start, line in self._lines_back(number, until):
                    if len(entries) >= limit:
                        return JournalPage(tuple(entries), str(cursor), damaged, has_gap)
                    damaged += _take(line, Cursor(number, start + len(line)), entries)
                    cursor = Cursor(number, start)
        return JournalPage(tuple(entries), str(cursor), damaged, has_gap)

    def end(self) -> str:
        """Return the cursor after the last entry, to follow only what comes."""
        with translated(self._folder):
            return str(self._end(self._numbers()))

    def follow(self, after: str | None, should_stop: Callable[[], bool]) -> Iterator[JournalEntry]:
        """Yield what follows a cursor (without one only what comes), and wait for more until asked to stop."""
        cursor = self.end() if after is None else after
        while not should_stop():
            page = self.read(cursor)
            yield from page.entries
            if page.cursor == cursor:
                self._wait(POLL_SECONDS)
            cursor = page.cursor

    def _place(self, text: str | None, numbers: list[int]) -> tuple[Cursor, bool]:
        """Return where a cursor leads, and whether what was there is gone; then it is the next place that is left."""
        cursor = Cursor() if text is None else Cursor.parse(text)
        if cursor.number == 0:  # before everything; the first file that ever was is number 1
            return Cursor(), text is not None and bool(numbers) and numbers[0] > 1
        if cursor.number not in numbers:
            # A number that is yet to come is of a journal that somebody deleted: another one has begun.
            left = [number for number in numbers if number > cursor.number] or numbers
            return (Cursor(left[0]) if left else Cursor()), True
        return (cursor, False) if self._is_boundary(cursor) else (Cursor(cursor.number), True)

    def _is_boundary(self, cursor: Cursor) -> bool:
        """Return whether a line begins at a cursor; none does in a file that was replaced by a shorter one."""
        if cursor.offset == 0:
            return True
        try:
            with self._path(cursor.number).open("rb") as file:
                file.seek(cursor.offset - 1)
                return file.read(1) == b"\n"
        except FileNotFoundError:
            return False

    def _end(self, numbers: list[int]) -> Cursor:
        if not numbers:
            return Cursor()
        try:
            with self._path(numbers[-1]).open("rb") as file:
                return Cursor(numbers[-1], _end_of_lines(file))
        except FileNotFoundError:  # deleted meanwhile
            return Cursor(numbers[-1])

    def _lines(self, number: int, offset: int = 0) -> Iterator[tuple[int, bytes]]:
        """Yield the lines of one file with their places; the last may have no end yet."""
        try:
            file = self._path(number).open("rb")
        except FileNotFoundError:  # rotated away meanwhile
            return
        with file:
            file.seek(offset)
            for line in file:
                yield offset, line
                offset += len(line)

    def _lines_back(self, number: int, until: int | None) -> Iterator[tuple[int, bytes]]:
        """Yield the whole lines of one file with their places, the last one first; read no more than is asked for."""
        try:
            file = self._path(number).open("rb")
        except FileNotFoundError:  # rotated away meanwhile
            return
        with file:
            begin, data = _end_of_lines(file) if until is None else until, b""
            while begin > 0:
                end, begin = begin, max(0, begin - BLOCK_BYTES)
                file.seek(begin)
                data = file.read(end - begin) + data
                whole = data.find(b"\n") + 1 if begin else 0  # before that is the end of a line that begins earlier
                at = begin + len(data)
                for line in reversed(data[whole:].split(b"\n")[:-1]):
                    at -= len(line) + 1
                    yield at, line + b"\n"
                data = data[:whole]

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


def _end_of_lines(file: BinaryIO) -> int:
    """Return the place after the last line that has an end; what follows is still being written, or was torn."""
    end = file.seek(0, os.SEEK_END)
    while end > 0:
        begin = max(0, end - BLOCK_BYTES)
        file.seek(begin)
        found = file.read(end - begin).rfind(b"\n")
        if found >= 0:
            return begin + found + 1
        end = begin
    return 0


def _encode(activity: Activity, person: str) -> bytes:
    fields = entry_fields(activity)
    data = fields.pop("data", None)
    named = {"by": person} if person else {}
    kept = {**fields, "pid": os.getpid(), **named} | ({"data": data} if data else {})
    return json.dumps(kept, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace") + b"\n"


def _take(line: bytes, cursor: Cursor, entries: list[JournalEntry]) -> bool:
    """Add a line's entry, which ends at a cursor; True if the line is damaged."""
    entry = _decode(line)
    if entry is not None:
        entries.append(JournalEntry(str(cursor), entry))
    return entry is None and bool(line.strip())


def _decode(line: bytes) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None
