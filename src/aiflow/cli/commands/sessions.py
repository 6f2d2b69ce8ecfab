"""`aiflow sessions`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from aiflow.cli.options import command as make_command
from aiflow.cli.options import option
from aiflow.cli.session import session_of
from aiflow.cli.terminal.print_json import print_json
from aiflow.cli.terminal.render import ago, table
from aiflow.errors import AiflowError, BadInputError
from aiflow.usecases.shapes.server import session_list
from aiflow.wiring.server import door_of

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from aiflow.cli.session import CliSession
    from aiflow.domain.server.sessions import Session


def complete_session(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the ids of the sessions."""
    from click.shell_completion import CompletionItem

    try:
        found = door_of(session_of(ctx).root, 1).sessions()
    except AiflowError:
        return []
    return [CompletionItem(each.session_id, help=each.name) for each in found if each.session_id.startswith(incomplete)]


@make_command("sessions", is_lenient=True)
@click.argument("action", type=click.Choice(["revoke"]), required=False, metavar="[revoke")
@click.argument("session_id", required=False, metavar="ID]", shell_complete=complete_session)
@option("--all", "is_all", is_flag=True, help="option.sessions.all")
def command(session: CliSession, as_json: bool, action: str | None, session_id: str | None, is_all: bool) -> None:  # noqa: FBT001
    """List who is signed in, or end sessions; a server need not run for that."""
    door = door_of(session.root, session.settings.number("server.session_days"))
    if action is None:
        if is_all:
            raise BadInputError(detail=session.texts("sessions.which"), hint="aiflow sessions --help")
        _show(session, door.sessions(), as_json=as_json)
        return
    if (session_id is None) != is_all:
        raise BadInputError(detail=session.texts("sessions.which"), hint="aiflow sessions --help")
    count = door.revoke(session_id)
    if as_json:
        print_json({"revoked": count})
    else:
        click.echo(session.texts("sessions.revoked", count=count))


def _show(session: CliSession, found: tuple[Session, ...], *, as_json: bool) -> None:
    texts, now = session.texts, session.now()
    if as_json:
        print_json(session_list(found))
        return
    if not found:
        click.echo(texts("sessions.none"))
        return
    rows = [
        [each.session_id, each.name, ago(each.created_at, now, texts), ago(each.seen_at, now, texts), each.agent]
        for each in found
    ]
    table([texts(f"column.{name}") for name in ("id", "name", "signed_in", "seen", "browser")], rows)
