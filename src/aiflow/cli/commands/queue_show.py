"""`aiflow queue show`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from aiflow.cli.options import command as make_command
from aiflow.cli.queue_session import QueueSession, complete_task, hinting, namespace_option
from aiflow.cli.session import Session, print_json
from aiflow.cli.task_view import show_task
from aiflow.errors import EnvironmentProblemError
from aiflow.usecases.find_task import find_task
from aiflow.usecases.find_ways import find_place, ways_after
from aiflow.usecases.queue_desk import look_around, look_away
from aiflow.usecases.task_shapes import task_shape

if TYPE_CHECKING:
    from aiflow.domain.task import Task
    from aiflow.ports import TaskQueue


@make_command("show", below="queue")
@click.argument("task_id", metavar="TASK", shell_complete=complete_task)
@namespace_option()
def command(session: Session, as_json: bool, task_id: str, namespace: str | None) -> None:  # noqa: FBT001
    """Show one task."""
    desk = QueueSession(session, namespace, is_quiet=as_json).desk()
    with hinting(session.texts):
        task = find_task(desk.queue, task_id)
        prompt = _prompt(desk.queue, task)
        scene = look_away(desk) if task.is_final else look_around(desk, [task])
        place = find_place(desk, task)
        ways = ways_after(desk, session.project.sources, [(task, place)])
        scene = replace(scene, ways=ways)
    if as_json:
        print_json({**task_shape(task, scene), "prompt": prompt or None})
    else:
        show_task(task, prompt, scene, session.texts, place)


def _prompt(queue: TaskQueue, task: Task) -> str:
    """Return all of a task's prompt, or what is left of it."""
    try:
        return queue.prompt(task)
    except EnvironmentProblemError as error:
        if error.reason_code != "PROMPT_LOST":
            raise
        return f"{task.prompt}…"
