"""One task with everything that is known of it: all of its prompt, its standing, where its work is, the next step."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from aiflow.errors import EnvironmentProblemError
from aiflow.usecases.queue.desk import look_around, look_away
from aiflow.usecases.queue.look import find_place, find_task, ways_after

if TYPE_CHECKING:
    from aiflow.domain.queue.task import Checkout, Task
    from aiflow.domain.queue.why_waiting import QueueScene
    from aiflow.ports import TaskQueue
    from aiflow.usecases.queue.desk import Desk
    from aiflow.usecases.read_backlog import BacklogSources


class ShownTask(NamedTuple):
    """A task, its whole prompt, how its namespace looks, and the checkout that its work is in."""

    task: Task
    prompt: str
    scene: QueueScene
    place: Checkout | None = None


def show_task(desk: Desk, sources: BacklogSources, task_id: str) -> ShownTask:
    """Read one task, or raise that there is none."""
    task = find_task(desk.queue, task_id)
    prompt = _prompt(desk.queue, task)
    scene = look_away(desk) if task.is_final else look_around(desk, [task])
    place = find_place(desk, task)
    return ShownTask(task, prompt, replace(scene, ways=ways_after(desk, sources, [(task, place)])), place)


def _prompt(queue: TaskQueue, task: Task) -> str:
    """Return all of a task's prompt, or what is left of it."""
    try:
        return queue.prompt(task)
    except EnvironmentProblemError as error:
        if error.reason_code != "PROMPT_LOST":
            raise
        return f"{task.prompt}…"
