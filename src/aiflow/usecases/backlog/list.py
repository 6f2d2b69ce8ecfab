"""List the backlog in selection order: filtered, and cut into pages before anything is shaped (API-2, PRF-7)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.backlog.selection import Backlog, Selection, queue_order, select_next
from aiflow.domain.request import RequestId, RequestStatus
from aiflow.errors import BadInputError
from aiflow.usecases.read_backlog import read_backlog, with_interrupted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from aiflow.domain.request import Request
    from aiflow.ports import Locks
    from aiflow.usecases.read_backlog import BacklogSources


class RequestFilter(NamedTuple):
    """Which requests are wanted; what is empty does not matter, of labels one is enough.

    `is_found` wants only what agents proposed and no person has decided about.
    """

    statuses: Collection[str] = ()
    priorities: Collection[str] = ()
    labels: Collection[str] = ()
    is_found: bool = False

    def takes(self, request: Request) -> bool:
        """Return whether a request is wanted."""
        return (
            (not self.statuses or request.status in self.statuses)
            and (not self.priorities or request.priority in self.priorities)
            and (not self.labels or not set(self.labels).isdisjoint(request.labels))
            and (not self.is_found or request.is_follow_up)
        )


EVERYTHING = RequestFilter()
# Statuses that need no attention any more: left out of a list unless asked for.
CLOSED = (RequestStatus.DONE, RequestStatus.ARCHIVED)


def open_unless(statuses: Collection[str], *, is_all: bool) -> Collection[str]:
    """Return the statuses to list: those that were named, everything if that was asked for, else what is still open."""
    return statuses or (() if is_all else tuple(status for status in RequestStatus if status not in CLOSED))


class RequestList(NamedTuple):
    """The requests of a page, how many there are in all pages, where the next begins, and what they were taken from."""

    requests: tuple[Request, ...]
    total: int
    next_after: str | None
    backlog: Backlog
    selection: Selection


def list_requests(
    sources: BacklogSources,
    locks: Callable[[], Locks],
    only: RequestFilter = EVERYTHING,
    *,
    limit: int | None = None,
    after: str | None = None,
) -> RequestList:
    """List the requests after a place in the order; locks are judged only if one could be stale."""
    backlog = read_backlog(sources)
    if backlog.locks or any(request.status is RequestStatus.RUNNING for request in backlog.requests):
        backlog = with_interrupted(backlog, locks())
    found = sorted(filter(only.takes, backlog.requests), key=queue_order)
    behind = _place(after) if after is not None else None
    wanted = found if behind is None else [request for request in found if queue_order(request) > behind]
    page = tuple(wanted[:limit])
    next_after = _cursor(page[-1]) if page and len(page) < len(wanted) else None
    return RequestList(page, len(found), next_after, backlog, select_next(backlog))


def _cursor(request: Request) -> str:
    """Write a place in the order, so that it is found again also where its request has moved or gone."""
    rank, updated, created, request_id = queue_order(request)
    return f"{rank}:{updated!r}:{created!r}:{request_id}"


def _place(cursor: str) -> tuple[int, float, float, RequestId]:
    try:
        rank, updated, created, request_id = cursor.split(":", 3)
        place = (int(rank), float(updated), float(created), RequestId(request_id))
    except ValueError:
        raise BadInputError(detail=f"after: {cursor[:80]!r}") from None
    if math.isnan(place[1]) or math.isnan(place[2]):
        raise BadInputError(detail=f"after: {cursor[:80]!r}")
    return place
