"""Settle a run (REQ-5): its request shows the outcome, and the worktree of an accepted one is removed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from aiflow.domain.claims import Settled
from aiflow.usecases.clean.clean_up import clean_after_accept
from aiflow.usecases.runs.claims import settle
from aiflow.usecases.runs.follow_ups import file_proposals
from aiflow.usecases.runs.report import add_lines

if TYPE_CHECKING:
    from aiflow.domain.claims import Dropped
    from aiflow.domain.runs.run import Run
    from aiflow.usecases.runs.work import Work


def settle_run(work: Work, run: Run) -> Settled | Dropped:
    """Show a run's end on its request, while the lock is still ours; the worktree of an accepted one goes (GIT-5)."""
    work.require_lock()
    known = file_proposals(work, run)  # what could not be written before the run ended
    run = run if known is run else work.run
    shown = settle(work.engine, run.request_id, run.run_id, run.outcome)
    work.engine.control.clear(run.run_id)
    if isinstance(shown, Settled) and shown.pull_url is not None:
        note_pull(work, shown.pull_url)
    if run.accepted_as:
        clean_after_accept(work.engine, run, work.lease)
    return shown


def note_pull(work: Work, url: str) -> None:
    """Write down which pull request shows a run's work, once; its report says so, too."""
    engine, run = work.engine, work.run
    if run.pull_url == url:
        return
    with work.lease.writing():
        told = engine.voice.texts("report.pull", url=url)
        if told not in (engine.runs.report(run) or ""):  # a kill may have come before the record
            add_lines(engine, run, [told, ""])
    work.save(replace(run, pull_url=url))
