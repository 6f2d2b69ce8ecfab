"""The protocols of the journal (ERR-4): every process appends to it, and any process reads it by cursor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from aiflow.domain.activity import Activity


class JournalEntry(NamedTuple):
    """One entry as it was recorded; its cursor is the place after it, from which reading continues."""

    cursor: str
    fields: Mapping[str, Any]


class JournalPage(NamedTuple):
    """What was read: entries, where to continue, how many damaged lines were skipped, and whether entries are gone."""

    entries: tuple[JournalEntry, ...]
    cursor: str
    damaged: int = 0
    has_gap: bool = False


class Journal(Protocol):
    """The one record of everything that happened (ERR-4)."""

    def append(self, activity: Activity) -> None:
        """Add one entry; it is on disk when this returns."""


class JournalReader(Protocol):
    """The journal as it is read; a cursor is opaque text, one whose entry is gone starts again with a gap."""

    def read(self, after: str | None = None, limit: int = 1000) -> JournalPage:
        """Read what comes after a cursor (from the start without one), oldest first; raises if it is no cursor."""

    def read_back(self, before: str | None = None, limit: int = 1000) -> JournalPage:
        """Read what is before a cursor (from the end without one), newest first; its cursor leads further back."""

    def end(self) -> str:
        """Return the cursor after the last entry, to follow only new ones."""

    def follow(self, after: str | None, should_stop: Callable[[], bool]) -> Iterator[JournalEntry]:
        """Yield what comes after a cursor (without one only new entries), and wait for more until asked to stop."""
