"""`aiflow forecast`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from aiflow.cli.options import command as make_command
from aiflow.cli.terminal.print_json import print_json
from aiflow.cli.terminal.render import heading, table
from aiflow.usecases.backlog.forecast import forecast_backlog
from aiflow.usecases.shapes.backlog import describe, forecast_result

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession
    from aiflow.domain.backlog.forecast import Forecast


@make_command("forecast")
def command(session: CliSession, as_json: bool) -> None:  # noqa: FBT001
    """Show the order in which the backlog will run, and what can never run."""
    foreseen = forecast_backlog(session.project.sources, session.locks).foreseen
    if as_json:
        print_json(forecast_result(foreseen))
    else:
        _show(session, foreseen)


def _show(session: CliSession, foreseen: Forecast) -> None:
    texts = session.texts
    if not foreseen.running and not foreseen.order:
        heading(texts("forecast.nothing"))
    else:
        heading(texts("forecast.order"))
        rows = [[texts("forecast.now"), r.id, r.priority, r.title] for r in foreseen.running]
        rows += [[str(place), r.id, r.priority, r.title] for place, r in enumerate(foreseen.order, 1)]
        table(["#", texts("column.id"), texts("column.priority"), texts("column.title")], rows)
    if foreseen.never:
        click.echo()
        heading(texts("forecast.never"))
        columns = [texts("column.id"), texts("column.reason"), texts("column.detail")]
        table(
            columns,
            [[e.request_id, e.barrier.reason_code, describe(e.barrier, texts, e.invalid)] for e in foreseen.never],
        )
        click.echo(texts("forecast.hint"))
