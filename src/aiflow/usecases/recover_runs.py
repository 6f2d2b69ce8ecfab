"""After a crash (RUN-11, LCK-5, REQ-5): stale locks reclaimed, interrupted runs found, requests set right."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.activity import Activity, ActivityKind, Actor
from aiflow.domain.lifecycle import RunOutcome, RunState
from aiflow.domain.lock import Lock
from aiflow.domain.request import RequestId, RequestStatus
from aiflow.domain.run_events import cancelled, crashed
from aiflow.domain.run_going_on import recovered
from aiflow.errors import AiflowError, EnvironmentProblemError
from aiflow.usecases.check_health import require_health
from aiflow.usecases.lock_run import owned, take_lock
from aiflow.usecases.notify import tell_waiting
from aiflow.usecases.replace_run import close_replaced
from aiflow.usecases.run_report import add_lines, end_run, keep_unfinished, record
from aiflow.usecases.run_work import Work, holding, taking_up, trailers_of
from aiflow.usecases.settle_run import settle_run, work_to_the_end

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from aiflow.domain.lock import LockStatus
    from aiflow.domain.run import Run
    from aiflow.ports import Lease
    from aiflow.usecases.engine import Engine


def reclaim_locks(engine: Engine) -> list[LockStatus]:
    """Remove the locks of dead holders, with a line in the journal and in the run's report for each (LCK-5)."""
    reclaimed = engine.locks.reclaim()
    for status in reclaimed:
        lock = status.lock
        engine.journal.append(
            Activity(
                engine.clock(),
                ActivityKind.RECOVERY,
                Actor.ENGINE,
                lock.request_id,
                lock.run_id,
                "LOCK_STALE_RECOVERED",
                {
                    "lock_type": lock.lock_type.value,
                    "pid": lock.pid,
                    "host": lock.host,
                    "verdict": status.verdict.value,
                },
            )
        )
        _tell_report(engine, status)
    return reclaimed


def _tell_report(engine: Engine, status: LockStatus) -> None:
    lock = status.lock
    run = engine.runs.load(lock.request_id, lock.run_id) if lock.request_id and lock.run_id else None
    if run is not None:
        when = engine.clock().isoformat(timespec="seconds")
        line = f"{when} LOCK_STALE_RECOVERED: pid {lock.pid}, {lock.host} ({status.verdict})"
        add_lines(engine, run, [line, ""])


def find_crashed(engine: Engine, request_id: RequestId) -> Run | None:
    """Return a request's run that was interrupted: active in its file, but nobody holds its lock."""
    latest = engine.runs.latest([request_id]).get(request_id)
    if latest is None or not latest.is_active or request_id in engine.locks.held()[0]:
        return None
    return engine.runs.load(request_id, latest.run_id)


def recover_run(engine: Engine, request_id: RequestId) -> Run | None:
    """Let a request's interrupted run go on to its end, once by itself; None if there is none (RUN-11)."""
    run = find_crashed(engine, request_id)
    if run is None:
        finished = _finish_acceptance(engine, request_id)
        if finished is not None:
            return finished
        orphan = settle_orphan(engine, request_id)
        if orphan is not None and orphan.is_lost:
            raise EnvironmentProblemError(reason_code="RUN_LOST", request_id=request_id, run_id=orphan.run_id)
        ended = engine.runs.load(request_id, orphan.run_id) if orphan is not None and orphan.run_id else None
        if ended is not None:
            tell_waiting(engine, ended)
        return ended
    require_health(engine, request_id, typed="run")
    # Somebody else may recover it already, or run something else.
    lease = take_lock(engine, request_id, run.run_id)
    return work_to_the_end(_take_over(engine, lease, run))


def _take_over(engine: Engine, lease: Lease, run: Run) -> Work:
    """Become the owner of an interrupted run; one whose request a person put away meanwhile only stops."""
    with taking_up(lease):
        current = engine.runs.load(run.request_id, run.run_id) or run
        work = Work(engine, lease, current)
        engine.journal.append(
            Activity(
                engine.clock(),
                ActivityKind.RECOVERY,
                Actor.ENGINE,
                run.request_id,
                run.run_id,
                "PROCESS_CRASHED",
                {"state": run.state.value, "step_id": run.current_step_id},
            )
        )
        refused = engine.source.claim(RequestId(run.request_id), run.run_id)
        mine = owned(engine, lease, current)
        keep_interrupted(work)
        if run.replaces:  # the crash may have come before the old run was closed
            close_replaced(engine, lease, run.request_id, run.replaces, run.run_id)
        if refused is not None:
            end_run(work, crashed(mine, engine.clock()))
        elif engine.control.is_cancelled(run.run_id):  # its process died before it could obey
            end_run(work, cancelled(mine, engine.clock()))
        else:
            again = recovered(mine, engine.limits, engine.clock())
            again = again if work.workspace.is_intact(again.place) else replace(again, is_prepared=False)
            record(work, again)
    return work


