"""`aiflow locks`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from aiflow.cli.options import RequestIdType, complete_request, option
from aiflow.cli.options import command as make_command
from aiflow.cli.render import ago, table
from aiflow.cli.session import Session, print_json
from aiflow.errors import BadInputError
from aiflow.usecases.break_lock import break_lock
from aiflow.usecases.run_shapes import lock_shape

if TYPE_CHECKING:
    from aiflow.domain.request import RequestId
    from aiflow.usecases.engine import Engine


@make_command("locks", is_lenient=True)
@click.argument("action", type=click.Choice(["break"]), required=False, metavar="[break")
@click.argument("request_id", type=RequestIdType(), required=False, metavar="REQUEST]", shell_complete=complete_request)
@option("--queue", is_flag=True, help="option.locks.queue")
@option("-y", "--yes", is_flag=True, help="option.locks.yes")
def command(
    session: Session,
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
    if not flags["yes"] and not as_json:
        click.confirm(session.texts("locks.confirm", name=name), abort=True)
    broken = break_lock(engine, request_id)
    if as_json:
        print_json({"broken": lock_shape(broken)})
    else:
        click.echo(session.texts("locks.broken", name=name, run_id=broken.lock.run_id or "-"))


def _list(session: Session, engine: Engine, *, as_json: bool) -> None:
    found = engine.locks.survey()
    if as_json:
        print_json({"locks": [lock_shape(status) for status in found]})
        return
    texts, now = session.texts, session.now()
    if not found:
        click.echo(texts("locks.none"))
        return
    rows = [
        [
            status.lock.request_id or texts("locks.queue"),
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
