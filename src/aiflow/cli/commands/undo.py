"""`aiflow undo`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from aiflow.cli.options import command as make_command
from aiflow.cli.options import option, target_argument
from aiflow.cli.running import catching_signals
from aiflow.cli.terminal.print_json import print_json
from aiflow.cli.views.accepting import is_asked
from aiflow.cli.views.run import RunView
from aiflow.cli.views.undoing import ask, show_built_on
from aiflow.usecases.runs.find import find_newest_run
from aiflow.usecases.runs.undo import find_built_on, undo_acceptance
from aiflow.usecases.shapes.undone import undone_shape

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession
    from aiflow.domain.request import RequestId


@make_command("undo")
@target_argument()
@option("-y", "--yes", "is_sure", is_flag=True, help="option.accept.yes")
def command(session: CliSession, as_json: bool, target: RequestId, is_sure: bool) -> None:  # noqa: FBT001
    """Take a run's work out of the base branch again and block its request."""
    if is_asked(as_json=as_json, is_sure=is_sure):
        ask(session, find_newest_run(session.engine(), target))
    view = RunView(session.texts, is_quiet=as_json, stopping=session.texts("accept.stopping"))
    with catching_signals(view.heard) as interrupts, view:
        engine = session.engine(interrupts, view)
        run = undo_acceptance(engine, find_newest_run(engine, target))
    if run.accepted_as is not None:  # it was stopped
        raise click.Abort
    found = find_built_on(engine, run)
    if as_json:
        print_json(undone_shape(run, found))
    else:
        view.finish(run)
        show_built_on(session, run, found)
