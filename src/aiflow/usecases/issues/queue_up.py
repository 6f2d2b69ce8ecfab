"""Make tasks of labelled issues (`github.start = "queue"`, ISS-12): for a runner of this checkout, each wish once."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from aiflow.domain.claims import NO_RUNNER, NotStarted
from aiflow.domain.issue_ways import issue_number
from aiflow.domain.lifecycle import TaskStatus
from aiflow.domain.queue.order import Order
from aiflow.domain.queue.task import TaskAction
from aiflow.domain.queue.why_waiting import takers_of
from aiflow.errors import ConflictError
from aiflow.usecases.issues.ready import ready_issues
from aiflow.usecases.queue.desk import look_around
from aiflow.usecases.queue.enqueue import enqueue_work
from aiflow.usecases.runs.claims import tell_not_started

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiflow.domain.queue.task import Task
    from aiflow.domain.request import RequestId
    from aiflow.ports.issues import IssueCare
    from aiflow.usecases.engine import Engine
    from aiflow.usecases.queue.desk import Desk


# A task that ended with its issue still ready never became a run: another is made, so often and so long after it.
MOST_TASKS = 3
AGAIN_AFTER = timedelta(minutes=1)


def queue_issues(engine: Engine, care: IssueCare, open_desk: Callable[[], Desk]) -> tuple[Task, ...]:
    """Make a task of every issue that is ready and has none yet; the store is only opened if there is such an issue.

    A task's id derives from what asked for the run, a label or a comment: however often it is looked at, even by
    another checkout of the same queue, it is one task, and a task that ran is not queued again.
    """
    made: list[Task] = []
    desk: Desk | None = None
    for request in ready_issues(engine):
        number = issue_number(request.id)
        wish = care.wish(number) if number is not None else None
        if wish is None:
            continue
        desk = desk or open_desk()
        task_id = _free_id(desk, f"{request.id}.{wish.replace(':', '-')}")
        if task_id is None:
            _tell_of_no_runner(engine, desk, request.id)
            continue
        order = Order(TaskAction.START, request.id, priority=request.priority, task_id=task_id)
        try:
            task, is_new = enqueue_work(desk, order)
        except ConflictError:  # somebody queued it by hand
            continue
        made += [task] if is_new else []
    return tuple(made)


def _tell_of_no_runner(engine: Engine, desk: Desk, request_id: RequestId) -> None:
    """Inform the source of a request whose task nothing that is running would take (ISS-12)."""
    task = desk.queue.live_of(request_id)
    if task is None or task.status is not TaskStatus.QUEUED or desk.time.now() - task.created_at < AGAIN_AFTER:
        return
    if not takers_of(task, look_around(desk, ())):
        tell_not_started(engine, request_id, NotStarted(NO_RUNNER))


def _free_id(desk: Desk, first: str) -> str | None:
    """Return the id of the task that is to be made for a wish; None if there is one, or somebody cancelled it."""
    for number in range(1, MOST_TASKS + 1):
        task_id = first if number == 1 else f"{first}-{number}"
        task = desk.queue.get(task_id)
        if task is None:
            return task_id
        if task.status is not TaskStatus.ERROR or desk.time.now() - task.updated_at < AGAIN_AFTER:
            return None
    return None
