"""`aiflow locks`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from aiflow.cli.options import RequestIdType, complete_request, option
from aiflow.cli.options import command as make_command
from aiflow.cli.terminal.print_json import print_json
from aiflow.cli.terminal.render import ago, table
from aiflow.errors import BadInputError
from aiflow.usecases.runs.locks import break_lock, list_locks, require_lock
from aiflow.usecases.shapes.runs import broken_lock_shape, lock_list

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession
    from aiflow.domain.request import RequestId
    from aiflow.usecases.engine import Engine


class _Word(click.Argument):
    """A word of `[break REQUEST]`: one bracket around both, which is no part of either."""

    def get_error_hint(self, ctx: click.Context | None) -> str:
        """Return its name as a mistake names it."""
        return super().get_error_hint(ctx).replace("[", "").replace("]", "")


@make_command("locks", is_lenient=True)
@click.argument("action", cls=_Word, type=click.Choice(["break"]), required=False, metavar="[break")
@click.argument(
    "request_id",
    cls=_Word,
    type=RequestIdType(),
    required=False,
    metavar="REQUEST]",
    shell_complete=complete_request,
)
@option("--queue", is_flag=True, help="option.locks.queue")
@option("-y", "--yes", is_flag=True, help="option.locks.yes")
def command(
    session: CliSession,
    as_json: bool,  # noqa: FBT001
    action: str | None,
    request_id: RequestId | None,
    **flags: bool,
) -> None:
    """List the locks, or break one."""
    engine = session.engine()
    if action is None:
        _list(session, engine, as_json=as_json)
        return
    if (request_id is None) == (not flags["queue"]):
        raise BadInputError(detail=session.texts("locks.which"), hint="aiflow locks --help")
    name = request_id or "queue"
    require_lock(engine, request_id)
    if not flags["yes"] and not as_json:
        click.confirm(session.texts("locks.confirm", name=name), abort=True)
    broken = break_lock(engine, request_id)
    if as_json:
        print_json(broken_lock_shape(broken))
    else:
        click.echo(session.texts("locks.broken", name=name, run_id=broken.lock.run_id or "-"))


def _list(session: CliSession, engine: Engine, *, as_json: bool) -> None:
    found = list_locks(engine)
    if as_json:
        print_json(lock_list(found))
        return
    texts, now = session.texts, session.now()
    if not found:
        click.echo(texts("locks.none"))
        return
    rows = [
        [
            status.lock.request_id or texts(f"locks.{status.lock.lock_type}"),
            status.lock.run_id or "",
            f"{status.lock.pid or '?'} @ {status.lock.host or '?'}",
            ago(status.lock.created_at, now, texts) if status.lock.created_at else "",
            texts(f"verdict.{status.verdict}"),
        ]
        for status in found
    ]
    table([texts(f"column.{name}") for name in ("lock", "run_id", "holder", "since", "verdict")], rows)
    if any(status.verdict.is_stale for status in found):
        click.echo(texts("locks.stale_hint"))
