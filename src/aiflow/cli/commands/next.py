"""`aiflow next`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.cli.options import command as make_command
from aiflow.cli.options import option
from aiflow.cli.terminal.print_json import print_json
from aiflow.usecases.backlog.next import Besides, next_request
from aiflow.usecases.shapes.backlog import next_request_result

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession


@make_command("next")
@option("--all", "include_all", is_flag=True, help="option.next.all")
def command(session: CliSession, as_json: bool, include_all: bool) -> None:  # noqa: FBT001
    """Say which request runs next, and why the others do not."""
    if as_json:
        answer = next_request(session.project.sources, session.locks, include_all=include_all, is_brief=True)
        print_json(next_request_result(answer.selection))
        return
    from aiflow.cli.views.next import show_next

    besides = Besides(session.missing_merges, session.continued_first)
    answer = next_request(session.project.sources, session.locks, include_all=include_all, besides=besides)
    show_next(session, answer, is_short=not include_all)