def _finish_acceptance(engine: Engine, request_id: RequestId) -> Run | None:
    """Go on with a run that was DONE when its process died, before it was accepted; None if there is none (REQ-6)."""
    latest = engine.runs.latest([request_id]).get(request_id)
    if latest is None or latest.state is not RunState.DONE or engine.settings.text("accept") != "auto":
        return None
    run = engine.runs.load(request_id, latest.run_id)
    if run is None or not _is_running(engine, request_id):
        return None
    lease = take_lock(engine, request_id, run.run_id, beside_others=True)
    with taking_up(lease):
        work = Work(engine, lease, engine.runs.load(request_id, run.run_id) or run)
    return work_to_the_end(work)


def _is_running(engine: Engine, request_id: RequestId) -> bool:
    try:
        return engine.source.load(request_id).status is RequestStatus.RUNNING
    except AiflowError:
        return False


def keep_interrupted(work: Work) -> None:
    """Keep what the interrupted step had changed as a patch (RUN-11)."""
    run, step_id = work.run, work.run.current_step_id
    if step_id is None or run.work.is_done:
        return
    unfinished = keep_unfinished(work, run, trailers_of(run, step_id))
    if unfinished is not None:
        with contextlib.suppress(AiflowError, OSError):  # the ref has it too
            work.engine.runs.write_patch(run, step_id, unfinished.patch)


def mark_crashed(engine: Engine, request_id: RequestId) -> Run | None:
    """Stop an interrupted run as NEEDS_INPUT, for a person to go on with; None if there is none (DOC-2).

    One that was cancelled when nobody was there to obey stops for that.
    """
    run = find_crashed(engine, request_id)
    if run is None:
        settle_orphan(engine, request_id)
        return None
    is_cancelled = engine.control.is_cancelled(run.run_id)
    lease = engine.locks.acquire_request(request_id, run.run_id, beside_others=is_cancelled)
    return (
        None
        if isinstance(lease, Lock)
        else stop_interrupted(engine, lease, run, cancelled if is_cancelled else crashed)
    )


def stop_interrupted(engine: Engine, lease: Lease, run: Run, end: Callable[[Run, datetime], Run]) -> Run:
    """Stop a run that nobody works on any more, its request with it; one that ended after all is left as it is."""
    with holding(engine, lease, run) as work:
        if not work.run.is_active:
            engine.control.clear(run.run_id)
            return work.run
        keep_interrupted(work)
        engine.source.claim(RequestId(run.request_id), run.run_id)
        end_run(work, end(work.run, engine.clock()))
        settle_run(work, work.run)
    return work.run


class Orphan(NamedTuple):
    """A request that was `running` with nobody at work: the run that had ended, or was lost."""

    run_id: str | None
    is_lost: bool


def settle_orphan(engine: Engine, request_id: RequestId) -> Orphan | None:
    """Set a request right that is `running` with nobody at work: as its latest run ended, or RUN_LOST (REQ-5)."""
    try:
        request = engine.source.load(request_id)
    except AiflowError:
        return None
    if request_id in engine.locks.held()[0]:
        return None
    _set_damaged_aside(engine, request_id)
    if request.status is not RequestStatus.RUNNING:
        return None
    latest = engine.runs.latest([request_id]).get(request_id)
    if latest is not None and latest.is_active:
        return None
    is_lost = latest is None or latest.reason_code == "RUN_LOST"
    run = engine.runs.load(request_id, latest.run_id) if latest else None
    outcome = RunOutcome.FAILED if run is None else run.outcome
    engine.source.settle(request_id, latest.run_id if latest else "", outcome)
    engine.journal.append(
        Activity(
            engine.clock(),
            ActivityKind.RECOVERY,
            Actor.ENGINE,
            request_id,
            latest.run_id if latest else None,
            "RUN_LOST" if is_lost else (latest.reason_code if latest else None),
            {"outcome": outcome.value},
        )
    )
    return Orphan(latest.run_id if latest else None, is_lost)


def _set_damaged_aside(engine: Engine, request_id: RequestId) -> None:
    """A run whose file says a state but cannot be read back could never go on: it is a lost one."""
    latest = engine.runs.latest([request_id]).get(request_id)
    if latest is None or latest.reason_code == "RUN_LOST" or engine.runs.load(request_id, latest.run_id) is not None:
        return
    engine.runs.set_aside(request_id, latest.run_id)
    kind, data = ActivityKind.RECOVERY, {"state": latest.state.value}
    engine.journal.append(Activity(engine.clock(), kind, Actor.ENGINE, request_id, latest.run_id, "RUN_LOST", data))
