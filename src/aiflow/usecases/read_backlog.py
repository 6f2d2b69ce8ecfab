"""Read the backlog: requests, runs and locks as the one value that selection looks at (SEL-1, SEL-7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.backlog.selection import Backlog
from aiflow.domain.request import RequestStatus
from aiflow.domain.run_summary import is_lost
from aiflow.errors import AiflowError, NotFoundError

if TYPE_CHECKING:
    from aiflow.domain.request import RequestId
    from aiflow.ports import Locks, LockView, RequestSource, RunHistory


class BacklogSources(NamedTuple):
    """Where a backlog is read from."""

    requests: RequestSource
    runs: RunHistory
    locks: LockView


def read_backlog(sources: BacklogSources, *, with_all_runs: bool = True) -> Backlog:
    """Read everything; without `with_all_runs` only the runs of ready requests, for selection, and of running ones."""
    # Locks first: a run that ends while we read then shows as locked, never as free with a status already old.
    locks, queue_lock = sources.locks.held()
    valid, invalid = sources.requests.load_all()
    ready, running = RequestStatus.READY, RequestStatus.RUNNING
    wanted = None if with_all_runs else [r.id for r in valid if r.status is ready or r.status is running]
    runs = sources.runs.latest(wanted)
    drafted = frozenset(r.id for r in valid if r.status is running and sources.runs.has_draft(r.id))
    return Backlog(tuple(valid), tuple(invalid), runs, locks, queue_lock, drafted=drafted)


def is_known(source: RequestSource, request_id: RequestId) -> bool:
    """Return whether there is such a request, be it one that cannot be read."""
    try:
        source.load(request_id)
    except NotFoundError:
        return False
    except AiflowError as error:
        if error.reason_code == "REQUESTS_DIR_MISSING":  # then nothing is known at all
            raise
    return True


def with_interrupted(backlog: Backlog, locks: Locks) -> Backlog:
    """Add to a backlog which requests look as if a process worked on them, while none does, not even an auto-run."""
    from aiflow.domain.lock import LockType

    judged = locks.survey()
    alive = {status.lock.request_id for status in judged if not status.verdict.is_stale}
    dead = {status.lock.request_id for status in judged if status.verdict.is_stale}
    kinds = {status.lock.lock_type for status in judged if not status.verdict.is_stale}
    turns = (status.lock for status in judged if status.lock.lock_type is LockType.TURN and not status.verdict.is_stale)
    queue_lock = backlog.queue_lock if backlog.queue_lock and backlog.queue_lock.lock_type in kinds else None
    running = RequestStatus.RUNNING  # first the few that look so: this is asked for every page (PRF-7)
    looks_so = {request.id: request for request in backlog.requests if request.status is running}
    active = [name for name, run in backlog.runs.items() if run.is_active]
    looks_so.update((name, backlog.by_id[name]) for name in active if name in backlog.by_id)
    cut = {name for name, request in looks_so.items() if name not in alive and not request.is_held_elsewhere}
    lost = {name for name in cut - backlog.drafted if is_lost(backlog.runs.get(name))}
    dead_locks = frozenset(request_id for request_id in backlog.locks if request_id in dead)
    return backlog._replace(
        interrupted=frozenset(cut),
        lost=frozenset(lost),
        dead_locks=dead_locks,
        queue_lock=queue_lock,
        turn=next(turns, None),
    )


def without_dead_locks(backlog: Backlog, locks: Locks) -> Backlog:
    """Return a backlog as the next start finds it, which reclaims stale locks first (LCK-5)."""
    judged = with_interrupted(backlog, locks)
    held = {name: lock for name, lock in judged.locks.items() if name not in judged.dead_locks}
    return judged._replace(locks=held, dead_locks=frozenset())
