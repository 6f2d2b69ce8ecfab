"""One request of an auto-run (AUT-2): a run comes to its end and is counted, or could not even be started."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING

from aiflow.domain.agents.usage import Usage
from aiflow.domain.auto.session import RunEnded, never_again, record_end, record_failed_start
from aiflow.domain.backlog.selection import describe_holder
from aiflow.domain.lifecycle import AutoRunEvent, RunState
from aiflow.domain.lock import LockType
from aiflow.domain.request import RequestId
from aiflow.domain.run_summary import LOST
from aiflow.errors import AiflowError
from aiflow.usecases.health.check_health import UnhealthyError
from aiflow.usecases.runs.find import newest_run_id
from aiflow.usecases.runs.locks import occupant
from aiflow.usecases.runs.turn import wait_until_free

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiflow.domain.auto.session import Started
    from aiflow.domain.runs.run import Run
    from aiflow.usecases.auto.shift import Shift

WAY_SECONDS = 0.1
# A process that wants a turn and does not take it in this time has other problems.
GIVE_WAY_SECONDS = 5.0
# Between selection and start somebody was faster: what is next then is another question.
RACES = frozenset(
    {
        *("RUN_IN_PROGRESS", "REQUEST_LOCKED", "NOT_READY", "LATEST_RUN_NEEDS_INPUT"),
        *("DEPENDS_NOT_DONE", "DEPENDS_NOT_FOUND", "DEPENDS_CYCLE"),
        *("REQUEST_NOT_FOUND", "REQUEST_INVALID", "DUPLICATE_ID"),
    }
)
MOST_RACES = 3


def attempt(shift: Shift, started: Started, title: str, work: Callable[[], Run | None]) -> str | None:
    """Let one run come to its end and count it; returns the reason code if auto-run has to stop for it."""
    shift.begin(started, title)
    if shift.lease.is_lost:
        shift.put_down()
        return None
    try:
        run = work()
    except UnhealthyError as error:
        shift.put_down()
        shift.findings = error.findings
        return "DOCTOR_FAILED"
    except AiflowError as error:
        _take_failure(shift, started, error)
    else:
        counted = record_end(shift.session, ended_of(run)) if run is not None else shift.session
        if counted.results == shift.session.results:  # there was nothing to be had, or it was counted before
            _skip(shift, started, "REQUEST_LOCKED")
        else:
            shift.skipped.clear()
            shift.facts_of_end = run.error.facts if run is not None and run.error else ()  # if it is the last one
            shift.end(counted)
    return None


def ended_of(run: Run) -> RunEnded:
    """Sum up how a run ended."""
    reason_code = run.error.reason_code if run.error else None
    is_accepted = run.accepted_as is not None
    return RunEnded(run.request_id, run.state, reason_code, run.usage, run.run_id, is_accepted)


def _take_failure(shift: Shift, started: Started, error: AiflowError) -> None:
    """Count what went wrong outside a run; a race that was lost is none of it."""
    request_id, code = started.request_id, error.reason_code
    if code == "RUN_IN_PROGRESS" and occupant(shift.engine):
        shift.session = replace(shift.session, current=None)
        wait_for_lock(shift)
        return
    newest = newest_run_id(shift.engine, RequestId(request_id))
    run_id = newest if newest is not None and newest > (started.newest_before or "") else None
    if run_id is not None or code in ("LOCK_LOST", LOST):
        used = _usage_of(shift, request_id, run_id)
        counted = record_end(shift.session, RunEnded(request_id, RunState.FAILED, code, used, run_id))
        # What was lost is blocked now, and a person's to make ready again; all else would fail in the same way.
        shift.end(counted if code == LOST else never_again(counted, request_id))
    elif code in RACES:
        _skip(shift, started, code)
    else:
        shift.end(record_failed_start(shift.session, request_id, code))


def _usage_of(shift: Shift, request_id: str, run_id: str | None) -> Usage:
    """Return what a run's agents used, whatever became of it: the session has paid for it."""
    with contextlib.suppress(AiflowError):
        run = shift.engine.runs.load(request_id, run_id) if run_id is not None else None
        return run.usage if run is not None else Usage()
    return Usage()


def _skip(shift: Shift, started: Started, code: str) -> None:
    """Pass over a request that was not to be had; one that never is counts as a start that failed."""
    same = [request_id for request_id in shift.skipped if request_id == started.request_id]
    shift.skipped = [*same, started.request_id]
    if len(shift.skipped) >= MOST_RACES:
        shift.end(record_failed_start(shift.session, started.request_id, code))
    else:
        shift.put_down()


def gave_way(shift: Shift) -> bool:
    """Give way to a person who waits for their turn (`--wait`); True once they have it."""
    time = shift.engine.time
    until = time.monotonic() + GIVE_WAY_SECONDS
    while shift.engine.control.is_turn_wanted() and time.monotonic() < until and shift.why_stop() is None:
        if occupant(shift.engine):
            return True
        shift.wait(WAY_SECONDS)
    return occupant(shift.engine) is not None


def wait_for_lock(shift: Shift) -> None:
    """Wait until no other run is active in this checkout (LCK-7), or there is a reason to stop."""
    holder = occupant(shift.engine)
    waits_for = describe_holder(holder) if holder else None
    is_turn = holder is not None and holder.lock_type is LockType.TURN
    shift.move(AutoRunEvent.WAIT_BEGAN, running=None, waits_for=waits_for, is_turn=is_turn)
    wait_until_free(shift.engine, lambda: shift.why_stop() is not None)
    shift.facts = None
    shift.move(AutoRunEvent.WAIT_ENDED, waits_for=None)
