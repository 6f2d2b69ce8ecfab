"""End the work on a run (LCK-6, REQ-5): its request shows the outcome, and the lock is given back.

The lock is given back in every way a run can end; only one that was lost already is left alone.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from aiflow.domain.request import RequestId
from aiflow.errors import AiflowError
from aiflow.usecases.advance_run import advance_run
from aiflow.usecases.bring_in import accept_by_itself
from aiflow.usecases.clean_up import clean_after_accept
from aiflow.usecases.notify import tell_waiting

if TYPE_CHECKING:
    from aiflow.domain.run import Run
    from aiflow.usecases.run_work import Work


def work_to_the_end(work: Work) -> Run:
    """Advance a run that is claimed to its end, settle it, and tell a person if it waits for them."""
    try:
        advance_run(work)
        accept_by_itself(work)
        settle_run(work, work.run)
    finally:
        # Behind a disk that is full the lock can still go: the run then shows as crashed, not as running.
        with contextlib.suppress(AiflowError):
            work.lease.release()
    tell_waiting(work.engine, work.run)  # without the lock: the command that tells may take its time
    return work.run


def settle_run(work: Work, run: Run) -> None:
    """Show a run's end on its request, while the lock is still ours; the worktree of an accepted one goes (GIT-5)."""
    work.require_lock()
    work.engine.source.settle(RequestId(run.request_id), run.run_id, run.outcome)
    work.engine.control.clear(run.run_id)
    if run.accepted_as:
        clean_after_accept(work.engine, run, work.lease)
