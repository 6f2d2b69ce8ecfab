"""`aiflow cancel`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from aiflow.cli.options import command as make_command
from aiflow.cli.options import option, target_argument
from aiflow.cli.render import say
from aiflow.cli.run_view import show_end
from aiflow.cli.running import find_run
from aiflow.cli.session import Session, print_json
from aiflow.cli.task_hints import queue_command
from aiflow.domain.delivery import is_cut
from aiflow.errors import ConflictError
from aiflow.usecases.cancel_run import ask_to_cancel
from aiflow.usecases.run_shapes import run_result

if TYPE_CHECKING:
    from aiflow.domain.request import RequestId
    from aiflow.domain.run import Run
    from aiflow.domain.run_summary import TaskRef
    from aiflow.usecases.engine import Engine

WAIT_SECONDS = 30.0


@make_command("cancel", is_lenient=True)
@target_argument()
@option("--no-wait", is_flag=True, help="option.cancel.no_wait")
def command(session: Session, as_json: bool, target: RequestId, no_wait: bool) -> None:  # noqa: FBT001
    """Cancel a run that is in progress."""
    engine = session.engine()
    run = find_run(engine, target)
    is_asked = _ask(session, engine, run)
    if is_asked and not as_json:
        click.echo(session.texts("cancel.asked", run_id=run.run_id))
    if not no_wait:
        run = _wait(engine, run)
    if as_json:
        print_json(run_result(run))
    elif not run.is_active:
        show_end(run, session.texts)
        if not is_asked and run.task is not None:  # its owner, who would have ended the task, is dead
            _tell_of_task(session, run.task)
    elif not no_wait:
        click.echo(session.texts("cancel.not_yet", run_id=run.run_id))


def _ask(session: Session, engine: Engine, run: Run) -> bool:
    """Ask for the cancel; of a run that its runner stopped, say that its task goes on with it, and what ends that."""
    try:
        return ask_to_cancel(engine, run)
    except ConflictError as error:
        if error.reason_code == "RUN_NOT_ACTIVE" and run.task is not None and is_cut(run):
            command = queue_command(session, "cancel", run.task)
            error.context |= {"detail": session.texts("cancel.goes_on", run_id=run.run_id), "commands": [command]}
        raise


def _tell_of_task(session: Session, task: TaskRef) -> None:
    """Say what became of a cancelled run's task, without asking a store that may hang."""
    click.echo()
    say(session.texts("cancel.task", task_id=task.task_id, command=queue_command(session, "cancel", task)), "  ")


def _wait(engine: Engine, run: Run) -> Run:
    """Wait until the run has stopped, as long as that may take."""
    until = time.monotonic() + WAIT_SECONDS
    while True:
        run = engine.runs.load(run.request_id, run.run_id) or run
        if not run.is_active or time.monotonic() > until:
            return run
        time.sleep(0.1)
