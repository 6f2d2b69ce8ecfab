"""The journal as plain data (SPEC §11), the same for CLI, API and page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aiflow.ports.journal import JournalEntry
    from aiflow.usecases.activity import ActivityPage

_FIELDS = ("at", "kind", "actor", "request_id", "run_id", "reason_code", "pid", "by", "data")


def activity_shape(page: ActivityPage) -> dict[str, Any]:
    """A page of the journal, and where the next begins."""
    return {
        "activity": [entry_shape(entry) for entry in page.entries],
        "next_cursor": page.cursor,
        "is_end": page.is_end,
        "has_gap": page.has_gap,
        "damaged": page.damaged,
    }


def entry_shape(entry: JournalEntry) -> dict[str, Any]:
    """One entry: always the same keys, whatever the line has."""
    return {"cursor": entry.cursor, **{name: entry.fields.get(name) for name in _FIELDS}}
