"""Which requests' runs were interrupted (RUN-11): asked by what explains, changes nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from aiflow.domain.request import RequestStatus

if TYPE_CHECKING:
    from aiflow.domain.selection import Backlog
    from aiflow.ports import Locks


def with_interrupted(backlog: Backlog, locks: Locks) -> Backlog:
    """Add to a backlog which requests look as if somebody worked on them, while nobody does; nor does an auto-run."""
    alive = {status.lock.request_id for status in locks.survey() if not status.verdict.is_stale}
    queue_lock = backlog.queue_lock if None in alive else None
    cut = {
        request.id
        for request in backlog.requests
        if request.id not in alive
        and (request.status is RequestStatus.RUNNING or ((run := backlog.runs.get(request.id)) and run.is_active))
    }
    return replace(backlog, interrupted=frozenset(cut), queue_lock=queue_lock)
