"""Queue orders (QUE-3, QUE-9): those that can be queued are; the answer names the others."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from aiflow.errors import AiflowError
from aiflow.usecases.queue.check_work import foresee_refusal
from aiflow.usecases.queue.desk import look_around
from aiflow.usecases.queue.enqueue import Enqueued, enqueue_work

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from aiflow.domain.health import Finding
    from aiflow.domain.queue.why_waiting import QueueScene
    from aiflow.usecases.engine import Engine
    from aiflow.usecases.queue.desk import Desk
    from aiflow.usecases.queue.orders import Maker

Made = TypeVar("Made")


class Added(NamedTuple):
    """What is queued now, what was refused, how the namespace looks, and what will keep runners from taking it."""

    tasks: tuple[Enqueued, ...]
    refused: tuple[AiflowError, ...]
    scene: QueueScene | None = None
    foreseen: tuple[Finding, ...] = ()


def add_orders(
    makers: Sequence[Maker], task_id: str | None, open_desk: Callable[[], Desk], engine: Callable[[], Engine]
) -> Added:
    """Make each order and put it into the queue; a single one that is refused is raised."""
    # Under an id of one's own the very task may be there, whatever became of it: then its request need not run again.
    desk = open_desk() if task_id else None
    is_there = desk is not None and task_id is not None and desk.queue.get(task_id) is not None
    orders, refused = _attempt([partial(make, is_there) for make in makers])
    # What is refused needs no store.
    desk = desk or (open_desk() if orders else None)
    done: list[Enqueued] = []
    if desk is not None:
        done, late = _attempt([partial(enqueue_work, desk, order) for order in orders])
        refused += late
    if refused and len(refused) + len(done) == 1:
        raise refused[0]
    if desk is None or not done:
        return Added(tuple(done), tuple(refused))
    scene = look_around(desk, [each.task for each in done])
    # A runner that waits on this machine has it by now.
    done = [Enqueued(desk.queue.get(task.task_id) or task, is_new) for task, is_new in done]
    foreseen = foresee_refusal(engine, [each.task for each in done], scene)
    return Added(tuple(done), tuple(refused), scene, foreseen)


def _attempt(calls: Sequence[Callable[[], Made]]) -> tuple[list[Made], list[AiflowError]]:
    """Do all that can be done; what cannot does not keep the others back."""
    done: list[Made] = []
    refused: list[AiflowError] = []
    for call in calls:
        try:
            done.append(call())
        except AiflowError as error:
            refused.append(error)
    return done, refused
