"""The story of the night (WEB-1): every run since yesterday evening on the clock, and why nothing ran between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.backlog.explanation import stopped_for
from aiflow.domain.morning.fates import is_counted
from aiflow.domain.morning.night import (
    Night,
    draw_bars,
    draw_gaps,
    draw_ticks,
    evening_before,
    span_of,
    sum_up,
)
from aiflow.domain.morning.signs import AutoNow, Signs, read_signs
from aiflow.domain.morning.stretches import RunCondition, worked
from aiflow.domain.request import RequestId, RequestStatus, parse_instant
from aiflow.usecases.auto.stop import working_auto
from aiflow.usecases.auto.summary import read_open
from aiflow.usecases.morning.recent_runs import later, runs_since

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime, tzinfo
    from typing import Any

    from aiflow.domain.backlog.selection import Backlog
    from aiflow.domain.morning.night import Worked
    from aiflow.domain.runs.run import Run
    from aiflow.ports import AutoRecords, JournalReader
    from aiflow.usecases.engine import Engine
    from aiflow.usecases.morning.recent_runs import ReadBefore, RecentRuns

# So many runs are drawn, the newest ones; and so many entries of the journal are looked through for them.
MOST_DRAWN = 200
MOST_ENTRIES = 20_000
_AT_ONCE = 1000


def tell_night(
    engine: Engine,
    records: AutoRecords,
    journal: JournalReader,
    zone: tzinfo | None = None,
    known: ReadBefore | None = None,
) -> Night:
    """Return the night by a zone's clock (the machine's without one)."""
    now = engine.time.now()
    since = evening_before(now, zone)
    standing = _standing(engine, records)
    signs = read_signs(_entries(journal, since), since, standing)
    open_backlog = known.backlog if known else read_open(engine)
    begun = later(known.recent, since) if known else runs_since(engine.backlog.runs, since)
    ids = _run_ids(begun, signs)
    loaded = (engine.runs.load(*names) for names in ids[:MOST_DRAWN])
    runs = tuple(_tell(run, open_backlog, now, signs.asleep) for run in loaded if run is not None)
    span = span_of(runs, since, now, signs.known)
    return Night(
        since,
        span.begin,
        span.end,
        draw_bars(runs, span),
        draw_gaps(runs, span, signs.known, signs.asleep),
        draw_ticks(span, zone),
        sum_up(runs, span),
        max(0, len(ids) - MOST_DRAWN),
    )


def _standing(engine: Engine, records: AutoRecords) -> AutoNow:
    session, is_on = records.load(), working_auto(engine) is not None
    return AutoNow(is_on, session.reason_code, session.changed_at) if session else AutoNow(is_on)


def _entries(journal: JournalReader, since: datetime) -> list[Mapping[str, Any]]:
    """Read the journal back to a time, and return what was since then, oldest first."""
    found: list[Mapping[str, Any]] = []
    cursor: str | None = None
    seen = 0
    while seen < MOST_ENTRIES:
        page = journal.read_back(cursor, _AT_ONCE)
        for entry in page.entries:
            at = parse_instant(str(entry.fields.get("at", "")))
            if at is not None and at < since:
                return found[::-1]
            found.append(entry.fields)
        cursor, seen = page.cursor, seen + len(page.entries)
        if not page.entries:
            break
    return found[::-1]


def _run_ids(recent: RecentRuns, signs: Signs) -> list[tuple[str, str]]:
    """Return the runs of the night, newest first: those that began in it, and those that somebody worked on in it."""
    begun = {(str(owner), run.run_id) for owner, run in recent if is_counted(run)}
    return sorted(begun | signs.runs, key=lambda pair: pair[::-1], reverse=True)


def _tell(run: Run, backlog: Backlog, now: datetime, asleep: Sequence[tuple[datetime, datetime]]) -> Worked:
    owner = RequestId(run.request_id)
    request, latest = backlog.by_id.get(owner), backlog.runs.get(owner)
    speaks = request is not None and latest is not None and latest.run_id == run.run_id
    is_cut = speaks and owner in backlog.interrupted
    is_continued = speaks and owner in backlog.continued
    is_stopped = request is not None and speaks and (is_cut or stopped_for(request, latest) is not None)
    is_closed = request is not None and request.status is RequestStatus.DONE
    return worked(run, now, RunCondition(is_cut, is_closed, is_stopped and not is_continued, is_continued), asleep)
