"""What depends on a request's work: shown to a person who removes it from the base branch."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.request import RequestStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from aiflow.domain.request import Request, RequestId

_GROUPS = {"done": RequestStatus.DONE, "running": RequestStatus.RUNNING, "waits": RequestStatus.READY}


class BuiltOn(NamedTuple):
    """The requests that depend on another one, directly or through others: done, running, and ready to run."""

    done: tuple[RequestId, ...] = ()
    running: tuple[RequestId, ...] = ()
    waits: tuple[RequestId, ...] = ()

    def named(self) -> Iterator[tuple[str, tuple[RequestId, ...]]]:
        """Yield each group that has any, by its name."""
        yield from ((name, ids) for name, ids in self._asdict().items() if ids)


def built_on(requests: Iterable[Request], request_id: str) -> BuiltOn:
    """Name what depends on a request."""
    found = _dependents({request.id: request for request in requests}, request_id)
    return BuiltOn(**{name: tuple(each.id for each in found if each.status is it) for name, it in _GROUPS.items()})


def _dependents(known: dict[RequestId, Request], request_id: str) -> list[Request]:
    wanted: list[str] = [request_id]
    found = {request_id}
    while wanted:
        name = wanted.pop()
        fresh = [each.id for each in known.values() if name in each.depends_on and each.id not in found]
        found.update(fresh)
        wanted += fresh
    return [known[each] for each in sorted(known) if each in found and each != request_id]
