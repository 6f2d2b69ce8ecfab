"""What an answer unblocks (WEB-1): what waits for a request, directly or through others, and what could run then."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.backlog.selection import find_barriers, queue_order
from aiflow.domain.request import RequestStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from aiflow.domain.backlog.selection import Backlog
    from aiflow.domain.request import Request, RequestId

_CLOSED = (RequestStatus.DONE, RequestStatus.ARCHIVED)


class Unblocks(NamedTuple):
    """Requests in selection order: those that wait for it, directly or not, and which could run once it is done."""

    direct: tuple[RequestId, ...] = ()
    indirect: tuple[RequestId, ...] = ()
    runnable: tuple[RequestId, ...] = ()

    @property
    def total(self) -> int:
        """How many wait for it in all."""
        return len(self.direct) + len(self.indirect)


def dependants_of(requests: Iterable[Request]) -> dict[RequestId, list[Request]]:
    """Return who waits for each request, of those that are not closed."""
    waiting: dict[RequestId, list[Request]] = {}
    for request in requests:
        if request.depends_on and request.status not in _CLOSED:
            for wanted in request.depends_on:
                waiting.setdefault(wanted, []).append(request)
    return waiting


def unblocked_by(request_id: RequestId, backlog: Backlog, dependants: Mapping[RequestId, list[Request]]) -> Unblocks:
    """Return what waits for a request; a circle leads to each only once."""
    direct = {each.id: each for each in dependants.get(request_id, ()) if each.id != request_id}
    seen = {request_id, *direct}
    indirect: list[Request] = []
    queue = list(direct.values())
    for request in queue:  # grows while it is walked
        for each in dependants.get(request.id, ()):
            if each.id not in seen:
                seen.add(each.id)
                indirect.append(each)
                queue.append(each)
    runnable = [each for each in direct.values() if _waits_for_nothing_else(each, request_id, backlog)]
    return Unblocks(_ids(direct.values()), _ids(indirect), _ids(runnable))


def _ids(requests: Iterable[Request]) -> tuple[RequestId, ...]:
    return tuple(request.id for request in sorted(requests, key=queue_order))


def _waits_for_nothing_else(request: Request, wanted: RequestId, backlog: Backlog) -> bool:
    """Return whether a request could run once another one is done."""
    if any(each != wanted and each not in backlog.done_ids for each in request.depends_on):
        return False
    return all(barrier.reason_code == "DEPENDS_NOT_DONE" for barrier in find_barriers(request, backlog))
