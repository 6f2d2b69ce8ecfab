"""A log as the page's viewer reads it (WEB-1): lines by their numbers, how many there are, what is found in them."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from aiflow.domain.runs.log_marks import line_times, with_looks
from aiflow.usecases.runs.logs import read_log
from aiflow.web.log_index import LogIndex, LogSearch
from aiflow.web.text.log_lines import MOST_CHARACTERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from aiflow.domain.runs.log_part import LogPart
    from aiflow.domain.runs.run import Run
    from aiflow.usecases.engine import Engine

PIECE_BYTES = 1_000_000
# So many logs, and searches in each, are remembered.
MOST_LOGS = 16
MOST_SEARCHES = 4


class Wanted(NamedTuple):
    """Which lines are wanted: a number below 0 counts from the end; `words` that are looked for are counted, too."""

    first: int = 0
    many: int = 0
    words: str = ""
    is_whole: bool = False


@dataclass(slots=True)
class KnownLog:
    """What is known of one log; `turn` counts how often it was cut."""

    index: LogIndex = field(default_factory=LogIndex)
    turn: int = 0
    searches: OrderedDict[str, LogSearch] = field(default_factory=OrderedDict)
    lock: threading.Lock = field(default_factory=threading.Lock)


class LogReader(NamedTuple):
    """One log, with everything that reads it."""

    engine: Engine
    run: Run
    number: int
    known: KnownLog

    def lines(self, wanted: Wanted) -> dict[str, Any]:
        """Return some lines with colours and times, and how it stands with the whole log."""
        with self.known.lock:
            part = self._catch_up()
            index = self.known.index
            first = max(0, min(wanted.first if wanted.first >= 0 else index.total + wanted.first, index.total))
            lines = self._lines(first, wanted.many, PIECE_BYTES if wanted.is_whole else MOST_CHARACTERS)
            told = {
                "first": first,
                "lines": lines,
                "times": index.times_of(first, len(lines)) if index.has_times else None,
                "heading": index.heading_of(first),
                "is_headed": bool(index.headings) and index.headings[0] == 0,
                "headings": len(index.headings),
                "total": index.total,
                "is_open": index.is_open,
                "failures": len(index.failing),
                "failure": index.failure(),
                "may_grow": part.may_grow,
                "turn": self.known.turn,
            }
            return told | ({"hits": len(self._hits(wanted.words))} if wanted.words else {})

    def find(self, words: str, at: int, after: int | None) -> dict[str, Any]:
        """Return one of the lines that have these words, or, without words, that failed: by its place among them, or
        the first after a line; after the last comes the first.
        """
        with self.known.lock:
            self._catch_up()
            hits = self._hits(words) if words else self.known.index.failing
            if not hits:
                return {"total": 0, "at": None, "line": None}
            at = (bisect_right(hits, after) if after is not None else at) % len(hits)
            return {"total": len(hits), "at": at, "line": hits[at]}

    def _catch_up(self) -> LogPart:
        """Read what was added; of a log that was cut everything is new."""
        part = read_log(self.engine, self.run, self.number, 0, 1)
        if part.size < self.known.index.read:
            self.known.index, self.known.turn = LogIndex(), self.known.turn + 1
            self.known.searches.clear()
        for start, data in self._pieces(self.known.index.read, part.size):
            marks = self.engine.runs.log_marks(self.run, self.number, start, start + len(data))
            self.known.index.take(data, line_times(data, start, marks))
        return part

    def _pieces(self, start: int, end: int) -> Iterator[tuple[int, bytes]]:
        while start < end and (data := self._bytes(start, min(PIECE_BYTES, end - start))):
            yield start, data
            start += len(data)

    def _bytes(self, start: int, limit: int) -> bytes:
        found = self.engine.runs.read_log(self.run, self.number, start, limit)
        return found[0] if found else b""

    def _lines(self, first: int, count: int, longest: int) -> list[str]:
        """Read some lines; fewer than asked for where they are very long."""
        index = self.known.index
        count = min(count, index.total - first)
        if count <= 0:
            return []
        start = self._start_of(first)
        data = self._bytes(start, min(PIECE_BYTES, index.read - start))
        pieces = data.split(b"\n")
        is_end = start + len(data) >= index.read and index.is_open
        whole = pieces if is_end else pieces[:-1] or pieces  # a line longer than all that is read is cut
        region = b"\n".join(whole[:count])
        marks = self.engine.runs.log_marks(self.run, self.number, start, start + len(region))
        text = with_looks(region, start, marks).decode("utf-8", "replace")
        return [line[:longest] for line in text.split("\n")]

    def _start_of(self, line: int) -> int:
        at, offset = self.known.index.place_before(line)
        while at < line and (data := self._bytes(offset, PIECE_BYTES)):
            missing = line - at
            if (found := data.count(b"\n")) < missing:
                at, offset = at + found, offset + len(data)
                continue
            return offset + sum(len(each) + 1 for each in data.split(b"\n", missing)[:missing])
        return offset

    def _hits(self, words: str) -> Sequence[int]:
        searches, index = self.known.searches, self.known.index
        search = searches.setdefault(words, LogSearch(words))
        searches.move_to_end(words)
        while len(searches) > MOST_SEARCHES:
            searches.popitem(last=False)
        rest = b""
        for _, data in self._pieces(search.read, index.read):
            cut = (rest + data).rfind(b"\n") + 1
            if cut:
                search.take((rest + data)[:cut])
            rest = (rest + data)[cut:]
        return search.with_open(rest[:PIECE_BYTES])


class LogReaders:
    """The logs that were looked at lately."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, int], KnownLog] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, engine: Engine, run: Run, number: int) -> LogReader:
        """Return what reads a log."""
        with self._lock:
            known = self._known.setdefault((run.run_id, number), KnownLog())
            self._known.move_to_end((run.run_id, number))
            while len(self._known) > MOST_LOGS:
                self._known.popitem(last=False)
        return LogReader(engine, run, number, known)
