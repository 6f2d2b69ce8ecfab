"""Auto-run in front of a person: shown as it happens, stopped by Ctrl-C, summed up at its end."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from aiflow.cli.auto_view import AutoView
from aiflow.cli.running import Interrupts, catching_signals
from aiflow.domain.auto_run import StopRequest
from aiflow.usecases.auto_run import auto_run
from aiflow.usecases.auto_shift import Terms
from aiflow.usecases.shapes import ENGLISH

if TYPE_CHECKING:
    from aiflow.cli.session import Session
    from aiflow.domain.auto_run import Limits, Summary


def run_auto(session: Session, limits: Limits, *, as_json: bool, watch: bool = False) -> Summary:
    """Work through the backlog and tell how it ended; as JSON that is left to the caller."""
    view = AutoView(session.texts, is_quiet=as_json, limits=limits)
    return _work(session, view, limits, as_json=as_json, watch=watch)


def _work(session: Session, view: AutoView, limits: Limits, *, as_json: bool, watch: bool) -> Summary:
    """Let auto-run work in front of the person, who may stop it with Ctrl-C."""

    def heard(interrupts: Interrupts) -> None:
        is_now = interrupts.wish() is StopRequest.NOW
        view.stopping(session.texts("auto.stops_now" if is_now else "auto.stops_after_run"))

    def finish(summary: Summary) -> None:
        with contextlib.suppress(OSError):  # that nobody reads it does not change how it ended
            view.finish(summary)

    with catching_signals(heard) as interrupts, view:
        terms = Terms(
            session.project.auto_records,
            limits,
            ENGLISH if as_json else session.texts,
            is_watching=watch,
            asked=interrupts.wish,
            observe=view.observe_auto,
            finish=finish,
        )
        return auto_run(session.engine(lambda: interrupts.wish() is StopRequest.NOW, view), terms)
