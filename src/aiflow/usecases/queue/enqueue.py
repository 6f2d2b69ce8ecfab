"""Hand work to a runner (QUE-3, QUE-9, QUE-11): one task in the queue, and the runners of this machine are notified."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.activity import About, Activity, Actor, decided
from aiflow.domain.queue.order import new_task
from aiflow.domain.queue.task import Task, TaskAction, check_prompt, prompt_request_id

if TYPE_CHECKING:
    from datetime import datetime

    from aiflow.domain.queue.order import Order
    from aiflow.usecases.queue.desk import Desk


class Enqueued(NamedTuple):
    """The task as it is in the queue; not new if one with this id was there already, for the same work."""

    task: Task
    is_new: bool


def enqueue_work(desk: Desk, order: Order) -> Enqueued:
    """Queue an order; REQUEST_QUEUED if its request has an unfinished task, TASK_EXISTS if the id is taken."""
    prompt = check_prompt(order.prompt) if order.action is TaskAction.PROMPT or order.prompt else ""
    now = desk.time.now()
    named = order if order.task_id else replace(order, task_id=_draw_id(desk, order, now))
    wanted = new_task(desk.queue.namespace, named, now, desk.checkout)
    task = desk.queue.enqueue(wanted, prompt)
    is_new = task.created_at == wanted.created_at
    if is_new:
        desk.journal.append(asked_for(task, task.created_at, task.action.value))
    desk.wake.poke(task.namespace, task.task_id)
    return Enqueued(task, is_new)


def _draw_id(desk: Desk, order: Order, now: datetime) -> str:
    """Return an id for an order's task; a prompt's is drawn again if its short request id (REQ-9) is another's."""
    while True:
        task_id = desk.new_task_id(now)
        if order.action is not TaskAction.PROMPT or not desk.queue.has_had(prompt_request_id(task_id)):
            return task_id


def asked_for(task: Task, at: datetime, what: str, reason_code: str | None = None) -> Activity:
    """Record what a person asked of a task."""
    about = About(None if task.action is TaskAction.AUTO_RUN else task.request_id, task.run_id)
    return decided(at, Actor.PERSON, about, reason_code, asked=what, task_id=task.task_id, namespace=task.namespace)
