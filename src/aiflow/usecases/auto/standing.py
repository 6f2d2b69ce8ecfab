"""The state of this checkout (CLI `status`, API): what runs, what waits, what is next, the last auto-run, the cost."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from aiflow.domain.auto.standing import AtWork, Glance, Progress, SpentLately, Standing
from aiflow.domain.backlog.selection import is_left, select_next
from aiflow.domain.lock import LockType
from aiflow.domain.request import RequestId
from aiflow.domain.run_summary import made_at
from aiflow.usecases.auto.recovery import continued_first
from aiflow.usecases.auto.status import auto_status
from aiflow.usecases.auto.stop import working_auto
from aiflow.usecases.auto.summary import find_waiting, read_open, waiting_requests

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from aiflow.domain.backlog.board import Board
    from aiflow.domain.backlog.selection import Backlog
    from aiflow.domain.run_summary import RunRecord
    from aiflow.domain.runs.run import Run
    from aiflow.messages import Texts
    from aiflow.ports import AutoRecords
    from aiflow.usecases.engine import Engine

# What the cost is summed up for.
COST_DAYS = 7
_AT_ONCE = 100


def look_around(engine: Engine, records: AutoRecords, texts: Texts) -> Standing:
    """Look at the whole checkout at once; changes nothing."""
    backlog = read_standing(engine, records)
    seen = glance(engine, records, backlog)
    return Standing(
        seen.running,
        tuple(find_waiting(engine, backlog, texts)),
        seen.selection,
        seen.auto,
        _spent(engine, engine.time.now() - timedelta(days=COST_DAYS)),
        seen.continued,
        backlog.turn,
        tuple(request for request in backlog.requests if request.is_follow_up),
    )


def read_standing(engine: Engine, records: AutoRecords) -> Backlog:
    """Read what is open, with what the next auto-run continues, which does not wait for a person."""
    backlog = read_open(engine)
    if not is_left(backlog):
        return backlog
    continued = continued_first(engine, backlog._replace(queue_lock=working_auto(engine)), records.load())
    return backlog._replace(continued=tuple(request.id for request in continued))


def glance(engine: Engine, records: AutoRecords, backlog: Backlog, board: Board | None = None) -> Glance:
    """Read what every page shows in its frame: what runs, how many wait, what is next, auto-run.

    With a board of that backlog, what is known of it is not worked out again.
    """
    auto = auto_status(engine, records)
    held = backlog._replace(queue_lock=auto.holder) if auto.holder or backlog.queue_lock else backlog
    return Glance(
        tuple(at_work(engine, held)),
        len(board.waiting if board else list(waiting_requests(backlog))),
        board.selection if board else select_next(held),
        auto,
        tuple(backlog.by_id[name] for name in backlog.continued),
    )


def at_work(engine: Engine, backlog: Backlog) -> Iterator[AtWork]:
    """Yield what living processes hold."""
    for status in engine.locks.survey():
        lock = status.lock
        if lock.lock_type is LockType.REQUEST and lock.request_id and not status.verdict.is_stale:
            run = engine.runs.load(lock.request_id, lock.run_id) if lock.run_id else None
            request = backlog.by_id.get(RequestId(lock.request_id))
            title = (request.title if request else "") or (run.title if run else "")
            progress = _progress(run) if run else None
            yield AtWork(lock.request_id, title, lock.run_id, lock.created_at, lock.pid, lock.host, progress)


def _progress(run: Run) -> Progress:
    """Say how far a run is."""
    step, done = run.current_step, sum(work.is_done for work in run.steps.values())
    number = (run.current_index or 0) + 1 if step else 0
    title = step.title if step else ""
    at_step = (run.state.value, run.current_step_id, title, number, len(run.plan), done)
    return Progress(*at_step, run.task, run.waits_until)


def _spent(engine: Engine, since: datetime) -> SpentLately:
    """Sum up the runs that began in the last days."""
    records = tuple(_records(engine, since))
    return SpentLately(
        COST_DAYS,
        len(records),
        round(sum(record.cost_usd for record in records), 6),
        sum(record.tokens for record in records),
        sum(record.agent_calls for record in records),
    )


def _records(engine: Engine, since: datetime) -> Iterator[RunRecord]:
    """Yield the records of runs, newest first, back to a time: by their ids, so that no older one is read."""
    after: str | None = None
    while True:
        page, _ = engine.runs.page(None, _AT_ONCE, after)
        for _, run in page:
            began = made_at(run.run_id)
            if began is not None and began < since:
                return
            if run.record is not None:
                yield run.record
        if len(page) < _AT_ONCE:
            return
        after = page[-1][1].run_id
