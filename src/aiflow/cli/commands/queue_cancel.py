"""`aiflow queue cancel`."""

from __future__ import annotations

import getpass
import sys
from typing import TYPE_CHECKING

import click

from aiflow.cli.failure import show
from aiflow.cli.options import command as make_command
from aiflow.cli.options import option
from aiflow.cli.queue_session import hinting, namespace_option, open_view, task_argument
from aiflow.cli.session import CliSession
from aiflow.cli.terminal.print_json import print_json
from aiflow.cli.terminal.render import say
from aiflow.cli.waiting import wait_until
from aiflow.domain.lifecycle import TaskStatus
from aiflow.domain.next_action import ActionKind, NextAction
from aiflow.domain.reasons import exit_code
from aiflow.errors import AiflowError
from aiflow.usecases.queue.look import find_task
from aiflow.usecases.runner.cancel_task import at_the_runs, cancel_task, holder_of, live_delivery, stop_runs
from aiflow.usecases.shapes.tasks import cancelled_shape

if TYPE_CHECKING:
    from aiflow.domain.queue.task import Task
    from aiflow.usecases.engine import Engine
    from aiflow.usecases.queue.desk import Desk


@make_command("cancel", below="queue")
@task_argument(required=True)
@option("--no-wait", is_flag=True, help="option.queue.no_wait")
@option("-y", "--yes", is_flag=True, help="option.locks.yes")
@namespace_option()
def command(
    session: CliSession,
    as_json: bool,  # noqa: FBT001
    task_ids: tuple[str, ...],
    namespace: str | None,
    **flags: bool,
) -> None:
    """Cancel tasks: what is queued at once, what runs as soon as its runner has ended the agent."""
    desk = open_view(session, namespace, is_quiet=as_json, is_to_write=True).desk
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
        print_json(cancelled_shape(done, refused, session.texts))
    if refused:
        raise click.exceptions.Exit(int(exit_code(refused[0].reason_code)))


def _cancel(
    session: CliSession, desk: Desk, task_id: str, *, as_json: bool, flags: dict[str, bool]
) -> tuple[Task, bool]:
    """Cancel one task and wait until its runner has released it; returns whether it has."""
    texts = session.texts
    before = live_delivery(desk, find_task(desk.queue, task_id))
    is_running = before.status is TaskStatus.RUNNING
    if is_running and not flags["yes"] and not as_json and sys.stdin.isatty():
        click.confirm(texts("queue.confirm", task_id=before.task_id, runner=before.claimed_by), abort=True)
    desk, engine = at_the_runs(desk, before, session.engine, lambda root: _engine_at(session, root))
    task = cancel_task(desk, engine, task_id, texts("queue.cancelled_by", user=_user(), host=desk.checkout.host))
    if not as_json:
        if task.task_id != task_id:
            say(texts("queue.followed", task_id=task_id, successor=task.task_id))
        key = "queue.cancelling" if is_running else "queue.cancelled"
        say(texts(key, task_id=task.task_id, runner=task.claimed_by))
    is_released = not is_running or (not flags["no_wait"] and wait_until(lambda: holder_of(desk, task) is None))
    if is_running and not flags["no_wait"] and not as_json:
        key = "queue.let_go" if is_released else "queue.not_yet"
        say(texts(key, task_id=task.task_id, runner=task.claimed_by))
    for run in stop_runs(desk, engine, task):
        if not as_json:
            say(texts("queue.run_stopped", run_id=run.run_id, command=NextAction(ActionKind.RESUME, run.request_id)))
    return task, is_released


def _engine_at(session: CliSession, root: str) -> Engine:
    """Give the engine of another checkout of this machine; a mistake in its settings is not ours."""
    there = CliSession(root, session.flags, session.texts)
    there.is_lenient = True
    return there.engine()


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "somebody"
