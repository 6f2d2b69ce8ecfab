"""`aiflow namespaces`."""

from __future__ import annotations

import click

from aiflow.cli.options import command as make_command
from aiflow.cli.progress import counting
from aiflow.cli.queue_session import QueueSession
from aiflow.cli.render import table
from aiflow.cli.session import Session, print_json
from aiflow.domain.lifecycle import TaskStatus
from aiflow.domain.runner import is_alive
from aiflow.usecases.task_shapes import namespaces_shape


@make_command("namespaces")
def command(session: Session, as_json: bool) -> None:  # noqa: FBT001
    """List the namespaces of the store."""
    from aiflow.wiring import is_runner_gone

    view = QueueSession(session, is_quiet=as_json)
    texts, now = session.texts, session.now()
    with counting(texts) as progress:
        found = view.store.namespaces(progress)
        alive = [each for each in view.store.all_runners() if is_alive(each, now, view.timeout_seconds)]
        alive = [each for each in alive if not is_runner_gone(each)]
    shapes = namespaces_shape(found, alive, view.own)
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
