"""`aiflow runner`."""

from __future__ import annotations

import contextlib
import os
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

from aiflow.cli.options import command as make_command
from aiflow.cli.options import option
from aiflow.cli.running import Interrupts, catching_signals, expect_to_stay
from aiflow.cli.terminal.store_progress import open_queue_store
from aiflow.cli.views.runner import RunnerView
from aiflow.domain.auto.stopping import StopRequest
from aiflow.usecases.runner.work_tasks import work_tasks
from aiflow.wiring.stores import build_desk

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiflow.cli.session import CliSession


@make_command("runner")
@option("--once", is_flag=True, help="option.runner.once")
@option("--with-parent", is_flag=True, hidden=True, help="option.runner.with_parent")
def command(session: CliSession, as_json: bool, once: bool, with_parent: bool) -> None:  # noqa: FBT001
    """Work on the tasks of the queue, one at a time."""
    views: list[RunnerView] = []

    def heard(interrupts: Interrupts) -> None:
        for view in views:
            view.asked_to_stop(is_now=interrupts.wish() is StopRequest.NOW)

    expect_to_stay()
    with catching_signals(heard) as interrupts:
        if with_parent:
            _heed_parent(lambda: interrupts.stop_after_work(heard))
        store = open_queue_store(session, is_quiet=as_json)
        desk = build_desk(session.project, session.engine(), store)
        desk = replace(desk, care=session.issues.work if session.issues is not None else None)
        view = RunnerView(session.texts, desk.runner, as_json=as_json)
        views.append(view)
        engine = session.engine(view=view)
        with view:
            desk = replace(desk, engine=engine, asked=interrupts.wish, tell=view.hear, tell_auto=view.observe_auto)
            work_tasks(desk, is_once=once)


def _heed_parent(has_gone: Callable[[], None]) -> None:
    """Hear when the process that started us has gone: it has the other end of our standard input (API-1)."""

    def listen() -> None:
        with contextlib.suppress(OSError):
            while os.read(0, 1):
                pass
        has_gone()

    threading.Thread(target=listen, name="parent", daemon=True).start()
