"""Next-request selection (D59; SEL-1 to SEL-4, SEL-7): what runs next, and why everything else does not.

Pure: the same backlog always gives the same answer. The barriers found here are what dispatches and what is shown.
"""

from __future__ import annotations

import math
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.backlog.dependencies import find_cycles
from aiflow.domain.request import InvalidRequest, Priority, Request, RequestId, RequestStatus
from aiflow.domain.run_summary import CUT_OFF

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from aiflow.domain.lock import Lock
    from aiflow.domain.run_summary import RunSummary

# Looking a member up in its enum costs more than everything else in these loops (Python 3.11).
_READY, _DONE = RequestStatus.READY, RequestStatus.DONE
_RANK = {priority: rank for rank, priority in enumerate(Priority)}


class Barrier(NamedTuple):
    """One rule that keeps a request from running; the facts fill its message."""

    reason_code: str
    facts: tuple[tuple[str, str], ...] = ()


class Exclusion(NamedTuple):
    """A request that was not chosen, and the first rule that kept it."""

    request_id: RequestId
    where: str
    barrier: Barrier
    invalid: InvalidRequest | None = None


class _Parts(NamedTuple):
    """What a backlog is made of; no data class, for to import that takes several milliseconds of each start."""

    requests: tuple[Request, ...] = ()
    invalid: tuple[InvalidRequest, ...] = ()
    runs: Mapping[RequestId, RunSummary] = MappingProxyType({})
    locks: Mapping[RequestId, Lock] = MappingProxyType({})
    queue_lock: Lock | None = None
    # Requests whose run is known to be interrupted: no process works on them, whatever their lock says.
    interrupted: frozenset[RequestId] = frozenset()
    # Those of them of whose run nothing is left: the next start blocks them (RUN_LOST).
    lost: frozenset[RequestId] = frozenset()
    # Requests for which a run was written down and not made yet.
    drafted: frozenset[RequestId] = frozenset()
    # Requests whose lock's holder is known to be gone: the next start reclaims the lock.
    dead_locks: frozenset[RequestId] = frozenset()
    # Requests whose run the next auto-run continues before it selects, in that order, where somebody has looked.
    continued: tuple[RequestId, ...] = ()
    # The turn of a process that is about to start something here, if it is known to be running.
    turn: Lock | None = None


class Backlog(_Parts):
    """Everything selection looks at, as one value."""

    @cached_property
    def by_id(self) -> Mapping[RequestId, Request]:
        """Every valid request by its id."""
        return {request.id: request for request in self.requests}

    @cached_property
    def invalid_ids(self) -> frozenset[RequestId]:
        """The ids of files that exist but cannot be used."""
        return frozenset(broken.id for broken in self.invalid)

    @cached_property
    def known_ids(self) -> frozenset[RequestId]:
        """The ids of all files, whether they can be used or not."""
        return self.invalid_ids.union(self.by_id)

    @cached_property
    def done_ids(self) -> frozenset[RequestId]:
        """The ids of done requests: a request that waits only for these need not wait."""
        return frozenset([request.id for request in self.requests if request.status is _DONE])

    @cached_property
    def cycles(self) -> Mapping[RequestId, tuple[RequestId, ...]]:
        """The dependency cycles among what is not done: a done request keeps no other waiting."""
        return find_cycles({r.id: r.depends_on for r in self.requests if r.depends_on and r.status is not _DONE})


class Selection(NamedTuple):
    """The answer: the next request, the order after it, and what was excluded and why (D59 §8.2)."""

    total: int
    ready: int
    runnable: tuple[Request, ...]
    excluded: tuple[Exclusion, ...]

    @property
    def next(self) -> Request | None:
        """The request that runs next, or None."""
        return self.runnable[0] if self.runnable else None


def select_next(backlog: Backlog, *, include_all: bool = False) -> Selection:
    """Pick the first runnable request in queue order and explain every other ready one."""
    ready = [request for request in backlog.requests if request.status is _READY]
    shown = sorted(backlog.requests if include_all else ready, key=queue_order)
    runnable: list[Request] = []
    excluded: list[Exclusion] = []
    for request in shown:
        barrier = find_barrier(request, backlog)
        if barrier is None:
            runnable.append(request)
            barrier = queue_barrier(backlog)
        if barrier is not None:
            excluded.append(Exclusion(request.id, request.where, barrier))
    excluded.extend(_exclude_invalid(backlog))
    total = len(backlog.requests) + len(backlog.invalid)
    return Selection(total, len(ready), tuple(runnable), tuple(excluded))


def queue_order(request: Request) -> tuple[int, float, float, RequestId]:
    """Sort key: priority, least recently updated, oldest, id; what has no date comes last (SEL-2)."""
    updated, created = request.updated_at, request.created_at
    return (
        _RANK[request.priority],
        math.inf if updated is None else updated.timestamp(),
        math.inf if created is None else created.timestamp(),
        request.id,
    )


def find_barrier(request: Request, backlog: Backlog) -> Barrier | None:
    """Return the first rule that keeps a request from running, or None."""
    return next(find_barriers(request, backlog), None)


