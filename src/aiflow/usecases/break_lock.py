"""Break a lock by hand (LCK-4): a person may, also when its holder lives; it is recorded, and the holder notices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.activity import Activity, ActivityKind, Actor
from aiflow.errors import NotFoundError

if TYPE_CHECKING:
    from aiflow.domain.lock import LockStatus
    from aiflow.domain.request import RequestId
    from aiflow.usecases.engine import Engine


def break_lock(engine: Engine, request_id: RequestId | None) -> LockStatus:
    """Remove a request's lock, or the queue's (None), whoever holds it."""
    broken = engine.locks.break_lock(request_id)
    if broken is None:
        raise NotFoundError(reason_code="LOCK_NOT_FOUND", name=request_id or "queue", request_id=request_id or "queue")
    lock = broken.lock
    data = {"asked": "break", "pid": lock.pid, "host": lock.host, "verdict": broken.verdict.value}
    kind = ActivityKind.DECISION
    engine.journal.append(Activity(engine.clock(), kind, Actor.PERSON, lock.request_id, lock.run_id, "LOCK_LOST", data))
    return broken
