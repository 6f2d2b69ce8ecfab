"""`aiflow runs`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from aiflow.cli.options import command as make_command
from aiflow.cli.options import option, request_id_argument
from aiflow.cli.render import ago, table
from aiflow.cli.session import Session, print_json
from aiflow.usecases.shapes import run_shape

if TYPE_CHECKING:
    from aiflow.domain.request import RequestId
    from aiflow.domain.run_summary import RunSummary


@make_command("runs", is_lenient=True)
@request_id_argument(is_required=False)
@option("-n", "limit", type=click.IntRange(min=1), metavar="N", default=20, show_default=True, help="option.runs.limit")
def command(session: Session, as_json: bool, request_id: RequestId | None, limit: int) -> None:  # noqa: FBT001
    """List runs, newest first."""
    found = _find(session, request_id)
    if as_json:
        print_json({"runs": [{"request_id": owner, **run_shape(run)} for owner, run in found]})
        return
    texts = session.texts
    if not found:
        click.echo(texts("runs.none"))
        return
    names = ("run_id", "request", "state", "reason", "changed")
    now = session.now()
    rows = [
        [run.run_id, owner, run.state, run.reason_code or "", ago(run.changed_at, now, texts) if run.changed_at else ""]
        for owner, run in found[:limit]
    ]
    table([texts(f"column.{name}") for name in names], rows, colour_column=2)
    if len(found) > limit:
        click.echo(texts("runs.more", count=len(found) - limit))


def _find(session: Session, request_id: RequestId | None) -> list[tuple[str, RunSummary]]:
    """Return the runs of one request or of all, newest first."""
    runs = session.project.runs
    if request_id is not None:
        session.project.requests.find(request_id)
        return [(request_id, run) for run in runs.all_of(request_id)]
    found = [(owner, run) for owner in runs.owners() for run in runs.all_of(owner)]
    return sorted(found, key=lambda pair: pair[1].run_id, reverse=True)
