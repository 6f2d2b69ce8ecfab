"""Which request runs next, and why the others do not (SEL-3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.backlog.selection import Selection, is_left, select_next, turn_barrier
from aiflow.domain.request import RequestStatus
from aiflow.usecases.read_backlog import read_backlog, with_interrupted

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiflow.domain.backlog.selection import Backlog, Barrier
    from aiflow.domain.request import Request, RequestId
    from aiflow.ports import Locks
    from aiflow.usecases.read_backlog import BacklogSources


class NextAnswer(NamedTuple):
    """What is selected; where somebody has looked also what is at work, what only looks so, and how many wait."""

    selection: Selection
    running: tuple[RequestId, ...] = ()
    interrupted: frozenset[RequestId] = frozenset()
    lost: frozenset[RequestId] = frozenset()
    waiting: int = 0
    warnings: tuple[Barrier, ...] = ()
    # The requests whose runs the next auto-run continues before it starts what is selected.
    continued: tuple[Request, ...] = ()


class Besides(NamedTuple):
    """What only the engine knows: what should be known before a request runs, and what is continued before it."""

    warn: Callable[[Request], tuple[Barrier, ...]] = lambda _request: ()
    first: Callable[[Backlog], tuple[Request, ...]] = lambda _backlog: ()


def next_request(
    sources: BacklogSources,
    locks: Callable[[], Locks],
    *,
    include_all: bool = False,
    is_brief: bool = False,
    besides: Besides = Besides(),  # noqa: B008
) -> NextAnswer:
    """Select the next request and, unless in brief, look at what is not selected; locks are judged only if need be."""
    backlog = read_backlog(sources, with_all_runs=False)
    if backlog.locks or backlog.queue_lock:  # a start would reclaim stale ones: then that is shown (SEL-7)
        backlog = with_interrupted(backlog, locks())
    answer = NextAnswer(select_next(backlog, include_all=include_all))
    if is_brief:
        return answer
    chosen = answer.selection.next
    running = tuple(request.id for request in backlog.requests if request.status is RequestStatus.RUNNING)
    is_active = any(run.is_active for run in backlog.runs.values())
    is_judged = running or is_active or sources.locks.turn_holder() is not None
    judged = (
        with_interrupted(_with_blocked(sources, backlog), locks()) if is_judged else _with_blocked(sources, backlog)
    )
    turn = turn_barrier(judged)
    continued = besides.first(judged) if is_left(judged) else ()
    blocked = {request.id for request in backlog.requests if request.status is RequestStatus.BLOCKED}
    return answer._replace(
        running=running,
        interrupted=judged.interrupted,
        lost=judged.lost,
        waiting=len(blocked - {request.id for request in continued}),
        warnings=(*((turn,) if turn else ()), *(besides.warn(chosen) if chosen is not None else ())),
        continued=continued,
    )


def _with_blocked(sources: BacklogSources, backlog: Backlog) -> Backlog:
    """Add the runs of blocked requests: one that was cut off is among them."""
    blocked = [request.id for request in backlog.requests if request.status is RequestStatus.BLOCKED]
    return backlog._replace(runs={**backlog.runs, **sources.runs.latest(blocked)}) if blocked else backlog
