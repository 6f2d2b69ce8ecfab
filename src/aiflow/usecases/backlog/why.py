"""Why one request does not run (SEL-5): everything that keeps it, down to the roots, and its place if nothing does."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.backlog.explanation import Station, explain
from aiflow.domain.backlog.selection import Backlog, Barrier, find_barriers, is_left, select_next, turn_barrier
from aiflow.domain.request import RequestStatus
from aiflow.errors import NotFoundError
from aiflow.usecases.read_backlog import read_backlog, with_interrupted

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiflow.domain.request import Request, RequestId
    from aiflow.ports import Locks
    from aiflow.usecases.read_backlog import BacklogSources


class WhyAnswer(NamedTuple):
    """The request itself and everything it waits for; its place in line if it is in one, counted from 1.

    One that `is_continued` needs no person: the next auto-run continues its run.
    """

    stations: tuple[Station, ...]
    place: int | None = None
    is_interrupted: bool = False
    warnings: tuple[Barrier, ...] = ()
    is_continued: bool = False

    @property
    def first(self) -> Station:
        """The request that was asked about."""
        return self.stations[0]


def explain_request(
    sources: BacklogSources,
    locks: Locks,
    request_id: RequestId,
    warn: Callable[[Request], tuple[Barrier, ...]] = lambda _request: (),
    first: Callable[[Backlog], tuple[Request, ...]] = lambda _backlog: (),
) -> WhyAnswer:
    """Explain what keeps one request, or raise that there is none.

    `warn` names what should be known besides, `first` what is continued before anything is selected.
    """
    backlog = with_interrupted(read_backlog(sources), locks)
    stations = explain(request_id, backlog)
    if not stations:
        raise NotFoundError(request_id=request_id)
    asked, turn = stations[0].request, turn_barrier(backlog)
    is_over = asked is None or asked.status in (RequestStatus.DONE, RequestStatus.ARCHIVED)
    warnings = () if asked is None or is_over else (*((turn,) if turn else ()), *freed(asked), *warn(asked))
    continued = [request.id for request in first(backlog)] if is_left(backlog) else []
    place = _place(stations[0], backlog)
    return WhyAnswer(
        stations,
        place + len(continued) if place is not None else None,
        request_id in backlog.interrupted,
        warnings,
        is_continued=request_id in continued,
    )


def freed(request: Request) -> tuple[Barrier, ...]:
    """Name what a request no longer waits for, since it was given up (ISS-2)."""
    return (Barrier("DEPENDS_FREED", (("ids", ", ".join(request.freed)),)),) if request.freed else ()


def unmeetable(sources: BacklogSources, request_id: RequestId) -> tuple[Barrier, ...]:
    """Return what of a request's dependencies can never be met: those that are not there, or lead round in a circle."""
    backlog = read_backlog(sources, with_all_runs=False)
    request = backlog.by_id.get(request_id)
    found = find_barriers(request, backlog) if request is not None else ()
    return tuple(barrier for barrier in found if barrier.reason_code in ("DEPENDS_NOT_FOUND", "DEPENDS_CYCLE"))


def _place(first: Station, backlog: Backlog) -> int | None:
    """Return the place in line of a request that nothing holds up but perhaps a running auto-run."""
    if first.request is None or first.request.status is not RequestStatus.READY:
        return None
    if any(barrier.reason_code != "QUEUE_LOCKED" for barrier in first.barriers):
        return None
    runnable = select_next(backlog).runnable
    return next(place for place, other in enumerate(runnable, 1) if other.id == first.request_id)