def find_barriers(request: Request, backlog: Backlog) -> Iterator[Barrier]:
    """Yield every rule that keeps a request from running, in the order of D59 §8.1."""
    if request.status is not _READY:
        yield Barrier("NOT_READY", (("status", request.status.value),))
    if not backlog.done_ids.issuperset(request.depends_on):
        yield from _dependency_barriers(request, backlog)
    if request.kept is not None:
        yield Barrier(request.kept.reason_code, request.kept.facts)
    lock, run = backlog.locks.get(request.id), backlog.runs.get(request.id)
    if lock is not None:
        yield lock_barrier(request, lock, backlog)
    elif run is not None and run.is_active:
        yield Barrier("REQUEST_LOCKED", (("holder", f"{run.run_id} ({run.state})"),))
    if run is not None and run.is_waiting:
        yield Barrier("LATEST_RUN_NEEDS_INPUT", (("run_id", run.run_id), ("reason", run.why or "-")))


def lock_barrier(request: Request, lock: Lock, backlog: Backlog) -> Barrier:
    """Name who has a request's lock, and whether the next start reclaims it."""
    is_dead = (("is_dead", "yes"),) if request.id in backlog.dead_locks else ()
    return Barrier("REQUEST_LOCKED", (("holder", describe_holder(lock)), *is_dead))


def _dependency_barriers(request: Request, backlog: Backlog) -> Iterator[Barrier]:
    """Yield what is wrong with a request's dependencies: in a circle, not there, not done."""
    cycle = backlog.cycles.get(request.id, ())
    if cycle:
        yield Barrier("DEPENDS_CYCLE", (("cycle", name_cycle(cycle)),))
    done, known = backlog.done_ids, backlog.known_ids
    missing = () if known.issuperset(request.depends_on) else [d for d in request.depends_on if d not in known]
    if missing:
        yield Barrier("DEPENDS_NOT_FOUND", (("ids", ", ".join(missing)),))
    unfinished = [d for d in request.depends_on if d not in done and d not in missing]
    if unfinished:
        yield Barrier("DEPENDS_NOT_DONE", (("ids", ", ".join(unfinished)),))


def queue_barrier(backlog: Backlog) -> Barrier | None:
    """Return what is shown of every runnable request while an auto-run holds the queue (D59 §7)."""
    lock = backlog.queue_lock
    return Barrier("QUEUE_LOCKED", (("holder", describe_holder(lock)),)) if lock is not None else None


def turn_barrier(backlog: Backlog) -> Barrier | None:
    """Return what is shown while somebody is about to start something here: whatever else is started waits for it."""
    lock = backlog.turn
    return Barrier("RUN_IN_PROGRESS", (("turn", describe_holder(lock)),)) if lock is not None else None


def interrupted_in_order(backlog: Backlog) -> list[RequestId]:
    """Return what was interrupted in the order in which it is recovered: by the ids of the runs (RUN-11)."""
    runs = backlog.runs
    return sorted(backlog.interrupted, key=lambda each: (runs[each].run_id if each in runs else "", each))


def cut_off_in_order(backlog: Backlog) -> list[tuple[RequestId, str]]:
    """Return the requests and runs that an auto-run was at when its terminal was closed, oldest first (AUT-4)."""
    cut = [(run.run_id, name) for name, run in backlog.runs.items() if run.reason_code == CUT_OFF]
    return [(name, run_id) for run_id, name in sorted(cut)]


def is_left(backlog: Backlog) -> bool:
    """Return whether there is anything that an auto-run might continue before it selects."""
    return bool(backlog.interrupted or cut_off_in_order(backlog))


def _exclude_invalid(backlog: Backlog) -> Iterator[Exclusion]:
    """Yield every file that cannot be used, in the order of their names."""
    for broken in sorted(backlog.invalid, key=lambda broken: broken.where):
        yield Exclusion(broken.id, broken.where, Barrier(broken.reason_code), broken)


def describe_holder(lock: Lock) -> str:
    """Name a lock's holder as far as the file names it: run, process, machine."""
    known = (lock.run_id, f"pid {lock.pid}" if lock.pid is not None else None, lock.host)
    return ", ".join(part for part in known if part) or "?"


CYCLE_IDS_SHOWN = 8


def name_cycle(cycle: tuple[RequestId, ...]) -> str:
    """Write a cycle as `a -> b -> a`; a long one is cut and counted."""
    if len(cycle) <= CYCLE_IDS_SHOWN:
        return " -> ".join((*cycle, cycle[0]))
    return " -> ".join((*cycle[:CYCLE_IDS_SHOWN], f"… ({len(cycle)})", cycle[0]))


def digest(backlog: Backlog) -> str:
    """Return a short fingerprint of everything a selection depended on, for the journal (SEL-7)."""
    import hashlib

    lines = [
        f"{r.id}|{r.status}|{r.priority}|{','.join(r.depends_on)}|{_instant(r.updated_at)}|{_instant(r.created_at)}"
        for r in backlog.requests
    ]
    lines += [f"kept|{r.id}|{r.kept.reason_code}" for r in backlog.requests if r.kept is not None]
    lines += [f"invalid|{broken.id}|{broken.where}" for broken in backlog.invalid]
    lines += [f"run|{request_id}|{run.run_id}|{run.state}" for request_id, run in backlog.runs.items()]
    lines += [f"lock|{request_id}|{lock.run_id}|{lock.token}" for request_id, lock in backlog.locks.items()]
    lines += [f"queue|{backlog.queue_lock.token}"] if backlog.queue_lock else []
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()[:16]


def _instant(moment: datetime | None) -> str:
    from datetime import UTC

    return "-" if moment is None else moment.astimezone(UTC).isoformat()
