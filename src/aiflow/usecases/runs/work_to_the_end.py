"""Work on a run to its end (RUN-2, LCK-6): advance it, merge it where that is automatic, settle it, release the lock.

Every way to start or continue a run ends here. The lock is released however the run ends; only one that was lost
already is left alone.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from aiflow.errors import AiflowError
from aiflow.usecases.runs.advance import advance_run
from aiflow.usecases.runs.merge import accept_by_itself
from aiflow.usecases.runs.notify import tell_waiting
from aiflow.usecases.runs.settle import settle_run

if TYPE_CHECKING:
    from aiflow.domain.runs.run import Run
    from aiflow.usecases.runs.work import Work


def work_to_the_end(work: Work) -> Run:
    """Advance a run that is claimed to its end, settle it, and notify a person if it waits for them."""
    try:
        advance_run(work)
        accept_by_itself(work)
        shown = settle_run(work, work.run)
    finally:
        # On a full disk the lock can still be removed: the run then shows as crashed, not as running.
        with contextlib.suppress(AiflowError):
            work.lease.release()
    tell_waiting(work.engine, work.run, shown)  # without the lock: the notification command may take long
    return work.run
