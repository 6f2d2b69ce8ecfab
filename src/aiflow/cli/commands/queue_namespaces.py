"""`aiflow queue namespaces`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from aiflow.cli.options import command as make_command
from aiflow.cli.queue_session import open_view
from aiflow.cli.terminal.print_json import print_json
from aiflow.cli.terminal.progress import counting
from aiflow.cli.terminal.render import table
from aiflow.domain.lifecycle import TaskStatus
from aiflow.usecases.queue.namespaces import list_namespaces
from aiflow.usecases.shapes.tasks import namespaces_shape

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession


@make_command("namespaces", below="queue")
def command(session: CliSession, as_json: bool) -> None:  # noqa: FBT001
    """List the namespaces of the store."""
    view, texts = open_view(session, is_quiet=as_json), session.texts
    with counting(texts) as progress:
        found = list_namespaces(view, progress)
    shapes = namespaces_shape(found.counts, found.alive, found.own)
    if as_json:
        print_json({"namespaces": shapes})
        return
    headers = [texts(f"column.{name}") for name in ("namespace", "runners")]
    rows = [
        [
            f"{'*' if shape['is_current'] else ' '} {shape['namespace']}",
            str(shape["runners_alive"]),
            *map(str, shape["counts"].values()),
        ]
        for shape in shapes
    ]
    table([f"  {headers[0]}", headers[1], *(status.value for status in TaskStatus)], rows)
    click.echo(texts("namespaces.current"))
