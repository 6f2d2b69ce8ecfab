"""`aiflow cancel`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from aiflow.cli.options import command as make_command
from aiflow.cli.options import option, target_argument
from aiflow.cli.terminal.print_json import print_json
from aiflow.cli.terminal.render import say
from aiflow.cli.views.run import show_end
from aiflow.cli.views.task_hints import task_action
from aiflow.cli.waiting import wait_until
from aiflow.domain.next_action import ActionKind
from aiflow.errors import ConflictError
from aiflow.usecases.runs.cancel import ask_to_cancel, task_going_on
from aiflow.usecases.runs.find import current, find_run
from aiflow.usecases.shapes.runs import run_result

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession
    from aiflow.domain.request import RequestId
    from aiflow.domain.run_summary import TaskRef
    from aiflow.domain.runs.run import Run
    from aiflow.usecases.engine import Engine


@make_command("cancel", is_lenient=True)
@target_argument()
@option("--no-wait", is_flag=True, help="option.cancel.no_wait")
def command(session: CliSession, as_json: bool, target: RequestId, no_wait: bool) -> None:  # noqa: FBT001
    """Cancel a run that is in progress."""
    engine = session.engine()
    run = find_run(engine, target)
    is_asked = _ask(session, engine, run)
    if is_asked and not as_json:
        click.echo(session.texts("cancel.asked", run_id=run.run_id))
    if not no_wait:
        wait_until(lambda: not current(engine, run).is_active)
        run = current(engine, run)
    if as_json:
        print_json(run_result(run))
    elif not run.is_active:
        show_end(run, session.texts)
        if not is_asked and run.task is not None:  # its owner, which would have ended the task, is gone
            _tell_of_task(session, run.task)
    elif not no_wait:
        click.echo(session.texts("cancel.not_yet", run_id=run.run_id))


def _ask(session: CliSession, engine: Engine, run: Run) -> bool:
    """Ask for the cancel; of a run that its runner stopped, say that a task continues it, and how to cancel that."""
    try:
        return ask_to_cancel(engine, run)
    except ConflictError as error:
        if error.reason_code == "RUN_NOT_ACTIVE" and (task := task_going_on(run)):
            cancel = task_action(session, ActionKind.QUEUE_CANCEL, task)
            error.context |= {"detail": session.texts("cancel.goes_on", run_id=run.run_id), "commands": [cancel]}
        raise


def _tell_of_task(session: CliSession, task: TaskRef) -> None:
    """Say what became of a cancelled run's task, without asking a store that may hang."""
    click.echo()
    cancel = task_action(session, ActionKind.QUEUE_CANCEL, task)
    say(session.texts("cancel.task", task_id=task.task_id, command=cancel), "  ")
