"""Why one request does not run (SEL-5): everything that keeps it, down to the roots, and its place if nothing does."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.backlog.explanation import Station, explain
from aiflow.domain.backlog.selection import Backlog, find_barriers, select_next
from aiflow.domain.request import RequestStatus
from aiflow.errors import NotFoundError
from aiflow.usecases.read_backlog import read_backlog, with_interrupted

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiflow.domain.backlog.selection import Barrier
    from aiflow.domain.request import Request, RequestId
    from aiflow.ports import Locks
    from aiflow.usecases.read_backlog import BacklogSources


class WhyAnswer(NamedTuple):
    """The request itself and everything it waits for; its place in line if it is in one, counted from 1."""

    stations: tuple[Station, ...]
    place: int | None = None
    is_interrupted: bool = False
    warnings: tuple[Barrier, ...] = ()

    @property
    def first(self) -> Station:
        """The request that was asked about."""
        return self.stations[0]


def explain_request(
    sources: BacklogSources,
    locks: Locks,
    request_id: RequestId,
    warn: Callable[[Request], tuple[Barrier, ...]] = lambda _request: (),
) -> WhyAnswer:
    """Explain what keeps one request, or raise that there is none; `warn` names what should be known besides."""
    backlog = with_interrupted(read_backlog(sources), locks)
    stations = explain(request_id, backlog)
    if not stations:
        raise NotFoundError(request_id=request_id)
    first = stations[0].request
    is_over = first is None or first.status in (RequestStatus.DONE, RequestStatus.ARCHIVED)
    warnings = () if first is None or is_over else warn(first)
    return WhyAnswer(stations, _place(stations[0], backlog), request_id in backlog.interrupted, warnings)


def unmeetable(sources: BacklogSources, request_id: RequestId) -> tuple[Barrier, ...]:
    """Return what of a request's dependencies can never be met: those that are not there, or lead round in a circle."""
    backlog = read_backlog(sources, with_all_runs=False)
    request = backlog.by_id.get(request_id)
    found = find_barriers(request, backlog) if request is not None else ()
    return tuple(barrier for barrier in found if barrier.reason_code in ("DEPENDS_NOT_FOUND", "DEPENDS_CYCLE"))


def _place(first: Station, backlog: Backlog) -> int | None:
    """Return the place in line of a request before which nothing stands but perhaps a running auto-run."""
    if first.request is None or first.request.status is not RequestStatus.READY:
        return None
    if any(barrier.reason_code != "QUEUE_LOCKED" for barrier in first.barriers):
        return None
    runnable = select_next(backlog).runnable
    return next(place for place, other in enumerate(runnable, 1) if other.id == first.request_id)
