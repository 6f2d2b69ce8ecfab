"""The marks beside a step's log (WEB-1): `logs/step-<n>.marks`, lines of a byte and `t<second>` or `m<codes>`."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from aiflow.domain.runs.log_marks import LogMark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime
    from typing import BinaryIO

MOST_LOOKS = 200_000
_OFFSET = re.compile(rb"\d{1,15}")
_RECORD = re.compile(rb"(\d{1,15}) (?:t(\d{1,12})|m([0-9;:]{0,64}))\n")


def marks_path(log_path: str) -> str:
    """Return where a log's marks are."""
    return f"{log_path.removesuffix('.log')}.marks"


class MarkFile:
    """Adds the marks of one log, each before what it is about."""

    def __init__(self, log_path: str, log_size: int, clock: Callable[[], datetime]) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        self._file = os.fdopen(os.open(marks_path(log_path), flags, 0o644), "r+b", buffering=0)
        # What a crash left without its text, or a log that was cut, would mark what comes now.
        self._file.truncate(_first_from(self._file, log_size))
        self._clock = clock
        self._second: int | None = None
        self._looks = 0

    def add(self, offset: int, looks: Sequence[tuple[int, bytes]]) -> None:
        """Mark what is written at a byte now; looks are counted from there. More than enough are not kept."""
        second = int(self._clock().timestamp())
        lines = [b"%d t%d\n" % (offset, second)] if second != self._second else []
        self._second = second
        kept = looks[: MOST_LOOKS - self._looks]
        self._looks += len(kept)
        lines += [b"%d m%b\n" % (offset + at, codes) for at, codes in kept]
        if lines:
            self._file.write(b"".join(lines))

    def close(self) -> None:
        """Close the file; twice does no harm."""
        self._file.close()


def read_marks(file: BinaryIO, start: int, end: int) -> tuple[LogMark, ...]:
    """Read the marks of some bytes of a log; what is no mark is passed over."""
    file.seek(_first_from(file, start))
    return tuple(_until(file, end))


def _until(file: BinaryIO, end: int) -> Iterator[LogMark]:
    for line in file:
        match = _RECORD.fullmatch(line)
        if match is None:
            continue
        if int(match[1]) >= end:
            return
        look = match[3].decode("ascii") if match[3] is not None else None
        yield LogMark(int(match[1]), int(match[2]) if match[2] else None, look)


def _first_from(file: BinaryIO, offset: int) -> int:
    """Return where the first mark at or after a byte begins: they are in order, so half is left out at each look."""
    low, high = 0, file.seek(0, os.SEEK_END)
    while low < high:
        middle = (low + high) // 2
        file.seek(max(0, middle - 1))
        if middle:
            file.readline()
        at, line = file.tell(), file.readline()
        number = line.partition(b" ")[0]
        if at >= high or not _OFFSET.fullmatch(number) or int(number) >= offset:
            high = middle
        else:
            low = file.tell()
    return low
