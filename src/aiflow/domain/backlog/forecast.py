"""Forecast (SEL-6): the order in which the backlog will run if every run succeeds, and what can never run."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiflow.domain.backlog.selection import Backlog, Exclusion, find_barrier, find_barriers, queue_order, select_next
from aiflow.domain.request import Request, RequestId, RequestStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from collections.abc import Set as AbstractSet

    from aiflow.domain.backlog.selection import Selection

_ENDED = frozenset({RequestStatus.DONE, RequestStatus.ARCHIVED})
# Barriers that disappear when the runs before succeed; all others need a person.
_PASSING = frozenset({"DEPENDS_NOT_DONE"})


@dataclass(frozen=True, slots=True)
class Forecast:
    """What runs now, what follows in which order, and what is never reached and why."""

    running: tuple[Request, ...]
    order: tuple[Request, ...]
    never: tuple[Exclusion, ...]


def forecast(backlog: Backlog, *, is_accepted: bool = True) -> Forecast:
    """Foresee the whole order: at each turn the first runnable request, as if all before it were done.

    Without `is_accepted` only what runs before a person accepts anything: what waits for another one's work does not.
    """
    running = tuple(sorted((r for r in backlog.requests if _is_under_way(r, backlog)), key=queue_order))
    order = _order(_as_if_done(backlog, {request.id for request in running} if is_accepted else set()))
    if not is_accepted:
        order = tuple(request for request in order if backlog.done_ids.issuperset(request.depends_on))
    reached = {request.id for request in (*running, *order)}
    after = _as_if_done(backlog, reached if is_accepted else set())
    never = [
        Exclusion(request.id, request.where, barrier)
        for request in sorted(after.requests, key=queue_order)
        if request.status not in _ENDED
        and request.id not in reached
        and (barrier := find_barrier(request, after)) is not None
    ]
    never += [excluded for excluded in select_next(after).excluded if excluded.invalid is not None]
    return Forecast(running, order, tuple(never))


def positions(backlog: Backlog, selection: Selection) -> dict[RequestId, int]:
    """Return tonight's position of each request that will be reached if every run succeeds, counted from 1.

    A running request has none. Only what selection kept is checked again, so that a long list costs little (PRF-7);
    locks whose holder is known to be gone don't count (LCK-5).
    """
    free = backlog
    if backlog.dead_locks:
        held = {name: lock for name, lock in backlog.locks.items() if name not in backlog.dead_locks}
        free = backlog._replace(locks=held, dead_locks=frozenset())
    kept = [
        free.by_id[each.request_id]
        for each in selection.excluded
        if each.barrier.reason_code != "QUEUE_LOCKED" and each.invalid is None
    ]
    under_way = {request.id for request in free.requests if request.status is RequestStatus.RUNNING}
    under_way.update(free.continued)
    under_way.update(request.id for request in kept if _may_be_held(request, free) and _is_under_way(request, free))
    after = _as_if_done(free, under_way) if under_way else free
    later = [request for request in kept if request.id not in under_way and _can_run_some_day(request, after)]
    order = _merged(selection.runnable, later, after.done_ids)
    return {request_id: place for place, request_id in enumerate(order, 1)}


def _may_be_held(request: Request, backlog: Backlog) -> bool:
    """Return whether it is worth a closer look whether somebody works on a request: most have no lock and no run."""
    return request.id in backlog.locks or request.id in backlog.runs or request.kept is not None


def _merged(
    runnable: Iterable[Request], later: Iterable[Request], ended: AbstractSet[RequestId]
) -> Iterator[RequestId]:
    """Yield what is runnable, in its order, and in between what becomes so by it."""
    waiting: dict[RequestId, int] = {}
    dependants: dict[RequestId, list[Request]] = {}
    freed: list[tuple[tuple[object, ...], Request]] = []
    for request in later:
        open_ids = {wanted for wanted in request.depends_on if wanted not in ended}
        waiting[request.id] = len(open_ids)
        for wanted in open_ids:
            dependants.setdefault(wanted, []).append(request)
        if not open_ids:
            heapq.heappush(freed, (queue_order(request), request))
    ready = iter(runnable)
    coming = next(ready, None)
    while coming is not None or freed:
        if coming is not None and (not freed or queue_order(coming) < freed[0][0]):
            chosen, coming = coming, next(ready, None)
        else:
            chosen = heapq.heappop(freed)[1]
        yield chosen.id
        for dependant in dependants.get(chosen.id, ()):
            waiting[dependant.id] -= 1
            if waiting[dependant.id] == 0:
                heapq.heappush(freed, (queue_order(dependant), dependant))


def _is_under_way(request: Request, backlog: Backlog) -> bool:
    """Return whether a request is being worked on already, or its run is what the next auto-run continues."""
    if request.status is RequestStatus.RUNNING or request.id in backlog.continued:
        return True
    if request.status is not RequestStatus.READY:
        return False
    return any(barrier.reason_code == "REQUEST_LOCKED" for barrier in find_barriers(request, backlog))


def _order(backlog: Backlog) -> tuple[Request, ...]:
    """Simulate: a request becomes runnable the moment the last one it waits for is done."""
    waiting: dict[RequestId, int] = {}
    dependants: dict[RequestId, list[Request]] = {}
    heap: list[tuple[tuple[object, ...], Request]] = []
    for request in backlog.requests:
        if not _can_run_some_day(request, backlog):
            continue
        open_ids = {wanted for wanted in request.depends_on if _is_open(wanted, backlog)}
        waiting[request.id] = len(open_ids)
        for wanted in open_ids:
            dependants.setdefault(wanted, []).append(request)
        if not open_ids:
            heapq.heappush(heap, (queue_order(request), request))
    order: list[Request] = []
    while heap:
        request = heapq.heappop(heap)[1]
        order.append(request)
        for dependant in dependants.get(request.id, ()):
            waiting[dependant.id] -= 1
            if waiting[dependant.id] == 0:
                heapq.heappush(heap, (queue_order(dependant), dependant))
    return tuple(order)


def _can_run_some_day(request: Request, backlog: Backlog) -> bool:
    """Return whether nothing but unfinished dependencies keeps a ready request."""
    if request.status is not RequestStatus.READY:
        return False
    return all(barrier.reason_code in _PASSING for barrier in find_barriers(request, backlog))


def _is_open(wanted: RequestId, backlog: Backlog) -> bool:
    """Return whether a dependency still keeps others waiting."""
    request = backlog.by_id.get(wanted)
    return request is None or request.status is not RequestStatus.DONE


def _as_if_done(backlog: Backlog, ids: set[RequestId]) -> Backlog:
    """Return the backlog as it will be when these requests are done."""
    requests = tuple(
        request._replace(status=RequestStatus.DONE) if request.id in ids else request for request in backlog.requests
    )
    return backlog._replace(requests=requests, queue_lock=None)
