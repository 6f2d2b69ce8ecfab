"""`aiflow cancel`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from aiflow.cli.options import command as make_command
from aiflow.cli.options import option, target_argument
from aiflow.cli.run_view import show_end
from aiflow.cli.running import find_run
from aiflow.cli.session import Session, print_json
from aiflow.usecases.cancel_run import ask_to_cancel
from aiflow.usecases.run_shapes import run_result

if TYPE_CHECKING:
    from aiflow.domain.request import RequestId
    from aiflow.domain.run import Run
    from aiflow.usecases.engine import Engine

WAIT_SECONDS = 30.0


@make_command("cancel", is_lenient=True)
@target_argument()
@option("--no-wait", is_flag=True, help="option.cancel.no_wait")
def command(session: Session, as_json: bool, target: RequestId, no_wait: bool) -> None:  # noqa: FBT001
    """Cancel a run that is in progress."""
    engine = session.engine()
    run = find_run(engine, target)
    is_asked = ask_to_cancel(engine, run)
    if is_asked and not as_json:
        click.echo(session.texts("cancel.asked", run_id=run.run_id))
    if not no_wait:
        run = _wait(engine, run)
    if as_json:
        print_json(run_result(run))
    elif not run.is_active:
        show_end(run, session.texts)
    elif not no_wait:
        click.echo(session.texts("cancel.not_yet", run_id=run.run_id))


def _wait(engine: Engine, run: Run) -> Run:
    """Wait until the run has stopped, as long as that may take."""
    until = time.monotonic() + WAIT_SECONDS
    while True:
        run = engine.runs.load(run.request_id, run.run_id) or run
        if not run.is_active or time.monotonic() > until:
            return run
        time.sleep(0.1)
