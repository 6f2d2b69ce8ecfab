"""After a crash (RUN-11, LCK-5, REQ-5): stale locks reclaimed, interrupted runs found, requests set right."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.activity import About, Actor
from aiflow.domain.activity import recovered as recovered_entry
from aiflow.domain.agents.call import Brief
from aiflow.domain.claims import Dropped, Lost
from aiflow.domain.lifecycle import RunOutcome, RunState
from aiflow.domain.lock import Lock
from aiflow.domain.request import RequestId, RequestStatus
from aiflow.domain.run_summary import LOST, is_lost
from aiflow.domain.runs.events import cancelled, crashed
from aiflow.domain.runs.resume_events import lost, recovered
from aiflow.domain.runs.worktree import Place, branch_name
from aiflow.errors import AiflowError, EnvironmentProblemError
from aiflow.usecases.health.check_health import require_health
from aiflow.usecases.runs.baseline import on_newest_base
from aiflow.usecases.runs.claims import claim, settle
from aiflow.usecases.runs.ending import end_run, keep_unfinished, record
from aiflow.usecases.runs.find import newest_run_id
from aiflow.usecases.runs.locks import owned, require_free, take_lock
from aiflow.usecases.runs.notify import tell_waiting
from aiflow.usecases.runs.replace import link_former
from aiflow.usecases.runs.settle import settle_run
from aiflow.usecases.runs.work import Work, holding, taking_up, trailers_of
from aiflow.usecases.runs.work_to_the_end import work_to_the_end

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from aiflow.domain.claims import Settled
    from aiflow.domain.run_summary import RunSummary
    from aiflow.domain.runs.run import Run
    from aiflow.ports import Lease
    from aiflow.usecases.engine import Engine


def find_crashed(engine: Engine, request_id: RequestId) -> Run | None:
    """Return a request's run that was interrupted: active in its file, but its lock is free."""
    _make_drafted(engine, request_id)
    latest = engine.runs.latest([request_id]).get(request_id)
    if latest is None or not latest.is_active or engine.locks.holder_of(request_id):
        return None
    return engine.runs.load(request_id, latest.run_id)


def _make_drafted(engine: Engine, request_id: RequestId) -> None:
    """Make the run that had claimed its request when its process crashed, before it was made: it counts as crashed."""
    drafted = engine.runs.drafted(request_id)
    if drafted is None or not _is_unmade(engine, drafted[0]):
        return
    lease = engine.locks.acquire_request(request_id, drafted[0].run_id, beside_others=True)
    if isinstance(lease, Lock):
        return
    try:
        # Somebody may have made it, or drafted another, before the lock was ours.
        drafted = engine.runs.drafted(request_id)
        if drafted is None or not _is_unmade(engine, drafted[0]):
            return
        answer = claim(engine, request_id, drafted[0].run_id)
        with lease.writing():
            if isinstance(answer, Lost):
                engine.runs.discard(request_id)
            else:
                engine.runs.create(*drafted)
    finally:
        lease.release()


def _is_unmade(engine: Engine, run: Run) -> bool:
    """Return whether a drafted run is what its request is `running` for: no process has it, and no run is newer."""
    request_id = RequestId(run.request_id)
    holder = engine.locks.holder_of(request_id)
    if holder is not None and holder.run_id != run.run_id:
        return False
    newest = next((each.run_id for each in engine.runs.all_of(request_id)), "")
    return newest < run.run_id and engine.source.status(request_id) is RequestStatus.RUNNING


def recover_run(engine: Engine, request_id: RequestId) -> Run | None:
    """Let a request's interrupted run continue to its end, once automatically; None if there is none (RUN-11)."""
    run = find_crashed(engine, request_id)
    if run is not None:
        require_health(engine, request_id, typed="run")
        # Somebody else may recover it already, or run something else.
        lease = take_lock(engine, request_id, run.run_id)
        return work_to_the_end(_take_over(engine, lease, run))
    finished = _finish_acceptance(engine, request_id)
    if finished is not None:
        return finished
    require_free(engine, request_id)
    orphan = settle_or_refuse(engine, request_id)
    ended = engine.runs.load(request_id, orphan.run_id) if orphan is not None and orphan.run_id else None
    if ended is not None:
        tell_waiting(engine, ended)
    return ended


def _take_over(engine: Engine, lease: Lease, run: Run) -> Work:
    """Become the owner of an interrupted run; one whose request a person put away meanwhile only stops."""
    with taking_up(lease):
        current = engine.runs.load(run.request_id, run.run_id) or run
        work = Work(engine, lease, current)
        data = {"state": run.state.value, "step_id": run.current_step_id}
        engine.journal.append(recovered_entry(engine.time.now(), Actor.ENGINE, run, "PROCESS_CRASHED", **data))
        answer = claim(engine, run.request_id, run.run_id)
        mine = owned(engine, lease, current)
        keep_interrupted(work)
        link_former(engine, lease, current)  # the crash may have come before the old run was closed
        if isinstance(answer, Lost):
            end_run(work, crashed(mine, engine.time.now()))
        elif engine.control.is_cancelled(run.run_id):  # its process crashed before it could obey
            end_run(work, cancelled(mine, engine.time.now()))
        else:
            again = recovered(mine, engine.limits, engine.time.now())
            again = again if work.workspace.is_intact(again.place) else replace(again, is_prepared=False)
            record(work, on_newest_base(work, again) if again.is_active and again.needs_baseline else again)
    return work


