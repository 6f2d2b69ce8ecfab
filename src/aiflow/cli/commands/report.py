"""`aiflow report`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from aiflow.cli.options import command as make_command
from aiflow.cli.options import target_argument
from aiflow.cli.terminal.print_json import print_json
from aiflow.cli.views.report import show_report
from aiflow.usecases.runs.find import find_run
from aiflow.usecases.runs.report import read_report
from aiflow.usecases.shapes.run_report import report_shape

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession
    from aiflow.domain.request import RequestId


@make_command("report", is_lenient=True)
@target_argument()
def command(session: CliSession, as_json: bool, target: RequestId) -> None:  # noqa: FBT001
    """Show the report of a run."""
    engine = session.engine()
    told, text = read_report(engine, find_run(engine, target))
    if as_json:
        print_json(report_shape(told, text))
    elif text is None:
        click.echo(session.texts("report.none", run_id=told.run_id))
    else:
        show_report(text)
