"""`aiflow auto`."""

from __future__ import annotations

from dataclasses import replace

import click

from aiflow.cli.auto_session import run_auto
from aiflow.cli.options import command as make_command
from aiflow.cli.options import option
from aiflow.cli.session import Session, print_json
from aiflow.domain.reasons import exit_code
from aiflow.usecases.auto_run import limits_of
from aiflow.usecases.auto_summary import summary_shape


@make_command("auto")
@option("--watch", is_flag=True, help="option.auto.watch")
@option("--max-runs", "session_runs", type=click.IntRange(min=0), metavar="N", help="option.auto.max_runs")
@option("--max-minutes", "session_minutes", type=click.IntRange(min=0), metavar="N", help="option.auto.max_minutes")
@option("--max-cost", "session_cost_usd", type=click.FloatRange(min=0), metavar="USD", help="option.auto.max_cost")
def command(session: Session, as_json: bool, watch: bool, **ceilings: float | None) -> None:  # noqa: FBT001
    """Work through the backlog, one request after the other."""
    given = {name: value for name, value in ceilings.items() if value is not None}
    limits = replace(limits_of(session.settings), **given)  # type: ignore[arg-type]
    summary = run_auto(session, limits, as_json=as_json, watch=watch)
    if as_json:
        print_json(summary_shape(summary))
    code = summary.session.reason_code
    raise click.exceptions.Exit(int(exit_code(code)) if code else 0)
