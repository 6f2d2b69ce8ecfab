"""An order (QUE-3, QUE-11): what is to be done, and the new task that says it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aiflow.domain.queue.task import Task, TaskAction, auto_run_guard, check_task_id, prompt_request_id
from aiflow.domain.request import Priority

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from aiflow.domain.queue.task import Checkout

# The default of a new request, too.
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


def new_task(namespace: str, order: Order, now: datetime, checkout: Checkout) -> Task:
    """Make the task of an order that names its task's id, given in a checkout."""
    task_id = check_task_id(order.task_id or "")
    subjects = {TaskAction.PROMPT: prompt_request_id(task_id), TaskAction.AUTO_RUN: auto_run_guard(checkout)}
    return Task(
        namespace=namespace,
        task_id=task_id,
        action=order.action,
        request_id=subjects.get(order.action, order.request_id),
        created_at=now,
        updated_at=now,
        place_at=now,
        priority=order.priority,
        # A bare prompt may be taken by any runner of the namespace; everything else needs this checkout's files.
        checkout=None if order.action is TaskAction.PROMPT else checkout,
        options=order.options,
        run_id=order.run_id,
    )
