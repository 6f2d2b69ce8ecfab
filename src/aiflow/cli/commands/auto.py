"""`aiflow auto`."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from aiflow.cli.auto_view import AutoView
from aiflow.cli.options import command as make_command
from aiflow.cli.options import option
from aiflow.cli.running import Interrupts, catching_signals
from aiflow.cli.session import Session, print_json
from aiflow.domain.auto_run import StopRequest
from aiflow.domain.reasons import exit_code
from aiflow.usecases.auto_run import auto_run, limits_of
from aiflow.usecases.auto_shift import Terms
from aiflow.usecases.auto_summary import summary_shape
from aiflow.usecases.shapes import ENGLISH

if TYPE_CHECKING:
    from aiflow.domain.auto_run import Limits, Summary


@make_command("auto")
@option("--watch", is_flag=True, help="option.auto.watch")
@option("--max-runs", "session_runs", type=click.IntRange(min=0), metavar="N", help="option.auto.max_runs")
@option("--max-minutes", "session_minutes", type=click.IntRange(min=0), metavar="N", help="option.auto.max_minutes")
@option("--max-cost", "session_cost_usd", type=click.FloatRange(min=0), metavar="USD", help="option.auto.max_cost")
def command(session: Session, as_json: bool, watch: bool, **ceilings: float | None) -> None:  # noqa: FBT001
    """Work through the backlog, one request after the other."""
    given = {name: value for name, value in ceilings.items() if value is not None}
    limits = replace(limits_of(session.settings), **given)  # type: ignore[arg-type]
    view = AutoView(session.texts, is_quiet=as_json, limits=limits)
    summary = _work(session, view, limits, as_json=as_json, watch=watch)
    if as_json:
        print_json(summary_shape(summary))
    else:
        _finish(session, view, summary)
    code = summary.session.reason_code
    raise click.exceptions.Exit(int(exit_code(code)) if code else 0)


def _work(session: Session, view: AutoView, limits: Limits, *, as_json: bool, watch: bool) -> Summary:
    """Let auto-run work in front of the person, who may stop it with Ctrl-C."""

    def heard(interrupts: Interrupts) -> None:
        is_now = interrupts.wish() is StopRequest.NOW
        view.stopping(session.texts("auto.stops_now" if is_now else "auto.stops_after_run"))

    with catching_signals(heard) as interrupts, view:
        terms = Terms(
            session.project.auto_records,
            limits,
            ENGLISH if as_json else session.texts,
            is_watching=watch,
            asked=interrupts.wish,
            observe=view.observe_auto,
        )
        return auto_run(session.engine(lambda: interrupts.wish() is StopRequest.NOW, view), terms)


def _finish(session: Session, view: AutoView, summary: Summary) -> None:
    """Tell how it ended; that nobody reads it does not change that."""
    with contextlib.suppress(OSError):
        view.finish(summary)