def _finish_acceptance(engine: Engine, request_id: RequestId) -> Run | None:
    """Continue a run that was DONE when its process crashed, before it was accepted; None if there is none (REQ-6)."""
    latest = engine.runs.latest([request_id]).get(request_id)
    if latest is None or latest.state is not RunState.DONE or engine.settings.text("accept") != "auto":
        return None
    run = engine.runs.load(request_id, latest.run_id)
    if run is None or engine.source.status(request_id) is not RequestStatus.RUNNING:
        return None
    lease = take_lock(engine, request_id, run.run_id, beside_others=True)
    with taking_up(lease):
        work = Work(engine, lease, engine.runs.load(request_id, run.run_id) or run)
    return work_to_the_end(work)


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
    """Stop an interrupted run as NEEDS_INPUT, for a person to continue; None if there is none (DOC-2).

    One that was cancelled when no process was there to obey stops for that.
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
    """Stop a run that no process works on any more, its request with it; one that ended after all is left as it is."""
    with holding(engine, lease, run) as work:
        if not work.run.is_active:
            engine.control.clear(run.run_id)
            return work.run
        keep_interrupted(work)
        link_former(engine, lease, work.run)  # the crash may have come before the old run was closed
        answer = claim(engine, run.request_id, run.run_id)
        end_run(work, end(work.run, engine.time.now()))
        if isinstance(answer, Lost):  # a person or another run has the request: this end is none of its business
            engine.control.clear(run.run_id)
        else:
            settle_run(work, work.run)
    return work.run


def settle_or_refuse(engine: Engine, request_id: RequestId) -> Orphan | None:
    """Correct a request that is `running` with no process at work, and refuse one whose run was lost."""
    orphan = settle_orphan(engine, request_id)
    if orphan is not None and orphan.is_lost:
        raise EnvironmentProblemError(reason_code=LOST, request_id=request_id, run_id=orphan.run_id)
    return orphan


class Orphan(NamedTuple):
    """A request that was `running` with no process at work: the run that had ended, or was lost."""

    run_id: str | None
    is_lost: bool


def settle_orphan(engine: Engine, request_id: RequestId) -> Orphan | None:
    """Correct a request that is `running` with no process at work: as its latest run ended, or RUN_LOST (REQ-5)."""
    status = engine.source.status(request_id)
    if status is not RequestStatus.RUNNING or engine.locks.holder_of(request_id):
        return None
    _make_drafted(engine, request_id)
    latest = engine.runs.latest([request_id]).get(request_id)
    if latest is not None and latest.is_active:
        return None
    if latest is None or is_lost(latest):
        return _settle_lost(engine, request_id, latest)
    run = engine.runs.load(request_id, latest.run_id)
    outcome = run.outcome if run else RunOutcome.FAILED
    if _is_anothers(settle(engine, request_id, latest.run_id, outcome)):
        return _settle_lost(engine, request_id, None)
    return _settled(engine, Orphan(latest.run_id, is_lost=False), request_id, (latest.reason_code, outcome))


def _settle_lost(engine: Engine, request_id: RequestId, latest: RunSummary | None) -> Orphan | None:
    """Block a request of whose run nothing is left; a run that says so takes its place, to explain why."""
    run_id = engine.new_run_id(newest_run_id(engine, request_id))
    lease = engine.locks.acquire_request(request_id, run_id, beside_others=True)
    if isinstance(lease, Lock):
        return None
    try:
        if engine.source.status(request_id) is not RequestStatus.RUNNING:  # somebody was faster
            return None
        answer = settle(engine, request_id, latest.run_id if latest else "", RunOutcome.FAILED)
        if _is_anothers(answer):
            answer = settle(engine, request_id, "", RunOutcome.FAILED)
        if isinstance(answer, Dropped):
            return None
        if latest is not None and latest.reason_code == LOST:  # something of it is left, and says so already
            run_id = latest.run_id
        else:
            with lease.writing():
                engine.runs.create(*_lost_run(engine, request_id, run_id))
    finally:
        lease.release()
    return _settled(engine, Orphan(run_id, is_lost=True), request_id, (LOST, RunOutcome.FAILED))


def _lost_run(engine: Engine, request_id: RequestId, run_id: str) -> tuple[Run, Brief]:
    """Write down that a run was here of which nothing is left."""
    place = Place(run_id, engine.workshop.worktree_path(run_id), branch_name(request_id, run_id), "", "")
    title = engine.source.load(request_id).title
    run = replace(lost(request_id, place, title, engine.time.now()), agent=engine.agent_name)
    return run, Brief(request_id, title, "", "")


def _settled(engine: Engine, orphan: Orphan, request_id: RequestId, how: tuple[str | None, RunOutcome]) -> Orphan:
    """Record how a request was set right."""
    why, outcome = how
    about = About(request_id, orphan.run_id)
    engine.journal.append(recovered_entry(engine.time.now(), Actor.ENGINE, about, why, outcome=outcome.value))
    return orphan


def _is_anothers(answer: Settled | Dropped) -> bool:
    """Return whether a request is claimed by another run than the one that was named."""
    return isinstance(answer, Dropped) and answer.holder is not None
