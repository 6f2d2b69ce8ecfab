"""Cancel a run (RUN-12, LCK-8, RUN-14): ask the process that works on it, or stop a run that no process works on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.activity import Actor, decided
from aiflow.domain.lock import Lock
from aiflow.domain.queue.delivery import given_up, is_cut
from aiflow.domain.request import RequestId
from aiflow.domain.runs.events import cancelled
from aiflow.errors import ConflictError
from aiflow.usecases.runs.ending import record_verdict
from aiflow.usecases.runs.find import current
from aiflow.usecases.runs.locks import reclaim_locks
from aiflow.usecases.runs.notify import tell_waiting
from aiflow.usecases.runs.recover import stop_interrupted
from aiflow.usecases.runs.work import holding

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from aiflow.domain.run_summary import TaskRef
    from aiflow.domain.runs.run import Run
    from aiflow.usecases.engine import Engine


def ask_to_cancel(engine: Engine, run: Run) -> bool:
    """Ask the process that works on a run to end it; False if there is none, and the run was stopped here instead."""
    if not run.is_active:
        raise ConflictError(reason_code="RUN_NOT_ACTIVE", request_id=run.request_id, run_id=run.run_id)
    reclaim_locks(engine)
    request_id = RequestId(run.request_id)
    engine.journal.append(decided(engine.time.now(), Actor.PERSON, run, "CANCELLED", asked="cancel"))
    engine.control.ask_cancel(run.run_id)  # first: the process that has it, or takes it up after a kill of ours, obeys
    lease = engine.locks.acquire_request(request_id, run.run_id, beside_others=True)
    if isinstance(lease, Lock):
        current = engine.runs.load(request_id, run.run_id)
        if current is not None and not current.is_active:  # it came to its end meanwhile
            engine.control.clear(run.run_id)
        return True
    stop_interrupted(engine, lease, run, cancelled)
    return False


def cancel_run(engine: Engine, run: Run) -> Run:
    """Ask for a run's end and return it as it is then: one that somebody works on ends in a moment, or later."""
    ask_to_cancel(engine, run)
    return current(engine, run)


def task_going_on(run: Run) -> TaskRef | None:
    """Return the task that continues a run, if that was only stopped by its runner."""
    return run.task if is_cut(run) else None


def judge_cut(engine: Engine, run: Run, verdict: Callable[[Run, datetime], Run]) -> Run | None:
    """Write a verdict on a run that its runner stopped; None if it is held or was resumed meanwhile."""
    lease = engine.locks.acquire_request(RequestId(run.request_id), run.run_id, beside_others=True)
    if isinstance(lease, Lock):
        return None
    with holding(engine, lease, run) as work:
        if not is_cut(work.run):
            return None
        record_verdict(work, verdict(work.run, engine.time.now()))
        return work.run


def give_up(engine: Engine, run: Run) -> Run:
    """Leave a run to a person whose every attempt was cut off, and tell them."""
    judged = judge_cut(engine, run, given_up)
    if judged is None:
        return engine.runs.load(run.request_id, run.run_id) or run
    tell_waiting(engine, judged)
    return judged
