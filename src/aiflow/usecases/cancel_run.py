"""Cancel a run (RUN-12, LCK-8): ask the process at work through a control file, or stop a run that nobody works on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.activity import Activity, ActivityKind, Actor
from aiflow.domain.lock import Lock
from aiflow.domain.request import RequestId
from aiflow.domain.run_events import cancelled
from aiflow.errors import ConflictError
from aiflow.usecases.recover_runs import reclaim_locks, stop_interrupted

if TYPE_CHECKING:
    from aiflow.domain.run import Run
    from aiflow.usecases.engine import Engine


def ask_to_cancel(engine: Engine, run: Run) -> bool:
    """Ask whoever works on a run to end it; False if nobody does, and the run was stopped here instead."""
    if not run.is_active:
        raise ConflictError(reason_code="RUN_NOT_ACTIVE", request_id=run.request_id, run_id=run.run_id)
    reclaim_locks(engine)
    request_id = RequestId(run.request_id)
    data = {"asked": "cancel"}
    now = engine.clock()
    engine.journal.append(Activity(now, ActivityKind.DECISION, Actor.PERSON, request_id, run.run_id, "CANCELLED", data))
    engine.control.ask_cancel(run.run_id)  # first: whoever has it, or takes it up behind a kill of ours, obeys
    lease = engine.locks.acquire_request(request_id, run.run_id, beside_others=True)
    if isinstance(lease, Lock):
        current = engine.runs.load(request_id, run.run_id)
        if current is not None and not current.is_active:  # it came to its end meanwhile
            engine.control.clear(run.run_id)
        return True
    stop_interrupted(engine, lease, run, cancelled)
    return False
