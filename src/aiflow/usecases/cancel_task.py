"""Cancel a task (QUE-8): a queued one at once; a running one is taken from its runner, which ends the agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.activity import Activity, ActivityKind, Actor
from aiflow.domain.runner import is_fresh
from aiflow.domain.task import TaskAction
from aiflow.errors import NotFoundError
from aiflow.usecases.find_task import not_found

if TYPE_CHECKING:
    from aiflow.domain.runner import Runner
    from aiflow.domain.task import Task
    from aiflow.usecases.queue_desk import QueueDesk

REASON = "CANCELLED"


def cancel_task(desk: QueueDesk, task_id: str, who: str) -> Task:
    """Cancel a task and tell the runners of this machine; cancelled already is fine, TASK_NOT_ACTIVE if it ended."""
    try:
        task = desk.queue.cancel(task_id, who, desk.clock())
    except NotFoundError as error:
        raise not_found(desk.queue, task_id) from error
    data = {"asked": "cancel", "task_id": task_id, "namespace": task.namespace}
    request_id = None if task.action is TaskAction.AUTO_RUN else task.request_id
    desk.journal.append(
        Activity(desk.clock(), ActivityKind.DECISION, Actor.PERSON, request_id, task.run_id, REASON, data)
    )
    desk.wake.poke(task.namespace, task_id)
    return task


def holder_of(desk: QueueDesk, task: Task) -> Runner | None:
    """Return the runner that still has a cancelled task in its hands, and whose heartbeat says that it lives."""
    for runner in desk.runners.all():
        if runner.runner_id == task.claimed_by and runner.task_id == task.task_id:
            lives = is_fresh(runner, desk.clock(), desk.timeout_seconds) and not desk.is_gone(runner)
            return runner if lives else None
    return None
