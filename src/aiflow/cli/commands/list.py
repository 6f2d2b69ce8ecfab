"""`aiflow list`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.cli.options import PRIORITY_CHOICE, STATUS_CHOICE, option
from aiflow.cli.options import command as make_command
from aiflow.cli.terminal.print_json import print_json
from aiflow.usecases.backlog.list import RequestFilter, list_requests, open_unless
from aiflow.usecases.shapes.backlog import request_list

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession


@make_command("list")
@option(
    "--status",
    "-s",
    "statuses",
    multiple=True,
    type=STATUS_CHOICE,
    help="option.list.status",
)
@option(
    "--priority",
    "-p",
    "priorities",
    multiple=True,
    type=PRIORITY_CHOICE,
    help="option.list.priority",
)
@option("--all", "-a", "is_all", is_flag=True, help="option.list.all")
@option("--label", "-l", "labels", multiple=True, metavar="TEXT", help="option.list.label")
@option("--found", "is_found", is_flag=True, help="option.list.found")
def command(session: CliSession, as_json: bool, is_all: bool, is_found: bool, **given: tuple[str, ...]) -> None:  # noqa: FBT001
    """List the backlog in selection order; what is done or archived only if it is asked for."""
    statuses = open_unless(given["statuses"], is_all=is_all)
    only = RequestFilter(statuses, given["priorities"], given["labels"], is_found)
    found = list_requests(session.project.sources, session.locks, only)
    if as_json:
        print_json(request_list(found))
        return
    from aiflow.cli.views.request_list import show_requests

    show_requests(session, found, is_filtered=is_found or any(given.values()))
