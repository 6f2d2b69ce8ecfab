"""`aiflow queue cancel`."""

from __future__ import annotations

import getpass
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from aiflow.cli.failure import show
from aiflow.cli.options import command as make_command
from aiflow.cli.options import option
from aiflow.cli.queue_session import QueueSession, hinting, namespace_option, task_argument
from aiflow.cli.render import say
from aiflow.cli.session import Session, print_json
from aiflow.domain.lifecycle import TaskStatus
from aiflow.domain.reasons import exit_code
from aiflow.errors import AiflowError
from aiflow.usecases.cancel_task import cancel_task, holder_of, live_delivery
from aiflow.usecases.find_task import find_task
from aiflow.usecases.find_ways import find_place
from aiflow.usecases.obey_cancels import stop_runs_of
from aiflow.usecases.shapes import error_shape
from aiflow.usecases.task_shapes import task_shape

if TYPE_CHECKING:
    from aiflow.domain.run import Run
    from aiflow.domain.task import Task
    from aiflow.usecases.engine import Engine
    from aiflow.usecases.queue_desk import QueueDesk

WAIT_SECONDS = 30.0
LOOK_SECONDS = 0.2


@make_command("cancel", below="queue")
@task_argument(required=True)
@option("--no-wait", is_flag=True, help="option.queue.no_wait")
@option("-y", "--yes", is_flag=True, help="option.locks.yes")
@namespace_option()
def command(
    session: Session,
    as_json: bool,  # noqa: FBT001
    task_ids: tuple[str, ...],
    namespace: str | None,
    **flags: bool,
) -> None:
    """Cancel tasks: what is queued at once, what runs as soon as its runner has ended the agent."""
    desk = QueueSession(session, namespace, is_quiet=as_json, is_to_write=True).desk()
    done: list[tuple[Task, bool]] = []
    refused: list[AiflowError] = []
    for task_id in dict.fromkeys(task_ids):
        try:
            with hinting(session.texts):
                done.append(_cancel(session, desk, task_id, as_json=as_json, flags=flags))
        except AiflowError as error:
            if len(task_ids) == 1:
                raise
            refused.append(error)
            if not as_json:
                show(error)
    if as_json:
        tasks = [{**task_shape(task), "is_released": is_released} for task, is_released in done]
        print_json({"tasks": tasks, "refused": [error_shape(error, session.texts)["error"] for error in refused]})
    if refused:
        raise click.exceptions.Exit(int(exit_code(refused[0].reason_code)))


def _cancel(
    session: Session, desk: QueueDesk, task_id: str, *, as_json: bool, flags: dict[str, bool]
) -> tuple[Task, bool]:
    """Cancel one task and wait until its runner has let it go; tells whether it has."""
    texts = session.texts
    before = live_delivery(desk, find_task(desk.queue, task_id))
    is_running = before.status is TaskStatus.RUNNING
    if is_running and not flags["yes"] and not as_json and sys.stdin.isatty():
        click.confirm(texts("queue.confirm", task_id=before.task_id, runner=before.claimed_by), abort=True)
    desk, engine = _at_the_runs(session, desk, before)
    task = cancel_task(desk, engine, task_id, texts("queue.cancelled_by", user=_user(), host=desk.checkout.host))
    if not as_json:
        if task.task_id != task_id:
            say(texts("queue.followed", task_id=task_id, successor=task.task_id))
        key = "queue.cancelling" if is_running else "queue.cancelled"
        say(texts(key, task_id=task.task_id, runner=task.claimed_by))
    is_released = not is_running or (not flags["no_wait"] and _wait(desk, task))
    if is_running and not flags["no_wait"] and not as_json:
        key = "queue.let_go" if is_released else "queue.not_yet"
        say(texts(key, task_id=task.task_id, runner=task.claimed_by))
    for run in _stop_runs(desk, engine, task):
        if not as_json:
            say(texts("queue.run_stopped", run_id=run.run_id, command=f"aiflow resume {run.request_id}"))
    return task, is_released


def _at_the_runs(session: Session, desk: QueueDesk, task: Task) -> tuple[QueueDesk, Engine]:
    """Stand in the checkout that has a task's runs, if that is another one of this machine and can be worked in."""
    place = find_place(desk, task)
    if place is None or place == desk.checkout or place.host != desk.checkout.host:
        return desk, session.engine()
    there = Session(place.root, session.flags, session.texts)
    there.is_lenient = True
    try:
        return replace(desk, checkout=place), there.engine()
    except AiflowError:  # it is gone, or somebody else's
        return desk, session.engine()


def _stop_runs(desk: QueueDesk, engine: Engine, task: Task) -> tuple[Run, ...]:
    """Stop what nobody works on any more; that this did not work is said, and does not undo the cancel."""
    try:
        return stop_runs_of(engine, task, desk.checkout)
    except AiflowError as error:
        message = engine.texts.message(error.reason_code, dict(error.context))
        engine.warn(f"{error.reason_code}: {message.title}")
        return ()


def _wait(desk: QueueDesk, task: Task) -> bool:
    """Wait until nobody works on a task any more, as long as that may take."""
    until = time.monotonic() + WAIT_SECONDS
    while holder_of(desk, task) is not None:
        if time.monotonic() > until:
            return False
        time.sleep(LOOK_SECONDS)
    return True


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "somebody"
