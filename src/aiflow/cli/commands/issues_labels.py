"""`aiflow issues labels`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from aiflow.cli.issues_session import open_room
from aiflow.cli.options import command as make_command
from aiflow.cli.terminal.print_json import print_json
from aiflow.usecases.issues.labels import make_labels

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession


@make_command("labels", below="issues")
def command(session: CliSession, as_json: bool) -> None:  # noqa: FBT001
    """Make the labels that aiflow uses, if they are missing."""
    room = open_room(session)
    labels = make_labels(room.host(), room.texts)
    if as_json:
        print_json({"labels": [{"name": name, "is_made": is_made} for name, is_made in labels]})
        return
    for name, is_made in labels:
        click.echo(session.texts("issues.label_made" if is_made else "issues.label_there", label=name))
