"""Auto-run in front of a person: shown as it happens, stopped by Ctrl-C, summed up at its end."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from aiflow.cli.running import Interrupts, catching_signals, expect_to_stay
from aiflow.cli.terminal.render import say
from aiflow.cli.views.auto import AutoView
from aiflow.domain.auto.stopping import StopRequest
from aiflow.usecases.auto.begin_later import wait_for_start
from aiflow.usecases.auto.run import auto_run
from aiflow.usecases.auto.shift import AutoTerms
from aiflow.usecases.shapes.backlog import ENGLISH

if TYPE_CHECKING:
    from datetime import datetime

    from aiflow.cli.session import CliSession
    from aiflow.domain.auto.stopping import Limits
    from aiflow.domain.auto.summary import Summary


def run_auto(
    session: CliSession, limits: Limits, *, as_json: bool, watch: bool = False, is_continuing: bool = False
) -> Summary:
    """Work through the backlog and report how it ended; as JSON that is left to the caller."""
    view = AutoView(session.texts, is_quiet=as_json, limits=limits)
    texts = ENGLISH if as_json else session.texts
    terms = AutoTerms(session.project.auto_records, limits, texts, is_watching=watch, is_continuing=is_continuing)
    terms = replace(terms, care=session.issues.work if session.issues is not None else None)
    return _work(session, view, terms)


def begin_later(session: CliSession, at: datetime) -> None:
    """Wait for the time that was set; Ctrl-C, or any other signal, ends that."""
    say(session.texts("auto.begins", at=f"{at.astimezone():%Y-%m-%d %H:%M}"), err=True)
    with catching_signals(lambda _interrupts: None) as interrupts:
        if not wait_for_start(session.engine(), at, interrupts):
            raise click.Abort


def _work(session: CliSession, view: AutoView, terms: AutoTerms) -> Summary:
    """Let auto-run work in front of the person, who may stop it with Ctrl-C."""

    def heard(interrupts: Interrupts) -> None:
        is_now = interrupts.wish() is StopRequest.NOW
        view.stopping(session.texts("auto.stops_now" if is_now else "auto.stops_after_run"))

    def finish(summary: Summary) -> None:
        with contextlib.suppress(OSError):  # a closed output does not change how it ended
            view.finish(summary)

    expect_to_stay()
    with catching_signals(heard) as interrupts, view:
        heeding = replace(terms, asked=interrupts.wish_or_cut, observe=view.observe_auto, finish=finish)
        return auto_run(session.engine(lambda: interrupts.wish() is StopRequest.NOW, view), heeding)
