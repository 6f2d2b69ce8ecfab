"""Hand work to a runner (QUE-3, QUE-9, QUE-11): one task in the queue, and whoever waits on this machine is told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.activity import Activity, ActivityKind, Actor
from aiflow.domain.request import Priority
from aiflow.domain.task import (
    Task,
    TaskAction,
    auto_run_guard,
    check_prompt,
    check_task_id,
    new_task_id,
    prompt_request_id,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from aiflow.usecases.queue_desk import QueueDesk

# What a new request has too, where nobody says otherwise.
USUAL_PRIORITY = Priority.P2


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be done: with a request, with a run of it, with the whole backlog, or as a bare prompt says."""

    action: TaskAction
    request_id: str = ""
    run_id: str | None = None
    prompt: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    priority: Priority = USUAL_PRIORITY
    task_id: str | None = None


class Enqueued(NamedTuple):
    """The task as it is in the queue; not new if one with this id was there already, for the same work."""

    task: Task
    is_new: bool


def enqueue_work(desk: QueueDesk, order: Order) -> Enqueued:
    """Put an order into the queue; REQUEST_QUEUED if its request has a live task, TASK_EXISTS if the id is taken."""
    prompt = check_prompt(order.prompt) if order.action is TaskAction.PROMPT or order.prompt else ""
    wanted = _task(desk, order, desk.clock())
    task = desk.queue.enqueue(wanted, prompt)
    is_new = task.created_at == wanted.created_at
    if is_new:
        desk.journal.append(_entry(task))
    desk.wake.poke(task.namespace, task.task_id)
    return Enqueued(task, is_new)


def _task(desk: QueueDesk, order: Order, now: datetime) -> Task:
    task_id = check_task_id(order.task_id) if order.task_id else new_task_id(now, desk.chance())
    subjects = {TaskAction.PROMPT: prompt_request_id(task_id), TaskAction.AUTO_RUN: auto_run_guard(desk.checkout)}
    return Task(
        namespace=desk.queue.namespace,
        task_id=task_id,
        action=order.action,
        request_id=subjects.get(order.action, order.request_id),
        created_at=now,
        updated_at=now,
        place_at=now,
        priority=order.priority,
        # A bare prompt may be taken by any runner of the namespace; everything else needs this checkout's files.
        checkout=None if order.action is TaskAction.PROMPT else desk.checkout,
        options=order.options,
        run_id=order.run_id,
    )


def _entry(task: Task) -> Activity:
    data = {"asked": task.action.value, "task_id": task.task_id, "namespace": task.namespace}
    request_id = None if task.action is TaskAction.AUTO_RUN else task.request_id
    return Activity(task.created_at, ActivityKind.DECISION, Actor.PERSON, request_id, task.run_id, data=data)
