"""Bring a finished run in line with its base branch (GIT-3, `resume --update`): merged in, resolved, tested again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.lifecycle import RunState
from aiflow.domain.request import RequestId
from aiflow.domain.runs.base_merging import updated
from aiflow.domain.runs.resume import Goal, ResumeMode
from aiflow.domain.runs.undoing import undone_of
from aiflow.errors import ConflictError
from aiflow.messages.details import words
from aiflow.usecases.health.check_health import require_health
from aiflow.usecases.runs.accept import accept_run, refused, require_done, require_saved
from aiflow.usecases.runs.base_merge import merge_base
from aiflow.usecases.runs.claims import require_claim
from aiflow.usecases.runs.locks import owned, reclaim_locks, take_lock
from aiflow.usecases.runs.resume import ResumeWish, resume_run
from aiflow.usecases.runs.trial import put_back
from aiflow.usecases.runs.undo import catch_up
from aiflow.usecases.runs.work import Work, taking_up
from aiflow.usecases.runs.work_to_the_end import work_to_the_end

if TYPE_CHECKING:
    from aiflow.domain.runs.run import Run
    from aiflow.ports import Lease
    from aiflow.usecases.engine import Engine


def accept_updated(engine: Engine, run: Run) -> Run:
    """Accept a run; where it conflicts with the base, bring it in line first, then accept it (`accept --update`)."""
    run = accept_run(engine, run)
    if run.error is None or run.error.reason_code != "MERGE_CONFLICT":
        return run
    run = update_run(engine, run, ResumeWish(Goal(ResumeMode.RESUME)))
    is_finished = run.state is RunState.DONE and not run.accepted_as and not engine.voice.interrupted()
    return accept_run(engine, run) if is_finished else run


def update_run(engine: Engine, run: Run, wish: ResumeWish) -> Run:
    """Merge the base branch into a finished run's branch and work on that to its end.

    A run that stopped in the middle of this simply continues.
    """
    if run.state is not RunState.DONE and run.work.merges:
        return resume_run(engine, run, wish)
    request_id = RequestId(run.request_id)
    reclaim_locks(engine)
    require_waiting(engine, run)
    require_health(engine, request_id)
    lease = take_lock(engine, request_id, run.run_id)
    with taking_up(lease):
        work = _merge_base(engine, lease, engine.runs.load(run.request_id, run.run_id) or run)
    return work_to_the_end(work)


def _merge_base(engine: Engine, lease: Lease, run: Run) -> Work:
    """Make the merge and enter its step; it is laid out when the worktree is prepared, even after a kill."""
    work = Work(engine, lease, run)
    catch_up(work)
    run = work.run
    require_waiting(engine, run)
    put_back(work)
    require_saved(engine, run)
    merge = merge_base(engine, run, undone_of(run))
    if merge is None:
        raise ConflictError(
            reason_code="RUN_NOT_RESUMABLE", request_id=run.request_id, detail=engine.voice.texts("update.no_step")
        )
    require_claim(engine, run.request_id, run.run_id)
    again = owned(engine, lease, updated(run, *merge, engine.time.now()))
    engine.runs.write_planning(again)
    work.save(again)
    return work


def require_waiting(engine: Engine, run: Run) -> None:
    """Refuse what is not finished, or is in the base branch already."""
    require_done(engine, run)
    if run.accepted_as:
        raise refused(run, words("refused.accepted", run_id=run.run_id))
