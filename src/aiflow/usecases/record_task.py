"""Work in a terminal beside a shared store (SPEC §0): recorded as a task that no other runner finds, and our own.

Everybody who looks at the queue sees it and can cancel it, its request has no second live task, and its runner beats
like any other. It ends with what is done in the terminal: nobody goes on with it.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from aiflow.domain.lifecycle import TaskStatus
from aiflow.domain.request import DEFAULT_PRIORITY, Priority, RequestId
from aiflow.domain.task import Task, TaskAction
from aiflow.errors import AiflowError, ConflictError
from aiflow.usecases.execute_task import end_for_error, watched
from aiflow.usecases.finish_task import finish_task
from aiflow.usecases.heartbeat import Hold
from aiflow.usecases.obey_cancels import obeys_cancel
from aiflow.usecases.reap_runners import end_stray
from aiflow.usecases.recover_runs import reclaim_locks
from aiflow.usecases.runner_desk import TROUBLES
from aiflow.usecases.work_tasks import at_post

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiflow.domain.task import TaskEnd
    from aiflow.usecases.engine import Engine
    from aiflow.usecases.heartbeat import Heartbeat
    from aiflow.usecases.runner_desk import Desk

Result = TypeVar("Result")


class Errand(NamedTuple):
    """What is done in the terminal, and with which request."""

    action: TaskAction
    request_id: str
    run_id: str | None = None
    priority: Priority = DEFAULT_PRIORITY


def record_task(
    desk: Desk, errand: Errand, work: Callable[[Engine], Result], end_of: Callable[[Hold, Result], TaskEnd]
) -> Result:
    """Do something as a task of our own; `end_of` says how the task ends with what came of it."""
    desk = replace(desk, runner=replace(desk.runner, is_terminal=True))
    with at_post(desk) as heartbeat:
        hold = heartbeat.take(_claim(desk, errand))
        try:
            _obey_cancels(desk, errand)
            result = work(watched(desk.engine, heartbeat, hold.task))
        except Exception as error:
            _finish(desk, heartbeat, hold, end_for_error(hold, error, desk.engine.mask))
            raise
        _finish(desk, heartbeat, hold, end_of(hold, result))
        return result


def _obey_cancels(desk: Desk, errand: Errand) -> None:
    """Stop, before anything is recovered, what was cancelled in the queue when nobody was here to obey."""
    engine, is_auto = desk.engine, errand.action is TaskAction.AUTO_RUN
    reclaim_locks(engine)
    latest = engine.runs.latest(None if is_auto else [RequestId(errand.request_id)])
    for request_id, run in latest.items():
        if run.is_active:
            obeys_cancel(desk, request_id)


def _claim(desk: Desk, errand: Errand) -> Task:
    """Enqueue the task and claim it; where its request has a live task already, that is said (REQUEST_QUEUED)."""
    task = _own_task(desk, errand)
    try:
        queued = _enqueued(desk, task)
        claimed = desk.queue.claim_this(queued.task_id, desk.claimant, desk.engine.clock())
    except Exception as error:
        _let_go(desk, task, error)
        raise
    if claimed is None:  # somebody was so quick to cancel it
        raise ConflictError(reason_code="TASK_NOT_ACTIVE", task_id=queued.task_id, status="CANCELLED")
    return claimed


def _own_task(desk: Desk, errand: Errand) -> Task:
    """Make the task; it names us from the start, so that nobody takes it for a living one's if we are killed."""
    now = desk.engine.clock()
    return Task(
        namespace=desk.queue.namespace,
        task_id=desk.new_task_id(),
        action=errand.action,
        request_id=errand.request_id,
        created_at=now,
        updated_at=now,
        place_at=now,
        priority=errand.priority,
        checkout=desk.runner.checkout,
        run_id=errand.run_id,
        claimed_by=desk.runner.runner_id,
        is_private=True,
    )


def _enqueued(desk: Desk, task: Task) -> Task:
    """Put the task into the queue; one of its request whose owner was killed or cut off is ended first."""
    try:
        return desk.queue.enqueue(task)
    except ConflictError as error:
        if error.reason_code != "REQUEST_QUEUED":
            raise
        end_stray(desk, task.request_id)
        return desk.queue.enqueue(task)


def _let_go(desk: Desk, task: Task, error: Exception) -> None:
    """End our task if it came to be, as far as that can be done now; else whoever comes next sees to it."""
    with contextlib.suppress(AiflowError):
        claimed = desk.queue.claim_this(task.task_id, desk.claimant, desk.engine.clock())
        held = claimed or desk.queue.get(task.task_id)
        if held is not None and held.status is TaskStatus.RUNNING:
            desk.queue.finish(held, end_for_error(Hold(held), error, desk.engine.mask), desk.engine.clock())


def _finish(desk: Desk, heartbeat: Heartbeat, hold: Hold, end: TaskEnd) -> None:
    """End the task; that the store is away does not change what was done, and a reaper finds the task."""
    try:
        finish_task(desk, heartbeat, hold, end)
    except AiflowError as error:
        if error.reason_code not in TROUBLES:
            raise
        message = desk.engine.texts.message(error.reason_code, dict(error.context))
        desk.engine.warn(f"{error.reason_code}: {message.title}")
        return
    heartbeat.put_down()
