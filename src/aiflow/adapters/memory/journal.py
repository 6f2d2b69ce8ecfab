"""A journal in memory."""

from __future__ import annotations

import os
import re
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aiflow.domain.activity import entry_fields
from aiflow.errors import BadInputError
from aiflow.ports.journal import JournalEntry, JournalPage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from aiflow.domain.activity import Activity

LOOK_SECONDS = 0.05


@dataclass
class MemoryJournal:
    """A journal as a list; a cursor is how many entries are before it."""

    entries: list[Activity] = field(default_factory=list)
    _more: threading.Condition = field(default_factory=threading.Condition)

    def append(self, activity: Activity) -> None:
        """Add one entry."""
        with self._more:
            self.entries.append(activity)
            self._more.notify_all()

    def read(self, after: str | None = None, limit: int = 1000) -> JournalPage:
        """Read what follows a cursor (from the start without one), oldest first, at most `limit` entries."""
        place, has_gap = self._place("0" if after is None else after)
        until = min(len(self.entries), place + max(limit, 0))
        return JournalPage(tuple(map(self._entry, range(place, until))), str(until), has_gap=has_gap)

    def read_back(self, before: str | None = None, limit: int = 1000) -> JournalPage:
        """Read what is before a cursor (from the end without one), newest first, at most `limit` entries."""
        place, has_gap = self._place(self.end() if before is None else before)
        first = max(0, place - max(limit, 0))
        return JournalPage(tuple(map(self._entry, reversed(range(first, place)))), str(first), has_gap=has_gap)

    def end(self) -> str:
        """Return the cursor after the last entry, to follow only what comes."""
        return str(len(self.entries))

    def follow(self, after: str | None, should_stop: Callable[[], bool]) -> Iterator[JournalEntry]:
        """Yield what follows a cursor (without one only what comes), and wait for more until asked to stop."""
        cursor = self.end() if after is None else after
        while not should_stop():
            page = self.read(cursor)
            yield from page.entries
            cursor = page.cursor
            with self._more:
                if page.cursor == self.end():
                    self._more.wait(LOOK_SECONDS)

    def _place(self, cursor: str) -> tuple[int, bool]:
        if not re.fullmatch(r"\d{1,12}", cursor, re.ASCII):
            raise BadInputError(detail=f"cursor: {cursor[:40]!r}")
        is_there = int(cursor) <= len(self.entries)
        return (int(cursor), False) if is_there else (0, True)

    def _entry(self, index: int) -> JournalEntry:
        return JournalEntry(str(index + 1), {**entry_fields(self.entries[index]), "pid": os.getpid()})
