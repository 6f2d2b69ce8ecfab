"""`aiflow status`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.cli.options import command as make_command
from aiflow.cli.terminal.print_json import print_json
from aiflow.usecases.auto.standing import look_around
from aiflow.usecases.shapes.backlog import ENGLISH
from aiflow.usecases.shapes.status import standing_shape

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession


@make_command("status", is_lenient=True)
def command(session: CliSession, as_json: bool) -> None:  # noqa: FBT001
    """Show what runs, what waits for you, what is next, the last auto-run and the cost."""
    texts = ENGLISH if as_json else session.texts
    standing = look_around(session.engine(), session.project.auto_records, texts)
    if as_json:
        print_json(standing_shape(standing))
        return
    from aiflow.cli.views.status import show_standing

    show_standing(session, standing)
