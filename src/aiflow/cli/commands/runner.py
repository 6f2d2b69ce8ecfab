"""`aiflow runner`."""

from __future__ import annotations

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
    from aiflow.cli.session import CliSession


@make_command("runner")
@option("--once", is_flag=True, help="option.runner.once")
def command(session: CliSession, as_json: bool, once: bool) -> None:  # noqa: FBT001
    """Work on the tasks of the queue, one at a time."""
    views: list[RunnerView] = []

    def heard(interrupts: Interrupts) -> None:
        for view in views:
            view.asked_to_stop(is_now=interrupts.wish() is StopRequest.NOW)

    expect_to_stay()
    with catching_signals(heard) as interrupts:
        store = open_queue_store(session, is_quiet=as_json)
        desk = build_desk(session.project, session.engine(), store)
        view = RunnerView(session.texts, desk.runner, as_json=as_json)
        views.append(view)
        engine = session.engine(view=view)
        with view:
            desk = replace(desk, engine=engine, asked=interrupts.wish, tell=view.hear, tell_auto=view.observe_auto)
            work_tasks(desk, is_once=once)
