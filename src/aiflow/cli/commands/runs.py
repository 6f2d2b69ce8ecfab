"""`aiflow runs`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from aiflow.cli.options import command as make_command
from aiflow.cli.options import option, request_id_argument
from aiflow.cli.terminal.print_json import print_json
from aiflow.usecases.runs.list import list_runs
from aiflow.usecases.shapes.runs import run_list

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession
    from aiflow.domain.request import RequestId


@make_command("runs", is_lenient=True)
@request_id_argument(is_required=False)
@option("-n", "limit", type=click.IntRange(min=1), metavar="N", default=20, show_default=True, help="option.runs.limit")
def command(session: CliSession, as_json: bool, request_id: RequestId | None, limit: int) -> None:  # noqa: FBT001
    """List runs, newest first."""
    if as_json:
        print_json(run_list(list_runs(session.project.sources, request_id)))
    else:
        from aiflow.cli.views.runs import show_runs

        show_runs(session, list_runs(session.project.sources, request_id, limit=limit))
