"""One request with everything that is known of it: its text, its runs, what holds it up, and the next step."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.backlog.explanation import Station, explain
from aiflow.domain.backlog.selection import find_barriers
from aiflow.domain.lifecycle import RunState
from aiflow.errors import NotFoundError
from aiflow.usecases.read_backlog import read_backlog, with_interrupted

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiflow.domain.backlog.selection import Backlog, Barrier
    from aiflow.domain.request import InvalidRequest, Request, RequestId
    from aiflow.domain.run_summary import RunSummary
    from aiflow.domain.runs.run import Run
    from aiflow.ports import Locks
    from aiflow.usecases.engine import Engine
    from aiflow.usecases.read_backlog import BacklogSources


class ShownRequest(NamedTuple):
    """A request, the run that speaks for it, all of its runs, its text, and what keeps it.

    With an engine also the newest run in full unless it failed, and the request's own station of `why`.
    """

    request: Request
    latest: RunSummary | None
    runs: tuple[RunSummary, ...]
    body: str
    barriers: tuple[Barrier, ...]
    newest: Run | None = None
    station: Station | None = None


class BrokenRequest(NamedTuple):
    """Files that cannot be used, by the name under which they were asked for."""

    request_id: RequestId
    files: tuple[InvalidRequest, ...]


def show_request(
    sources: BacklogSources,
    request_id: RequestId,
    locks: Callable[[], Locks],
    engine: Callable[[], Engine] | None = None,
) -> ShownRequest | BrokenRequest:
    """Read one request, or raise that there is none; engine and locks are made only if need be."""
    backlog = read_backlog(sources)
    request = backlog.by_id.get(request_id)
    broken = tuple(invalid for invalid in backlog.invalid if request_id in invalid.names)
    if request is None and broken:
        return BrokenRequest(request_id, broken)
    if request is None:
        raise NotFoundError(request_id=request_id)
    runs = sources.runs.all_of(request_id)
    if request_id in backlog.locks:
        backlog = with_interrupted(backlog, locks())
    barriers = tuple(find_barriers(request, backlog))
    shown = ShownRequest(
        request, backlog.runs.get(request_id), runs, sources.requests.body(request_id), barriers=barriers
    )
    return shown if engine is None or not runs else _with_way_on(engine(), shown, backlog)


def _with_way_on(engine: Engine, shown: ShownRequest, backlog: Backlog) -> ShownRequest:
    """Add what the newest run asks, and what to do next."""
    newest, request_id = shown.runs[0], shown.request.id
    has_more = newest.is_waiting or newest.is_active or newest.state is RunState.DONE
    station = next(iter(explain(request_id, with_interrupted(backlog, engine.locks))), None)
    return shown._replace(
        newest=engine.runs.load(request_id, newest.run_id) if has_more else None,
        station=station,
    )
