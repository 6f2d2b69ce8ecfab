"""`aiflow accept`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from aiflow.cli.options import command as make_command
from aiflow.cli.options import target_argument
from aiflow.cli.run_view import RunView
from aiflow.cli.running import catching_signals, find_newest_run
from aiflow.cli.session import Session, print_json
from aiflow.domain.reasons import exit_code
from aiflow.usecases.accept_run import accept_run
from aiflow.usecases.run_shapes import run_result

if TYPE_CHECKING:
    from aiflow.domain.request import RequestId


@make_command("accept")
@target_argument()
def command(session: Session, as_json: bool, target: RequestId) -> None:  # noqa: FBT001
    """Bring a finished run into the base branch and set its request done."""
    view = RunView(session.texts, is_quiet=as_json, stopping=session.texts("accept.stopping"))
    with catching_signals(view.heard) as interrupts, view:
        engine = session.engine(interrupts, view)
        run = accept_run(engine, find_newest_run(engine, target))
    if as_json:
        print_json(run_result(run))
    else:
        view.finish(run)
    if run.accepted_as is None:
        if run.error is None:
            raise click.Abort
        raise click.exceptions.Exit(int(exit_code(run.error.reason_code, run.error.cause)))
