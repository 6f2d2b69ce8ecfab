"""Take a request's lock for a run, or name who has it (LCK-7, ERR-2)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from aiflow.domain.lock import Lock
from aiflow.errors import ConflictError

if TYPE_CHECKING:
    from aiflow.domain.request import RequestId
    from aiflow.domain.run import Run
    from aiflow.ports import Lease
    from aiflow.usecases.engine import Engine


def take_lock(engine: Engine, request_id: RequestId, run_id: str, *, beside_others: bool = False) -> Lease:
    """Take a request's lock, or say who holds one in this checkout (or, beside others, that very one)."""
    lease = engine.locks.acquire_request(request_id, run_id, beside_others=beside_others)
    if isinstance(lease, Lock):
        raise in_progress(lease)
    return lease


def in_progress(holder: Lock) -> ConflictError:
    """Name who runs in this checkout."""
    return ConflictError(
        reason_code="RUN_IN_PROGRESS", request_id=holder.request_id, run_id=holder.run_id, pid=holder.pid
    )


def owned(engine: Engine, lease: Lease, run: Run) -> Run:
    """Write into a run who works on it from now on, and for which task (LCK-6, QUE-3)."""
    return replace(run, lock=_holder_shape(lease.lock), task=engine.task)


def _holder_shape(lock: Lock) -> dict[str, object]:
    """Write a lock's holder as `stage.json` records it (LCK-6)."""
    return {
        "pid": lock.pid,
        "host": lock.host,
        "fence": lock.fence,
        "created_at": lock.created_at.isoformat() if lock.created_at else None,
    }
