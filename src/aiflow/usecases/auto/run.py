"""Auto-run (AUT; D59 §10, D39 §6): select, start exactly one run, wait for its end, select again.

The queue lock is held from before the first selection until after the last, and released however auto-run ends.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.activity import Activity, ActivityKind, Actor
from aiflow.domain.auto.session import Started, Upcoming
from aiflow.domain.auto.stopping import Limits, barred
from aiflow.domain.backlog.selection import digest, select_next
from aiflow.domain.lifecycle import AutoRunEvent
from aiflow.domain.lock import Lock
from aiflow.errors import AiflowError, ConflictError, as_problem
from aiflow.messages.details import as_text
from aiflow.usecases.auto.attempt import attempt, gave_way, wait_for_lock
from aiflow.usecases.auto.recovery import count_begun, find_interrupted, go_on_with_left, recover, take_up, to_recover
from aiflow.usecases.auto.shift import AutoTerms, Shift
from aiflow.usecases.auto.stop import queue_in_progress, run_of
from aiflow.usecases.auto.summary import summarize, summarize_alone
from aiflow.usecases.clean.clean_up import retention
from aiflow.usecases.read_backlog import read_backlog, with_interrupted
from aiflow.usecases.runs.find import newest_run_id
from aiflow.usecases.runs.locks import give_back_turn, reclaim_locks
from aiflow.usecases.runs.notify import tell_auto_ended
from aiflow.usecases.runs.start import start_run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiflow.domain.auto.session import AutoSession
    from aiflow.domain.auto.summary import Summary
    from aiflow.domain.backlog.selection import Backlog
    from aiflow.domain.request import Request
    from aiflow.settings import Settings
    from aiflow.usecases.engine import Engine

NOTHING_RUNNABLE = "AUTO_NOTHING_RUNNABLE"
WATCH_SECONDS = 2.0
# A backlog that takes long to read is looked at less often: at most a tenth of the time goes into looking.
WATCH_SHARE = 10
UPCOMING_SHOWN = 10


def limits_of(settings: Settings) -> Limits:
    """Return when auto-run stops automatically, from the settings."""
    return Limits(
        stop_after_needs_input=settings.integer("auto.stop_after_needs_input"),
        stop_after_failed=settings.integer("auto.stop_after_failed"),
        session_runs=settings.integer("limits.session_runs"),
        session_minutes=settings.integer("limits.session_minutes"),
        session_cost_usd=settings.number("limits.session_cost_usd"),
        session_tokens=settings.integer("limits.session_tokens"),
        session_agent_calls=settings.integer("limits.session_agent_calls"),
    )


def auto_run(engine: Engine, terms: AutoTerms) -> Summary:
    """Work through the backlog until there is a reason to stop, and sum up what a person finds then."""
    reclaim_locks(engine)
    lease = engine.locks.acquire_queue()
    if isinstance(lease, Lock):
        raise queue_in_progress(lease, run_of(engine, lease))
    try:
        give_back_turn(engine)
        engine.control.clear_stop(before=lease.lock.created_at)  # what was asked of an earlier one
        last = terms.records.load()
        if terms.is_continuing:
            require_cut(last)
        shift = Shift(engine, terms, lease, take_up(last, engine.time.now()))
        _work_to_the_end(shift, last)
    finally:
        with contextlib.suppress(AiflowError):
            lease.release()
    summary = _sum_up(engine, shift)
    terms.finish(summary)
    with contextlib.suppress(AiflowError):
        retention(engine)
    tell_auto_ended(engine, summary)
    return summary


def require_cut(last: AutoSession | None) -> AutoSession:
    """Return the last session if it was cut off, or refuse: there is nothing to continue."""
    if last is None or not last.was_cut:
        raise ConflictError(reason_code="AUTO_NOT_CUT")
    return last


def _sum_up(engine: Engine, shift: Shift) -> Summary:
    """Sum up what a person finds; where the backlog cannot be read any more, what the session itself knows."""
    try:
        summary = summarize(engine, shift.session, shift.terms.texts)
    except AiflowError:
        summary = summarize_alone(shift.session, shift.terms.texts)
    return replace(summary, interrupted=shift.interrupted, findings=shift.findings, facts=shift.facts_of_end)


def _work_to_the_end(shift: Shift, last: AutoSession | None) -> None:
    """Work, and write down why it ended, be that trouble with the machine or a defect of aiflow."""
    try:
        reason = _begin(shift, last) or _loop(shift)
    except (AiflowError, OSError) as error:
        known = as_problem(error, error.filename or "") if isinstance(error, OSError) else error
        shift.facts_of_end = tuple((name, as_text(fact)) for name, fact in known.context.items() if fact is not None)
        reason = known.reason_code
    except BaseException:
        with contextlib.suppress(AiflowError):
            _end(shift, "INTERNAL_ERROR")
        raise
    with contextlib.suppress(AiflowError):  # a full disk may be why it ended
        _end(shift, reason)


def _begin(shift: Shift, last: AutoSession | None) -> str | None:
    """Start, and put right what a crash left; returns the reason code if that is all there is to do."""
    backlog = find_interrupted(shift, last)
    shift.fix_base()
    shift.move(AutoRunEvent.STARTED, interrupted=shift.interrupted)
    base = shift.session.base_branch
    told = {"event": AutoRunEvent.STARTED.value, "is_watching": shift.terms.is_watching, "base_branch": base}
    count_begun(shift, backlog)
    if not shift.is_healthy():
        return "DOCTOR_FAILED"
    _record(shift, ActivityKind.TRANSITION, told)  # not before: this shows its caller that it works (API-2)
    return recover(shift, backlog) or go_on_with_left(shift, backlog)


def _end(shift: Shift, reason: str) -> None:
    """Write down why it ended."""
    event = AutoRunEvent.NOTHING_LEFT if reason == NOTHING_RUNNABLE else AutoRunEvent.STOPPED
    shift.session = replace(shift.session, reason_code=reason, current=None)
    shift.move(event, running=None, waits_for=None)
    if shift.lease.is_lost:
        _save_behind(shift)
    else:
        with contextlib.suppress(AiflowError):
            shift.engine.control.clear_stop()
    session = shift.session
    told = {"event": event.value, "to": session.state.value, "runs": session.runs, "done": session.done}
    _record(shift, ActivityKind.TRANSITION, told, reason_code=reason)


def _save_behind(shift: Shift) -> None:
    """Record how it ended after losing its lock, if no process has taken the queue or the session since."""
    lease = shift.engine.locks.acquire_queue()
    if isinstance(lease, Lock):
        return
    try:
        last = shift.terms.records.load()
        if last is not None and last.started_at == shift.session.started_at:
            shift.terms.records.save(shift.session)
    finally:
        lease.release()


class _Look(NamedTuple):
    """One look at the backlog: what may be started now, in order."""

    backlog: Backlog
    ready: int
    runnable: tuple[Request, ...]

    @property
    def chosen(self) -> Request | None:
        return self.runnable[0] if self.runnable else None


def _loop(shift: Shift) -> str:
    """Select and run until there is a reason to stop."""
    while (reason := shift.why_stop()) is None:
        look = _look(shift)
        if to_recover(shift, look.backlog):  # somebody's run beside us was interrupted
            reason = recover(shift, look.backlog)
        elif look.chosen is None:
            _decide(shift, look)
            reason = _wait_for_work(shift) if shift.terms.is_watching else NOTHING_RUNNABLE
        elif look.backlog.locks or gave_way(shift):
            wait_for_lock(shift)
        else:
            reason = _start(shift, look, look.chosen)
        if reason is not None:
            return reason
    return reason


def _look(shift: Shift) -> _Look:
    """Read everything again; before reporting that nothing is left, read the issues, however fresh they are."""
    before = shift.issues.count
    shift.read_issues()
    look = _select(shift)
    is_last = look.chosen is None and not shift.terms.is_watching and shift.terms.care is not None
    if not is_last or shift.issues.count != before:
        return look
    shift.read_issues(is_wanted=True)
    return _select(shift)


def _select(shift: Shift) -> _Look:
    """Read the backlog, so that new and edited requests count, and select (SEL-7)."""
    engine, session = shift.engine, shift.session
    reclaim_locks(engine)
    # Our own queue lock does not keep us from selecting a request.
    backlog = read_backlog(engine.backlog, with_all_runs=False)._replace(queue_lock=None)
    selection = select_next(backlog)
    not_again = barred(session, backlog.runs)
    runnable = tuple(request for request in selection.runnable if request.id not in not_again)
    return _Look(with_interrupted(backlog, engine.locks), selection.ready, runnable)


def _start(shift: Shift, look: _Look, request: Request) -> str | None:
    """Start exactly one run and wait for its end."""
    if shift.facts is None and not shift.is_healthy():
        return "DOCTOR_FAILED"
    _decide(shift, look)
    upcoming = tuple(Upcoming(each.id, each.title) for each in look.runnable[1 : UPCOMING_SHOWN + 1])
    shift.show(upcoming=upcoming, runnable=len(look.runnable) - 1)
    started = Started(request.id, newest_run_id(shift.engine, request.id))
    return attempt(shift, started, request.title, partial(start_run, shift.engine, request.id, shift.facts))


def _decide(shift: Shift, look: _Look) -> None:
    """Record a decision with a digest of everything it depended on (SEL-7)."""
    data = {"digest": digest(look.backlog), "ready": look.ready, "runnable": len(look.runnable)}
    request_id = look.chosen.id if look.chosen else None
    _record(shift, ActivityKind.DECISION, data, request_id, None if request_id else NOTHING_RUNNABLE)


def _record(
    shift: Shift,
    kind: ActivityKind,
    data: Mapping[str, object],
    request_id: str | None = None,
    reason_code: str | None = None,
) -> None:
    now, who = shift.engine.time.now(), Actor.AUTO_RUN
    shift.engine.journal.append(Activity(now, kind, who, request_id, None, reason_code, data))


def _wait_for_work(shift: Shift) -> str | None:
    """Wait until something is runnable (`--watch`), or there is a reason to stop."""
    shift.facts = None
    shift.show(upcoming=(), runnable=0)
    shift.move(AutoRunEvent.WAIT_BEGAN)
    pause = WATCH_SECONDS
    while (reason := shift.why_stop()) is None:
        shift.wait(pause)
        begun = shift.engine.time.monotonic()
        look = _look(shift)
        if look.chosen is not None or to_recover(shift, look.backlog):
            break
        pause = max(WATCH_SECONDS, (shift.engine.time.monotonic() - begun) * WATCH_SHARE)
    shift.move(AutoRunEvent.WAIT_ENDED)
    return reason
