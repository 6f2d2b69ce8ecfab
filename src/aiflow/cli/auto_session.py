"""Auto-run in front of a person: shown as it happens, stopped by Ctrl-C, summed up at its end."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING

from aiflow.cli.auto_view import AutoView
from aiflow.cli.recording import recorded
from aiflow.cli.running import Interrupts, catching_signals
from aiflow.domain.auto_run import StopRequest
from aiflow.usecases.auto_run import auto_run
from aiflow.usecases.auto_shift import Terms
from aiflow.usecases.shapes import ENGLISH

if TYPE_CHECKING:
    from aiflow.cli.session import Session
    from aiflow.domain.auto_run import Limits, Summary
    from aiflow.domain.task import TaskEnd
    from aiflow.usecases.engine import Engine
    from aiflow.usecases.heartbeat import Hold
    from aiflow.usecases.record_task import Errand


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
        engine = session.engine(lambda: interrupts.wish() is StopRequest.NOW, view)

        def work(engine: Engine) -> Summary:  # what ends a run from elsewhere ends the auto-run
            return auto_run(engine, replace(terms, asked=lambda: _wish(engine, interrupts)))

        return recorded(session, engine, lambda: _errand(session), work, _end_of)


def _wish(engine: Engine, interrupts: Interrupts) -> StopRequest:
    return StopRequest.NOW if engine.interrupted() else interrupts.wish()


def _errand(session: Session) -> Errand:
    """Say what goes into a shared queue: one auto-run per checkout."""
    from aiflow.domain.task import TaskAction, auto_run_guard
    from aiflow.usecases.enqueue_work import USUAL_PRIORITY
    from aiflow.usecases.record_task import Errand
    from aiflow.wiring import checkout_of

    return Errand(TaskAction.AUTO_RUN, auto_run_guard(checkout_of(session.project)), priority=USUAL_PRIORITY)


def _end_of(hold: Hold, summary: Summary) -> TaskEnd:
    from aiflow.usecases.execute_task import end_of_auto

    return end_of_auto(hold, summary.session.reason_code)
