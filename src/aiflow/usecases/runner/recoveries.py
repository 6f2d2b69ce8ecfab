"""Put what was interrupted in this checkout into the queue (RUN-11): a runner recovers it like any other work.

A task that a person cancelled while its runner was gone is no longer work: its run only stops (RUN-12, QUE-6).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.queue.order import Order, new_task
from aiflow.domain.queue.task import TaskAction
from aiflow.domain.request import DEFAULT_PRIORITY
from aiflow.errors import ConflictError
from aiflow.usecases.read_backlog import read_backlog, with_interrupted
from aiflow.usecases.runner.cancelled import obeys_cancel
from aiflow.usecases.runner.desk import NewsKind, RunnerNews
from aiflow.usecases.runs.locks import reclaim_locks

if TYPE_CHECKING:
    from aiflow.domain.request import Request, RequestId
    from aiflow.usecases.runner.desk import RunnerDesk


def queue_recoveries(desk: RunnerDesk, known: set[str]) -> None:
    """Queue a start for each request with an interrupted run and no unfinished task; each run once.

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
        if obeys_cancel(desk, request_id) or _enqueue(desk, backlog.by_id[request_id], _active_run(desk, request_id)):
            known.add(name)


def _active_run(desk: RunnerDesk, request_id: RequestId) -> str | None:
    """Return the run to continue; one that had ended before was not interrupted."""
    latest = desk.engine.runs.latest([request_id]).get(request_id)
    return latest.run_id if latest is not None and latest.is_active else None


def _enqueue(desk: RunnerDesk, request: Request, run_id: str | None) -> bool:
    """Queue one; False if it has an unfinished task: that continues it, or a reaper will handle it."""
    priority = request.priority or DEFAULT_PRIORITY
    now = desk.time.now()
    order = Order(TaskAction.START, request.id, run_id, priority=priority, task_id=desk.new_task_id(now))
    task = new_task(desk.queue.namespace, order, now, desk.checkout)
    try:
        queued = desk.queue.enqueue(task)
    except ConflictError as error:
        if error.reason_code != "REQUEST_QUEUED":
            raise
        return False
    desk.tell(RunnerNews(NewsKind.RECOVERING, queued, "PROCESS_CRASHED"))
    return True
