"""`aiflow auto`."""

from __future__ import annotations

from dataclasses import replace

import click

from aiflow.cli.auto_session import run_auto
from aiflow.cli.auto_view import AutoView
from aiflow.cli.options import command as make_command
from aiflow.cli.options import option
from aiflow.cli.session import Session, print_json
from aiflow.domain.reasons import exit_code
from aiflow.usecases.auto_run import limits_of
from aiflow.usecases.auto_summary import summarize, summary_shape
from aiflow.usecases.shapes import ENGLISH
from aiflow.usecases.use_told import untold_cost


@make_command("auto")
@option("--watch", is_flag=True, help="option.auto.watch")
@option("--max-runs", "session_runs", type=click.IntRange(min=0), metavar="N", help="option.auto.max_runs")
@option("--max-minutes", "session_minutes", type=click.IntRange(min=0), metavar="N", help="option.auto.max_minutes")
@option("--max-cost", "session_cost_usd", type=click.FloatRange(min=0), metavar="USD", help="option.auto.max_cost")
@option("--max-tokens", "session_tokens", type=click.IntRange(min=0), metavar="N", help="option.auto.max_tokens")
@option("--max-calls", "session_agent_calls", type=click.IntRange(min=0), metavar="N", help="option.auto.max_calls")
@option("--last", is_flag=True, help="option.auto.last")
def command(session: Session, as_json: bool, watch: bool, last: bool, **ceilings: float | None) -> None:  # noqa: FBT001
    """Work through the backlog, one request after the other."""
    if last:
        _show_last(session, as_json=as_json)
        return
    given = {name: value for name, value in ceilings.items() if value is not None}
    limits = replace(limits_of(session.settings), **given)  # type: ignore[arg-type]
    if limits.session_cost_usd and (silent := untold_cost(session.settings)):
        click.echo(session.texts("auto.no_cost", roles=", ".join(silent)), err=True)
    summary = run_auto(session, limits, as_json=as_json, watch=watch)
    if as_json:
        print_json(summary_shape(summary))
    code = summary.session.reason_code
    raise click.exceptions.Exit(int(exit_code(code)) if code else 0)


def _show_last(session: Session, *, as_json: bool) -> None:
    """Show the summary of the last auto-run, with the backlog as it is now; changes nothing."""
    engine, record = session.engine(), session.project.auto_records.load()
    if record is None:
        print_json(None) if as_json else click.echo(session.texts("auto.none_yet"))
        return
    summary = summarize(engine, record, ENGLISH if as_json else session.texts)
    if as_json:
        print_json(summary_shape(summary))
        return
    is_on = any(status.lock.request_id is None and not status.verdict.is_stale for status in engine.locks.survey())
    standing = session.texts("auto.still_on" if is_on else "auto.was_cut") if record.is_interrupted else None
    AutoView(session.texts, is_quiet=False).show_again(summary, standing)
