"""Bring a finished run in line with its base branch (GIT-3, `resume --update`): merged in, resolved, tested again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.lifecycle import RunState
from aiflow.domain.merge import merge_ref
from aiflow.domain.plan import merging_step
from aiflow.domain.request import RequestId
from aiflow.domain.run_events import updated
from aiflow.errors import ConflictError
from aiflow.usecases.accept_run import refused, require_done, require_saved
from aiflow.usecases.check_health import require_health
from aiflow.usecases.lock_run import owned, take_lock
from aiflow.usecases.recover_runs import reclaim_locks
from aiflow.usecases.resume_run import Wish, claim, resume_run
from aiflow.usecases.run_work import Work, taking_up
from aiflow.usecases.settle_run import work_to_the_end

if TYPE_CHECKING:
    from aiflow.domain.run import Run
    from aiflow.ports import Lease
    from aiflow.usecases.engine import Engine


def update_run(engine: Engine, run: Run, wish: Wish) -> Run:
    """Merge the base branch into a finished run's branch and work on that to its end.

    A run that stopped in the middle of this simply goes on.
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
    """Make the merge and enter its step; it is laid out when the worktree is prepared, also after a kill."""
    require_waiting(engine, run)
    require_saved(engine, run)
    free = merging_step(run.plan, run.place.base_branch, ())
    if free is None:
        raise ConflictError(
            reason_code="RUN_NOT_RESUMABLE", request_id=run.request_id, detail=engine.texts("update.no_step")
        )
    update = engine.merging.update(run.place, merge_ref(run.run_id, free.id))
    step = merging_step(run.plan, run.place.base_branch, update.conflicts)
    assert step is not None, run.run_id
    work = Work(engine, lease, run)
    claim(engine, run)
    again = owned(engine, lease, updated(run, step, update, engine.clock()))
    engine.runs.write_planning(again)
    work.save(again)
    return work


def require_waiting(engine: Engine, run: Run) -> None:
    """Refuse what is not finished, or is in the base branch already."""
    require_done(engine, run)
    if run.accepted_as:
        raise refused(run, f"{run.run_id} is accepted")
