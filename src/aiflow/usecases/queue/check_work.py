"""Whether work could run at all (RUN-7, RUN-15): asked before it is queued, and shown while no runner is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.health import Health
from aiflow.domain.queue.why_waiting import StandingCode, standing_of
from aiflow.domain.request import RequestId
from aiflow.usecases.health.check_health import check_quick
from aiflow.usecases.read_backlog import without_dead_locks
from aiflow.usecases.runs.locks import in_progress, reclaim_locks
from aiflow.usecases.runs.recover import settle_or_refuse
from aiflow.usecases.runs.resume import decide
from aiflow.usecases.runs.start import backlog_around, require_unbarred
from aiflow.usecases.runs.update import require_waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from aiflow.domain.health import Finding
    from aiflow.domain.queue.task import Task
    from aiflow.domain.queue.why_waiting import QueueScene
    from aiflow.domain.request import Request
    from aiflow.domain.runs.run import Run
    from aiflow.usecases.engine import Engine
    from aiflow.usecases.runs.resume import ResumeWish


def require_startable(engine: Engine, request_id: RequestId) -> Request:
    """Return a request that a runner could start, or refuse with what keeps it."""
    backlog = without_dead_locks(backlog_around(engine, request_id), engine.locks)
    request = backlog.by_id.get(request_id)
    if request_id in backlog.lost:  # as the start itself would
        reclaim_locks(engine)
        settle_or_refuse(engine, request_id)
    if request is not None and request_id in backlog.interrupted:
        return request  # starting it continues the run that crashed (RUN-11)
    if request_id in backlog.locks:
        raise in_progress(backlog.locks[request_id], request_id)
    return require_unbarred(engine, request_id, backlog)


def require_resumable(engine: Engine, run: Run, wish: ResumeWish, *, updates: bool = False) -> None:
    """Refuse to continue a run that a runner could not continue either."""
    request_id = RequestId(run.request_id)
    if request_id in (locks := without_dead_locks(backlog_around(engine, request_id), engine.locks).locks):
        raise in_progress(locks[request_id], request_id)
    if run.is_active:
        return  # it crashed: the runner marks that first, and decides then
    if updates and not run.work.merges:
        require_waiting(engine, run)
    else:
        decide(engine, run, wish)


def foresee_refusal(engine: Callable[[], Engine], tasks: Iterable[Task], scene: QueueScene) -> tuple[Finding, ...]:
    """Return the doctor's checks that fail, if a task needs a runner of this checkout and none is running.

    They may be fixed before one starts, so the task is not refused. A running runner has its own settings,
    and reports itself what keeps it; one elsewhere has another checkout.
    """
    standings = (standing_of(task, scene) for task in tasks)
    if not any(each is not None and each.code is StandingCode.NO_RUNNER_HERE for each in standings):
        return ()
    _, findings = check_quick(engine())
    return tuple(each for each in findings if each.health is Health.FAIL)
