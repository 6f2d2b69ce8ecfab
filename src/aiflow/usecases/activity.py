"""What happened here (ERR-4): the journal, page by page and by what it is about."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from aiflow.ports.journal import JournalEntry, JournalReader

# So many entries are searched for one page; after that, the caller continues from the cursor.
MOST_LOOKED_THROUGH = 20_000
_AT_ONCE = 1000


class ActivityFilter(NamedTuple):
    """What entries are to be about; what is empty does not matter."""

    kinds: Collection[str] = ()
    actors: Collection[str] = ()
    request_id: str | None = None
    run_id: str | None = None
    reason_codes: Collection[str] = ()

    def takes(self, entry: JournalEntry) -> bool:
        """Return whether an entry is wanted."""
        wanted = (("kind", self.kinds), ("actor", self.actors), ("reason_code", self.reason_codes))
        named = (("request_id", self.request_id), ("run_id", self.run_id))
        return all(not values or entry.fields.get(name) in values for name, values in wanted) and all(
            value is None or entry.fields.get(name) == value for name, value in named
        )


EVERYTHING = ActivityFilter()


class ActivityPage(NamedTuple):
    """What was found, where to continue, whether that was all for now, damaged lines passed, whether some are gone."""

    entries: tuple[JournalEntry, ...]
    cursor: str
    is_end: bool
    damaged: int = 0
    has_gap: bool = False


def read_activity(
    journal: JournalReader,
    cursor: str | None = None,
    limit: int = 100,
    only: ActivityFilter = EVERYTHING,
    *,
    newest_first: bool = False,
) -> ActivityPage:
    """Read what happened after a cursor; newest first it is what happened before one, from the end without."""
    read = journal.read_back if newest_first else journal.read
    found: list[JournalEntry] = []
    damaged, has_gap, seen = 0, False, 0
    while True:
        # Without a filter no more than are wanted; with one the few that are wanted may be far apart.
        wanted = limit - len(found) if only == EVERYTHING else _AT_ONCE
        page = read(cursor, max(1, min(_AT_ONCE, wanted, MOST_LOOKED_THROUGH - seen)))
        cursor, seen = page.cursor, seen + len(page.entries)
        damaged, has_gap = damaged + page.damaged, has_gap or page.has_gap
        for place, entry in enumerate(page.entries, 1):
            if only.takes(entry):
                found.append(entry)
            if len(found) >= limit and place < len(page.entries):
                # The next page begins where this one ended: after this entry, or, on the way back, before it.
                left = page.entries[place].cursor if newest_first else entry.cursor
                return ActivityPage(tuple(found), left, is_end=False, damaged=damaged, has_gap=has_gap)
        if not page.entries or len(found) >= limit or seen >= MOST_LOOKED_THROUGH:
            return ActivityPage(tuple(found), cursor, not page.entries, damaged, has_gap)


def latest_activity(
    journal: JournalReader, limit: int, only: ActivityFilter = EVERYTHING, before: str | None = None
) -> tuple[ActivityPage, str]:
    """Read the newest entries, however far back, and the cursor from which everything is newer than they are."""
    end = journal.end()
    page = read_activity(journal, before or end, limit, only, newest_first=True)
    while not page.is_end and len(page.entries) < limit:
        more = read_activity(journal, page.cursor, limit - len(page.entries), only, newest_first=True)
        damaged, has_gap = page.damaged + more.damaged, page.has_gap or more.has_gap
        page = ActivityPage((*page.entries, *more.entries), more.cursor, more.is_end, damaged, has_gap)
    return page, end


def follow_activity(
    journal: JournalReader,
    cursor: str | None,
    should_stop: Callable[[], bool],
    only: ActivityFilter = EVERYTHING,
) -> Iterator[JournalEntry]:
    """Yield what happens, as it happens; without a cursor only what comes."""
    return filter(only.takes, journal.follow(cursor, should_stop))
