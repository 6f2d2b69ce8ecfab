"""Read the backlog: requests, runs and locks as the one value that selection looks at (SEL-1, SEL-7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.request import RequestStatus
from aiflow.domain.selection import Backlog

if TYPE_CHECKING:
    from aiflow.ports import LockView, RequestFiles, RunHistory


class BacklogSources(NamedTuple):
    """Where a backlog is read from."""

    requests: RequestFiles
    runs: RunHistory
    locks: LockView


def read_backlog(sources: BacklogSources, *, with_all_runs: bool = True) -> Backlog:
    """Read everything; without `with_all_runs` only the runs that selection needs, those of ready requests."""
    # Locks first: a run that ends while we read then shows as locked, never as free with a status already old.
    locks, queue_lock = sources.locks.held()
    valid, invalid = sources.requests.load()
    ready = RequestStatus.READY
    wanted = None if with_all_runs else [request.id for request in valid if request.status is ready]
    runs = sources.runs.latest(wanted)
    return Backlog(tuple(valid), tuple(invalid), runs, locks, queue_lock)
