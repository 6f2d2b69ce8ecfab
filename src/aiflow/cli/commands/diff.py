"""`aiflow diff`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.cli.options import command as make_command
from aiflow.cli.options import option, target_argument
from aiflow.cli.terminal.print_json import print_json
from aiflow.usecases.runs.diff import diff_run
from aiflow.usecases.runs.find import find_run_or_newest
from aiflow.usecases.shapes.runs import diff_shape

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession
    from aiflow.domain.request import RequestId


@make_command("diff", is_lenient=True)
@target_argument(is_required=False)
@option("-s", "--step", metavar="STEP", help="option.diff.step")
@option("--stat", is_flag=True, help="option.diff.stat")
def command(session: CliSession, as_json: bool, target: RequestId | None, step: str | None, stat: bool) -> None:  # noqa: FBT001
    """Show what a run changed."""
    engine = session.engine()
    found = diff_run(engine, find_run_or_newest(engine, target), step)
    if as_json:
        print_json(diff_shape(found))
        return
    from aiflow.cli.views.diff import show_diff, show_files

    show_files(session, found) if stat else show_diff(session, found)
