"""`aiflow queue show`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from aiflow.cli.options import command as make_command
from aiflow.cli.queue_session import complete_task, hinting, namespace_option, open_view
from aiflow.cli.terminal.print_json import print_json
from aiflow.cli.views.tasks import show_task as show_page
from aiflow.usecases.queue.show import show_task
from aiflow.usecases.shapes.tasks import shown_task_shape

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession


@make_command("show", below="queue")
@click.argument("task_id", metavar="TASK", shell_complete=complete_task)
@namespace_option()
def command(session: CliSession, as_json: bool, task_id: str, namespace: str | None) -> None:  # noqa: FBT001
    """Show one task."""
    desk = open_view(session, namespace, is_quiet=as_json).desk
    with hinting(session.texts):
        shown = show_task(desk, session.project.sources, task_id)
    if as_json:
        print_json(shown_task_shape(shown.task, shown.scene, shown.prompt))
    else:
        show_page(shown.task, shown.prompt, shown.scene, session.texts, shown.place)
