"""`aiflow issues sync`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from aiflow.cli.issues_session import open_room
from aiflow.cli.options import command as make_command
from aiflow.cli.options import option
from aiflow.cli.terminal.print_json import print_json
from aiflow.usecases.issues.look_after import look_after_issues
from aiflow.usecases.shapes.issues import looked_shape

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession


@make_command("sync", below="issues")
@option("--full", "is_full", is_flag=True, help="option.issues.full")
def command(session: CliSession, as_json: bool, is_full: bool) -> None:  # noqa: FBT001
    """Read the issues now, and do what they ask for."""
    room = open_room(session)
    looked = look_after_issues(session.engine(), room.work, is_full=is_full)
    if as_json:
        print_json(looked_shape(looked))
    else:
        counts = {"changed": len(looked.changed), "gone": len(looked.gone), "tended": len(looked.tended)}
        click.echo(session.texts("issues.synced", **counts))
