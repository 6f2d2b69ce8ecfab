"""`aiflow issues show`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from aiflow.cli.issues_session import open_room, typed_number
from aiflow.cli.options import command as make_command
from aiflow.cli.terminal.print_json import print_json
from aiflow.usecases.shapes.issues import shown_issue

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession


@make_command("show", below="issues")
@click.argument("issue", metavar="GH-N|N")
def command(session: CliSession, as_json: bool, issue: str) -> None:  # noqa: FBT001
    """Show an issue's story: what people and aiflow said and did there."""
    shown = open_room(session).shown(typed_number(issue))
    if as_json:
        print_json(shown_issue(shown))
        return
    from aiflow.cli.views.issue import show_story

    show_story(session, shown)
