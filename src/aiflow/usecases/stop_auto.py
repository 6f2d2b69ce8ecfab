"""Ask a running auto-run to stop (AUT-3, LCK-8): after the run it is at, or now."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.activity import Activity, ActivityKind, Actor
from aiflow.domain.lock import LockType
from aiflow.errors import ConflictError

if TYPE_CHECKING:
    from aiflow.domain.auto_run import StopRequest
    from aiflow.domain.lock import Lock
    from aiflow.usecases.engine import Engine


class Asked(NamedTuple):
    """Who was asked: the auto-run by its lock, and the run it is at, if it is at one."""

    auto: Lock
    run: Lock | None


def ask_to_stop(engine: Engine, wish: StopRequest) -> Asked:
    """Ask the auto-run of this checkout to stop, or refuse if none is at work."""
    auto = _holder(engine)
    if auto is None:
        raise ConflictError(reason_code="AUTO_NOT_RUNNING")
    held = engine.locks.held()[0].values()
    run = next((lock for lock in held if lock.holder == auto.holder), None)
    data = {"asked": "stop", "when": wish.value, "pid": auto.pid}
    request_id, run_id = (run.request_id, run.run_id) if run else (None, None)
    who, why = Actor.PERSON, "AUTO_STOPPED_BY_PERSON"
    engine.journal.append(Activity(engine.clock(), ActivityKind.DECISION, who, request_id, run_id, why, data))
    engine.control.ask_stop(wish)
    return Asked(auto, run)


def has_ended(engine: Engine, auto: Lock) -> bool:
    """Tell whether an auto-run is no longer at work."""
    now = _holder(engine)
    return now is None or now.token != auto.token


def _holder(engine: Engine) -> Lock | None:
    """Return the queue lock of an auto-run that is at work; a dead one's counts as none."""
    queue = (status for status in engine.locks.survey() if status.lock.lock_type is LockType.QUEUE)
    return next((status.lock for status in queue if not status.verdict.is_stale), None)
