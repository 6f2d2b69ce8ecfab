"""What runs cost, as people read it: by role, request, night and month."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from aiflow.cli.terminal.render import heading, table
from aiflow.domain.agents.usage import Usage
from aiflow.usecases.shapes.report_words import role_name, use_cells

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aiflow.cli.session import CliSession
    from aiflow.domain.morning.costs import CostLine, Costs

REQUESTS_SHOWN = 10


def show_costs(session: CliSession, costs: Costs) -> None:
    """List what runs cost; of the requests those that cost most."""
    texts = session.texts
    if not costs.months:
        click.echo(texts("costs.none"))
        return
    roles = [each._replace(name=role_name(each.name, _usage(each), texts)) for each in costs.roles]
    _show(session, "role", roles, days=costs.days)
    _show(session, "request", costs.requests[:REQUESTS_SHOWN], days=costs.days)
    if (more := len(costs.requests) - REQUESTS_SHOWN) > 0:
        click.echo(texts("costs.more", count=more))
    _show(session, "night", costs.nights)
    _show(session, "month", costs.months)


def _show(session: CliSession, what: str, lines: Sequence[CostLine], **facts: int) -> None:
    if not lines:
        return
    click.echo()
    heading(session.texts(f"costs.{what}", **facts))
    columns = [session.texts(f"column.{name}") for name in (what, "runs", "calls", "tokens", "cost", "took")]
    table(columns, [[str(line.name), str(line.runs), *use_cells(_usage(line))] for line in lines])


def _usage(line: CostLine) -> Usage:
    return Usage(line.agent_calls, line.tokens, 0, 0, line.cost_usd, line.seconds)
