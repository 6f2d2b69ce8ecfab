"""Watch a checkout for everybody who wants to know (API-3): one look for all, whatever started what happens there.

Nothing is remembered but the last look: a run that was started in a terminal, by a runner or by another server shows as
one that was started here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.server.facts import Fact, Sight, fact_of_entry, facts_between, facts_now
from aiflow.errors import AiflowError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import AbstractContextManager

    from aiflow.ports import JournalReader, Time
    from aiflow.ports.journal import JournalEntry
    from aiflow.ports.server import CheckoutEyes

# A watcher that was away for longer than so many entries learns that there is a gap, and looks at everything again.
MOST_REPLAYED = 1000


class Replay(NamedTuple):
    """What somebody missed who comes back, and whether that is not all of it."""

    facts: tuple[Fact, ...]
    has_gap: bool


@dataclass(slots=True)
class CheckoutWatch:
    """Looks at a checkout again and again; each look says what is new since the one before."""

    eyes: CheckoutEyes
    journal: JournalReader
    time: Time
    _last: Sight = field(default_factory=Sight)
    _now: tuple[Sight, tuple[Fact, ...]] | None = None
    _cursor: str | None = None
    _guard: AbstractContextManager[object] = field(init=False)

    def __post_init__(self) -> None:
        self._guard = self.time.mutex()

    @property
    def cursor(self) -> str | None:
        """How far the journal has been reported."""
        return self._cursor

    @property
    def requests_seen(self) -> object:
        """What stands for the requests at the last look: another thing if one of them had changed by then."""
        return self._last.requests

    @property
    def is_busy(self) -> bool:
        """Whether somebody was at work at the last look."""
        return self._last.is_busy

    def begin(self) -> None:
        """Look for the first time, or after a while without watchers: what happened meanwhile is not reported."""
        with self._guard:
            self._cursor = self.journal.end()
            self._last = self.eyes.look()

    def look(self) -> tuple[Fact, ...]:
        """Say what is new since the last look; the journal's entries first, in their order."""
        with self._guard:
            page = self.journal.read(self._cursor)
            told = [Fact("gap", {})] if page.has_gap else []
            told += (fact_of_entry(entry.fields, entry.cursor) for entry in page.entries)
            look = self.eyes.look(_runs_in(page.entries))
            told += facts_between(self._last, look)
            self._cursor, self._last = page.cursor, look
        return tuple(told)

    def now(self) -> tuple[Fact, ...]:
        """Say how everything was at the last look; worked out once for all who ask."""
        with self._guard:
            if self._now is None or self._now[0] is not self._last:
                self._now = (self._last, tuple(facts_now(self._last)))
            return self._now[1]

    def replay(self, after: str) -> Replay:
        """Report what the journal recorded after a cursor; too much, or a cursor that leads nowhere, is a gap."""
        try:
            page = self.journal.read(after, MOST_REPLAYED + 1)
        except AiflowError:  # an unknown cursor
            return Replay((), has_gap=True)
        if page.has_gap or len(page.entries) > MOST_REPLAYED:
            return Replay((), has_gap=True)
        return Replay(tuple(fact_of_entry(entry.fields, entry.cursor) for entry in page.entries), has_gap=False)


def _runs_in(entries: Iterable[JournalEntry]) -> set[tuple[str, str]]:
    """Return the runs that entries are about: one may have come and gone between two looks."""
    named = ((entry.fields.get("request_id"), entry.fields.get("run_id")) for entry in entries)
    return {(one, other) for one, other in named if isinstance(one, str) and isinstance(other, str)}
