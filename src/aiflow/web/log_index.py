"""What is known of a log's lines without keeping them (WEB-1, WEB-3): where they are, which failed, which are headings.

A log may be long and grow quickly. The page keeps only what is on the screen, so the server knows the rest: it reads
each byte once, as it comes, and remembers numbers.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, NamedTuple

from aiflow.web.text.ansi import ansi_line
from aiflow.web.text.log_lines import MOST_CHARACTERS, LogKind, line_kind

if TYPE_CHECKING:
    from collections.abc import Iterable

# So far apart, in lines and in bytes, are the places from which a line is looked for.
LINES_APART = 256
BYTES_APART = 256_000
_MOST_BYTES = 4 * MOST_CHARACTERS
_CODES = frozenset("\x1b\x9b\r")


def shown_text(line: str) -> str:
    """Return a line without what a terminal obeys, as people read it."""
    return ansi_line(line).text if not _CODES.isdisjoint(line) else line


class LinePlace(NamedTuple):
    """A line and the byte that it begins at."""

    line: int
    offset: int


class LogIndex:
    """The lines of one log, counted from 0; the last one may have no end yet."""

    def __init__(self) -> None:
        self.whole = 0  # lines that have an end
        self.read = 0  # bytes
        self.failures, self.headings = array("Q"), array("Q")
        self.titles: list[str] = []  # of the headings
        self._open_at = 0
        self._open = b""  # the beginning of the last line
        self._at_lines, self._at_bytes = array("Q", [0]), array("Q", [0])
        self._time_lines, self._seconds = array("Q"), array("Q")

    @property
    def total(self) -> int:
        """How many lines there are, with one that has no end."""
        return self.whole + self.is_open

    @property
    def is_open(self) -> bool:
        """Whether the last line has no end yet."""
        return self.read > self._open_at

    @property
    def has_times(self) -> bool:
        """Whether it is known when lines were written."""
        return bool(self._seconds)

    def take(self, data: bytes, times: Iterable[tuple[int, int]] = ()) -> None:
        """Read what comes next; `times` are from which of its lines on which second holds."""
        for line, second in times:
            self._time_lines.append(self.whole + line)
            self._seconds.append(second)
        *ended, rest = data.split(b"\n")
        for piece in ended:
            self._note(self._open + piece[:_MOST_BYTES])
            self.read += len(piece) + 1
            self.whole += 1
            self._open, self._open_at = b"", self.read
            if self.whole - self._at_lines[-1] >= LINES_APART or self.read - self._at_bytes[-1] >= BYTES_APART:
                self._at_lines.append(self.whole)
                self._at_bytes.append(self.read)
        self._open = (self._open + rest)[:_MOST_BYTES]
        self.read += len(rest)

    def _note(self, line: bytes) -> None:
        text = shown_text(line.decode("utf-8", "replace"))[:MOST_CHARACTERS]
        kind = line_kind(text)
        if kind is LogKind.FAILING:
            self.failures.append(self.whole)
        elif kind is LogKind.HEADING:
            self.headings.append(self.whole)
            self.titles.append(text)

    @property
    def failing(self) -> array[int]:
        """The lines that failed, with one that has no end yet."""
        text = shown_text(self._open.decode("utf-8", "replace"))[:MOST_CHARACTERS]
        is_failing = self.is_open and line_kind(text) is LogKind.FAILING
        return self.failures + array("Q", [self.whole]) if is_failing else self.failures

    def failure(self) -> int | None:
        """Return the line where a reader wants to begin: the first that failed in the last part that has one."""
        failing = self.failing
        if not failing:
            return None
        at = bisect_right(self.headings, failing[-1])
        return failing[bisect_left(failing, self.headings[at - 1] if at else 0)]

    def place_before(self, line: int) -> LinePlace:
        """Return a place at or before a line from which it is not far."""
        at = bisect_right(self._at_lines, line) - 1
        return LinePlace(self._at_lines[at], self._at_bytes[at])

    def heading_of(self, line: int) -> tuple[int, str] | None:
        """Return the heading that a line belongs to, and its text."""
        at = bisect_right(self.headings, line)
        return (self.headings[at - 1], self.titles[at - 1]) if at else None

    def times_of(self, first: int, count: int) -> list[tuple[int, int]]:
        """Return from which of some lines on (0 is the first) which second holds."""
        at = bisect_right(self._time_lines, first)
        found = [(0, self._seconds[at - 1])] if at else []
        end = bisect_left(self._time_lines, first + count)
        return found + [(self._time_lines[each] - first, self._seconds[each]) for each in range(at, end)]


class LogSearch:
    """The lines of a log in which some words are: each part is looked through once."""

    def __init__(self, words: str) -> None:
        self.words = words.lower()
        self.hits = array("Q")
        self.whole = 0
        self.read = 0

    def take(self, data: bytes) -> None:
        """Look through lines that have an end, from where it was left."""
        text = data.decode("utf-8", "replace")
        if not _CODES.isdisjoint(text):
            text = "\n".join(shown_text(line) for line in text.split("\n"))
        self._look(text.lower())
        self.whole += data.count(b"\n")
        self.read += len(data)

    def _look(self, text: str) -> None:
        line, counted = self.whole, 0
        at = text.find(self.words)
        while at >= 0:
            line += text.count("\n", counted, at)
            self.hits.append(line)
            end = text.find("\n", at)
            if end < 0:
                return
            line, counted = line + 1, end + 1
            at = text.find(self.words, counted)

    def with_open(self, line: bytes) -> array[int]:
        """Return the hits, with a last line that has no end yet."""
        is_hit = self.words in shown_text(line.decode("utf-8", "replace")).lower()
        return self.hits + array("Q", [self.whole]) if line and is_hit else self.hits
