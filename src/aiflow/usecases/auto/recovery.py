"""What an earlier process left (AUT-4, RUN-11): its session is taken up, its runs are recovered, each counted once."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from aiflow.domain.activity import About, Actor, recovered
from aiflow.domain.auto.session import AutoSession, RunEnded, Started, Upcoming, carry_on, record_end
from aiflow.domain.backlog.selection import cut_off_in_order, interrupted_in_order
from aiflow.domain.request import RequestId
from aiflow.errors import AiflowError
from aiflow.usecases.auto.attempt import attempt, ended_of, wait_for_lock
from aiflow.usecases.read_backlog import read_backlog, with_interrupted
from aiflow.usecases.runs.cancel import give_up
from aiflow.usecases.runs.locks import occupant
from aiflow.usecases.runs.recover import recover_run
from aiflow.usecases.runs.resume import ResumeWish, decide, resume_run

if TYPE_CHECKING:
    from datetime import datetime

    from aiflow.domain.backlog.selection import Backlog
    from aiflow.domain.request import Request
    from aiflow.domain.run_summary import RunSummary
    from aiflow.domain.runs.run import Run
    from aiflow.usecases.auto.shift import Shift
    from aiflow.usecases.engine import Engine

# No wish from a person: a run that had to be stopped continues where it was.
_GO_ON = ResumeWish(is_delivery=True)


def take_up(last: AutoSession | None, now: datetime) -> AutoSession:
    """Carry on with a session that was interrupted, or begin a new one."""
    if last is not None and last.was_cut:
        return carry_on(last, now)
    return AutoSession(started_at=now, began_at=now)


def find_interrupted(shift: Shift, last: AutoSession | None) -> Backlog:
    """Find what was interrupted: the request that the session had begun, and every run without a process."""
    backlog = with_interrupted(read_backlog(shift.engine.backlog), shift.engine.locks)
    begun = [shift.session.current.request_id] if shift.session.current else []
    left = dict.fromkeys((*begun, *interrupted_in_order(backlog)))
    titles = {request.id: request.title for request in backlog.requests}
    shift.interrupted = tuple(Upcoming(each, titles.get(RequestId(each), ""), each in backlog.lost) for each in left)
    if last is not None and last.is_interrupted:
        data = {"runs": last.runs, "done": last.done, "interrupted": list(left)}
        now, about = shift.engine.time.now(), About(next(iter(begun), None))
        shift.engine.journal.append(recovered(now, Actor.AUTO_RUN, about, "PROCESS_CRASHED", **data))
    return backlog


def count_begun(shift: Shift, backlog: Backlog) -> None:
    """Count the run that was begun if it has ended meanwhile; one that has not is recovered, and counted then."""
    begun = shift.session.current
    if begun is None:
        return
    run = _newer(shift, begun)
    if run is not None and run.is_active and shift.engine.locks.holder_of(RequestId(begun.request_id)):
        wait_for_lock(shift)  # a person recovers it already
        run = _newer(shift, begun)
    if run is None or run.is_active or begun.request_id in backlog.interrupted:
        shift.session = replace(shift.session, current=None)
    else:
        known = shift.engine.runs.load(begun.request_id, run.run_id)
        told = RunEnded(begun.request_id, run.state, run.reason_code, run_id=run.run_id)
        shift.session = record_end(shift.session, ended_of(known) if known else told)
    shift.save()


def _newer(shift: Shift, begun: Started) -> RunSummary | None:
    """Return the newest run of a request, if it was made since."""
    newest = next(iter(shift.engine.runs.all_of(RequestId(begun.request_id))), None)
    return newest if newest is not None and newest.run_id > (begun.newest_before or "") else None


def recover(shift: Shift, backlog: Backlog) -> str | None:
    """Recover every interrupted run, oldest first; returns the reason code if auto-run has to stop meanwhile."""
    for request_id in to_recover(shift, backlog):
        reason = shift.why_stop()
        if reason is None:
            run = backlog.runs.get(request_id)
            started = _taken_up(shift, request_id, run.run_id if run else "")
            work = partial(recover_run, shift.engine, request_id)
            reason = attempt(shift, started, backlog.by_id[request_id].title, work)
        if reason is not None:
            return reason
    return None


def _taken_up(shift: Shift, request_id: RequestId, run_id: str) -> Started:
    """Record what is continued: its run is the one after those before it."""
    older = (each.run_id for each in shift.engine.runs.all_of(request_id) if each.run_id < run_id)
    return Started(request_id, next(older, None))


def go_on_with_left(shift: Shift, backlog: Backlog) -> str | None:
    """Continue the runs that an earlier delivery or auto-run had to leave; returns the reason code if it has to stop.

    One that cannot, because a person changed something meanwhile, waits for that person; the others don't wait.
    """
    engine = shift.engine
    for run in (*shift.terms.left(), *_cut_off(engine, backlog)):
        if not run.may_call_again(engine.limits):
            give_up(engine, run)
        if not _may_go_on(engine, run):
            continue
        if occupant(engine):
            wait_for_lock(shift)
        started = _taken_up(shift, RequestId(run.request_id), run.run_id)
        reason = shift.why_stop() or attempt(shift, started, run.title, partial(resume_run, engine, run, _GO_ON))
        if reason is not None:
            return reason
    return None


def _cut_off(engine: Engine, backlog: Backlog) -> list[Run]:
    """Return the runs that an auto-run was at when its terminal was closed, oldest first (AUT-4)."""
    loaded = (engine.runs.load(request_id, run_id) for request_id, run_id in cut_off_in_order(backlog))
    return [run for run in loaded if run is not None]


def to_recover(shift: Shift, backlog: Backlog) -> list[RequestId]:
    """Return the requests whose run was at work and has no process now, without those that cannot be recovered."""
    return _recoverable(shift.session, backlog)


def _recoverable(session: AutoSession, backlog: Backlog) -> list[RequestId]:
    return [request_id for request_id in interrupted_in_order(backlog) if request_id not in session.not_again]


def continued_first(engine: Engine, backlog: Backlog, last: AutoSession | None) -> tuple[Request, ...]:
    """Return the requests whose runs the next auto-run continues before it selects, in that order (SEL-7).

    What was lost, or had ended, is only set right by it, and not run.
    """
    session = take_up(last, engine.time.now())
    active = {name for name, run in backlog.runs.items() if run.is_active} | backlog.drafted
    recovered = [name for name in _recoverable(session, backlog) if name in active]
    is_idle = backlog.queue_lock is None  # one that is at work has looked for these at its start
    cut_off = [RequestId(run.request_id) for run in _cut_off(engine, backlog) if is_idle and _may_go_on(engine, run)]
    return tuple(backlog.by_id[name] for name in dict.fromkeys((*recovered, *cut_off)) if name in backlog.by_id)


def _may_go_on(engine: Engine, run: Run) -> bool:
    """Return whether a run that had to be left is continued without a person."""
    if not run.may_call_again(engine.limits):
        return False
    try:
        decide(engine, run, _GO_ON)
    except AiflowError:
        return False
    return True
