"""Settle a run (REQ-5): its request shows the outcome, and the worktree of an accepted one is removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.usecases.clean.clean_up import clean_after_accept
from aiflow.usecases.runs.claims import settle

if TYPE_CHECKING:
    from aiflow.domain.claims import Dropped, Settled
    from aiflow.domain.runs.run import Run
    from aiflow.usecases.runs.work import Work


def settle_run(work: Work, run: Run) -> Settled | Dropped:
    """Show a run's end on its request, while the lock is still ours; the worktree of an accepted one goes (GIT-5)."""
    work.require_lock()
    shown = settle(work.engine, run.request_id, run.run_id, run.outcome)
    work.engine.control.clear(run.run_id)
    if run.accepted_as:
        clean_after_accept(work.engine, run, work.lease)
    return shown
