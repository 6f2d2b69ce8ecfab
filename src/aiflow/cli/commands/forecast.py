"""`aiflow forecast`."""

from __future__ import annotations

import click

from aiflow.cli.options import command as make_command
from aiflow.cli.render import heading, table
from aiflow.cli.session import Session, print_json
from aiflow.domain.forecast import Forecast, forecast
from aiflow.usecases.read_backlog import read_backlog
from aiflow.usecases.shapes import describe, forecast_result


@make_command("forecast")
def command(session: Session, as_json: bool) -> None:  # noqa: FBT001
    """Show the order in which the backlog will run, and what can never run."""
    foreseen = forecast(read_backlog(session.project.sources))
    if as_json:
        print_json(forecast_result(foreseen))
    else:
        _show(session, foreseen)


def _show(session: Session, foreseen: Forecast) -> None:
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
