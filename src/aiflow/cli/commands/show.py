"""`aiflow show`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.cli.options import command as make_command
from aiflow.cli.options import target_argument
from aiflow.cli.terminal.print_json import print_json
from aiflow.usecases.backlog.show import BrokenRequest, show_request
from aiflow.usecases.runs.find import find_run, is_run
from aiflow.usecases.shapes.backlog import shown_shape

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession
    from aiflow.domain.request import RequestId


@make_command("show")
@target_argument()
def command(session: CliSession, as_json: bool, target: RequestId) -> None:  # noqa: FBT001
    """Show one request (metadata, runs, text) or one run (steps, why it stopped, what to do)."""
    if is_run(session.project.sources, target):
        _show_run(session, target, as_json=as_json)
        return
    shown = show_request(session.project.sources, target, session.locks, None if as_json else session.engine)
    if as_json:
        print_json(shown_shape(shown))
        return
    from aiflow.cli.views.request_page import show_broken, show_page

    show_broken(session, shown) if isinstance(shown, BrokenRequest) else show_page(session, shown)


def _show_run(session: CliSession, run_id: RequestId, *, as_json: bool) -> None:
    from aiflow.usecases.shapes.runs import run_result

    run = find_run(session.engine(), run_id)
    if as_json:
        print_json(run_result(run))
        return
    from aiflow.cli.views.run_page import show_run

    show_run(session, run)
