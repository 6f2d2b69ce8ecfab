"""Cancel a task (QUE-8): a queued one at once; a running one is taken from its runner, which ends the agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.activity import Activity, ActivityKind, Actor
from aiflow.domain.lifecycle import TaskStatus
from aiflow.domain.runner import is_fresh
from aiflow.domain.task import TaskAction
from aiflow.errors import AiflowError, ConflictError, NotFoundError
from aiflow.usecases.find_task import find_task, not_found
from aiflow.usecases.obey_cancels import mark_interrupted

if TYPE_CHECKING:
    from aiflow.domain.run import Run
    from aiflow.domain.runner import Runner
    from aiflow.domain.task import Task
    from aiflow.usecases.engine import Engine
    from aiflow.usecases.queue_desk import QueueDesk

REASON = "CANCELLED"


def cancel_task(desk: QueueDesk, engine: Engine, task_id: str, who: str) -> Task:
    """Cancel a task, or what goes on with it, and tell the runners of this machine; its interrupted runs are marked.

    Cancelled already is fine, TASK_NOT_ACTIVE if it ended otherwise and its work is not in the queue any more.
    """
    task = _cancel(desk, engine, find_task(desk.queue, task_id), who)
    data = {"asked": "cancel", "task_id": task.task_id, "namespace": task.namespace}
    request_id = None if task.action is TaskAction.AUTO_RUN else task.request_id
    desk.journal.append(
        Activity(desk.clock(), ActivityKind.DECISION, Actor.PERSON, request_id, task.run_id, REASON, data)
    )
    desk.wake.poke(task.namespace, task.task_id)
    return task


def live_delivery(desk: QueueDesk, task: Task) -> Task:
    """Return what goes on with a task, as far as that is in the queue; the task itself if nothing does."""
    seen = {task.task_id}
    while task.successor is not None and task.successor not in seen:
        following = desk.queue.get(task.successor)
        if following is None:  # its runner died on the way: the next one delivers it
            break
        seen.add(following.task_id)
        task = following
    return task


def _cancel(desk: QueueDesk, engine: Engine, named: Task, who: str) -> Task:
    """Cancel the delivery that lives; one that was handed on at this very moment is followed."""
    while True:
        task = live_delivery(desk, named)
        is_over = task.is_final and task.status is not TaskStatus.CANCELLED
        marked = () if is_over else _mark(desk, engine, task)
        try:
            return desk.queue.cancel(task.task_id, who, desk.clock())
        except NotFoundError as error:
            raise not_found(desk.queue, task.task_id) from error
        except ConflictError:
            for run in marked:
                engine.control.clear(run.run_id)
            named = find_task(desk.queue, task.task_id)
            if live_delivery(desk, named).task_id == task.task_id:
                raise


def _mark(desk: QueueDesk, engine: Engine, task: Task) -> tuple[Run, ...]:
    """Mark the interrupted runs of a task; that this cannot be done must not keep the task from being cancelled."""
    try:
        return mark_interrupted(engine, task, desk.checkout)
    except AiflowError:  # a full disk, or somebody else's checkout
        return ()


def holder_of(desk: QueueDesk, task: Task) -> Runner | None:
    """Return the runner that still has a cancelled task in its hands, and whose heartbeat says that it lives."""
    for runner in desk.runners.all():
        if runner.runner_id == task.claimed_by and runner.task_id == task.task_id:
            lives = is_fresh(runner, desk.clock(), desk.timeout_seconds) and not desk.is_gone(runner)
            return runner if lives else None
    return None
