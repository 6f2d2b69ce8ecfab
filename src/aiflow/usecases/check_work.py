"""Whether work could run at all (RUN-15), asked before it is put into the queue.

As `run` and `resume` ask it, but that another run is at work is no obstacle: a task simply waits (LCK-7). The runner
asks again when it has claimed the task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.request import RequestId
from aiflow.usecases.find_interrupted import with_interrupted
from aiflow.usecases.lock_run import in_progress
from aiflow.usecases.resume_run import decide
from aiflow.usecases.start_run import backlog_around, require_unbarred
from aiflow.usecases.update_run import require_waiting

if TYPE_CHECKING:
    from aiflow.domain.request import Request
    from aiflow.domain.run import Run
    from aiflow.usecases.engine import Engine
    from aiflow.usecases.resume_run import Wish


def require_startable(engine: Engine, request_id: RequestId) -> Request:
    """Return a request that a runner could start, or refuse with what keeps it."""
    backlog = with_interrupted(backlog_around(engine, request_id), engine.locks)
    request = backlog.by_id.get(request_id)
    if request is not None and request_id in backlog.interrupted:
        return request  # starting it goes on with the run that crashed (RUN-11)
    if request_id in backlog.locks:
        raise in_progress(backlog.locks[request_id])
    return require_unbarred(engine, request_id, backlog)


def require_resumable(engine: Engine, run: Run, wish: Wish, *, updates: bool = False) -> None:
    """Refuse to let a run go on that a runner could not let go on either."""
    request_id = RequestId(run.request_id)
    holder = engine.locks.held()[0].get(request_id)
    if holder is not None and request_id not in _interrupted(engine, request_id):
        raise in_progress(holder)
    if run.is_active:
        return  # it crashed: the runner marks that first, and decides then
    if updates and not run.work.merges:
        require_waiting(engine, run)
    else:
        decide(engine, run, wish)


def _interrupted(engine: Engine, request_id: RequestId) -> frozenset[RequestId]:
    return with_interrupted(backlog_around(engine, request_id), engine.locks).interrupted
