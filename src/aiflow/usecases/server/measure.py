"""Count what `/metrics` shows: every run once, as it stands now, and only those again that the journal names since."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.server.measures import Measures, figures_of

if TYPE_CHECKING:
    from aiflow.ports import JournalReader, RunStore

_AT_ONCE = 500


def measure(measures: Measures, runs: RunStore, journal: JournalReader) -> Measures:
    """Bring the figures up to date; the first time everything is read, later only what changed."""
    is_first = measures.cursor is None
    changed = _heard(measures, journal)
    for request_id, run_id in _all(runs) if is_first else changed:
        run = runs.load(request_id, run_id)
        if run is not None:
            measures.runs[run_id] = figures_of(run)
    return measures


def _heard(measures: Measures, journal: JournalReader) -> set[tuple[str, str]]:
    """Read the journal on, to its end, and return the runs it names."""
    changed = set[tuple[str, str]]()
    while True:
        page = journal.read(measures.cursor, _AT_ONCE)
        changed.update(named for entry in page.entries if (named := measures.hear(entry.fields)))
        is_end, measures.cursor = not page.entries, page.cursor
        if is_end:
            return changed


def _all(runs: RunStore) -> list[tuple[str, str]]:
    return [(owner, run.run_id) for owner, run in runs.page()[0]]
