"""Put what was interrupted in this checkout into the queue (RUN-11): a runner recovers it like any other work.

What a person cancelled while nobody was there to obey is not work any more: its run only stops (RUN-12, QUE-6).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.delivery import is_called_off
from aiflow.domain.lifecycle import TaskStatus
from aiflow.domain.request import DEFAULT_PRIORITY
from aiflow.domain.run_events import cancelled
from aiflow.domain.task import Task, TaskAction
from aiflow.errors import ConflictError
from aiflow.usecases.find_interrupted import with_interrupted
from aiflow.usecases.read_backlog import read_backlog
from aiflow.usecases.recover_runs import mark_crashed, reclaim_locks
from aiflow.usecases.runner_desk import News, NewsKind

if TYPE_CHECKING:
    from aiflow.domain.request import Request, RequestId
    from aiflow.usecases.runner_desk import Desk


def queue_recoveries(desk: Desk, known: set[str]) -> None:
    """Enqueue a start for each request whose run nobody works on and that has no live task; each run once.

    `known` remembers which were enqueued: what could not be recovered is not tried for ever (RUN-14).
    """
    engine = desk.engine
    reclaim_locks(engine)
    backlog = with_interrupted(read_backlog(engine.backlog), engine.locks)
    for request_id in sorted(backlog.interrupted):
        run = backlog.runs.get(request_id)
        name = run.run_id if run else request_id
        if name in known:
            continue
        if run is not None and _is_cancelled(desk, request_id, run.run_id):
            mark_crashed(engine, request_id, cancelled)
        else:
            _enqueue(desk, backlog.by_id[request_id], run.run_id if run else None)
        known.add(name)


def _is_cancelled(desk: Desk, request_id: RequestId, run_id: str) -> bool:
    """Tell whether the task of an interrupted run, or what was to go on with it, was cancelled since the run's end."""
    run = desk.engine.runs.load(request_id, run_id)
    if run is None:
        return False
    own = desk.queue.get(run.task_id) if run.task_id else None
    ended = (task for page in desk.queue.pages([TaskStatus.CANCELLED]) for task in page.tasks)
    return any(is_called_off(run, task, own) for task in ended)


def _enqueue(desk: Desk, request: Request, run_id: str | None) -> None:
    now = desk.engine.clock()
    task = Task(
        namespace=desk.queue.namespace,
        task_id=desk.new_task_id(),
        action=TaskAction.START,
        request_id=request.id,
        created_at=now,
        updated_at=now,
        place_at=now,
        priority=request.priority or DEFAULT_PRIORITY,
        checkout=desk.runner.checkout,
        run_id=run_id,
    )
    try:
        queued = desk.queue.enqueue(task)
    except ConflictError as error:  # its task lives, or is about to be seen to by a reaper
        if error.reason_code != "REQUEST_QUEUED":
            raise
        return
    desk.tell(News(NewsKind.RECOVERING, queued, "PROCESS_CRASHED"))
