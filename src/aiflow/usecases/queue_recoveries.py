"""Put what was interrupted in this checkout into the queue (RUN-11): a runner recovers it like any other work.

What a person cancelled while nobody was there to obey is not work any more: its run only stops (RUN-12, QUE-6).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.request import DEFAULT_PRIORITY
from aiflow.domain.task import Task, TaskAction
from aiflow.errors import ConflictError
from aiflow.usecases.find_interrupted import with_interrupted
from aiflow.usecases.obey_cancels import obeys_cancel
from aiflow.usecases.read_backlog import read_backlog
from aiflow.usecases.recover_runs import reclaim_locks
from aiflow.usecases.runner_desk import News, NewsKind

if TYPE_CHECKING:
    from aiflow.domain.request import Request
    from aiflow.usecases.runner_desk import Desk


def queue_recoveries(desk: Desk, known: set[str]) -> None:
    """Enqueue a start for each request whose run nobody works on and that has no live task; each run once.

    `known` remembers which were enqueued and are still not recovered: those are not tried for ever (RUN-14).
    """
    engine = desk.engine
    reclaim_locks(engine)
    backlog = with_interrupted(read_backlog(engine.backlog), engine.locks)
    run_ids = {request_id: run.run_id for request_id, run in backlog.runs.items()}
    names = {request_id: run_ids.get(request_id, request_id) for request_id in sorted(backlog.interrupted)}
    known.intersection_update(names.values())
    for request_id, name in names.items():
        if name in known:
            continue
        if obeys_cancel(desk, request_id) or _enqueue(desk, backlog.by_id[request_id], run_ids.get(request_id)):
            known.add(name)


def _enqueue(desk: Desk, request: Request, run_id: str | None) -> bool:
    """Enqueue one; False if it has a live task: that goes on with it, or is about to be seen to by a reaper."""
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
    except ConflictError as error:
        if error.reason_code != "REQUEST_QUEUED":
            raise
        return False
    desk.tell(News(NewsKind.RECOVERING, queued, "PROCESS_CRASHED"))
    return True
