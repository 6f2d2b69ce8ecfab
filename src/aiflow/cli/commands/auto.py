"""`aiflow auto`."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import click

from aiflow.cli.auto_session import begin_later, run_auto
from aiflow.cli.options import ClockTime, next_moment, option
from aiflow.cli.options import command as make_command
from aiflow.cli.terminal.print_json import print_json
from aiflow.cli.views.auto import AutoView
from aiflow.domain.reasons import exit_code
from aiflow.errors import BadInputError
from aiflow.usecases.auto.run import limits_of, require_cut
from aiflow.usecases.auto.status import auto_status
from aiflow.usecases.shapes.auto import summary_shape
from aiflow.usecases.shapes.backlog import ENGLISH
from aiflow.usecases.shapes.usage_words import untold_cost

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession
    from aiflow.domain.auto.summary import Summary


@make_command("auto")
@option("--at", type=ClockTime(), metavar="HH:MM", help="option.auto.at")
@option("--until", type=ClockTime(), metavar="HH:MM", help="option.auto.until")
@option("--watch", is_flag=True, help="option.auto.watch")
@option("--max-runs", "session_runs", type=click.IntRange(min=0), metavar="N", help="option.auto.max_runs")
@option("--max-minutes", "session_minutes", type=click.IntRange(min=0), metavar="N", help="option.auto.max_minutes")
@option("--max-cost", "session_cost_usd", type=click.FloatRange(min=0), metavar="USD", help="option.auto.max_cost")
@option("--max-tokens", "session_tokens", type=click.IntRange(min=0), metavar="N", help="option.auto.max_tokens")
@option("--max-calls", "session_agent_calls", type=click.IntRange(min=0), metavar="N", help="option.auto.max_calls")
@option("--continue", "is_continuing", is_flag=True, help="option.auto.continue")
@option("--last", is_flag=True, help="option.auto.last")
def command(session: CliSession, as_json: bool, watch: bool, last: bool, **given: Any) -> None:  # noqa: FBT001
    """Work through the backlog, one request after the other."""
    if last:
        _show_last(session, as_json=as_json)
        return
    if given.pop("is_continuing"):
        if watch or any(value is not None for value in given.values()):
            raise BadInputError(detail=session.texts("auto.continue_alone"))
        _continue(session, as_json=as_json)
    at, until = given.pop("at"), given.pop("until")
    ceilings = {name: value for name, value in given.items() if value is not None}
    if not math.isfinite(ceilings.get("session_cost_usd", 0)):
        raise BadInputError(detail=session.texts("web.not_a_number", value=ceilings["session_cost_usd"]))
    begins = next_moment(at, session.now()) if at else None
    ends = next_moment(until, begins or session.now()) if until else None
    limits = replace(limits_of(session.settings), **ceilings, until=ends)
    if limits.session_cost_usd and (silent := untold_cost(session.settings)):
        click.echo(session.texts("auto.no_cost", roles=", ".join(silent)), err=True)
    if begins is not None:
        begin_later(session, begins)
    _leave(run_auto(session, limits, as_json=as_json, watch=watch), as_json=as_json)


def _continue(session: CliSession, *, as_json: bool) -> NoReturn:
    """Continue the auto-run that was cut off, as it was begun: with its ceilings and until the same time (AUT-4)."""
    last = require_cut(session.project.auto_records.load())
    limits = last.limits or limits_of(session.settings)
    _leave(run_auto(session, limits, as_json=as_json, watch=last.is_watching, is_continuing=True), as_json=as_json)


def _leave(summary: Summary, *, as_json: bool) -> NoReturn:
    if as_json:
        print_json(summary_shape(summary))
    code = summary.session.reason_code
    raise click.exceptions.Exit(int(exit_code(code)) if code else 0)


def _show_last(session: CliSession, *, as_json: bool) -> None:
    """Show the summary of the last auto-run, with the backlog as it is now; changes nothing."""
    report = auto_status(session.engine(), session.project.auto_records, ENGLISH if as_json else session.texts)
    if as_json:
        print_json(summary_shape(report.summary) if report.summary else None)
    elif report.summary is None:
        click.echo(session.texts("auto.none_yet"))
    else:
        key = "auto.still_on" if report.is_current else "auto.was_cut" if report.was_cut else None
        AutoView(session.texts, is_quiet=False).show_again(report.summary, session.texts(key) if key else None)
