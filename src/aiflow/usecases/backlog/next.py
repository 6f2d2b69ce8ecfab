"""Which request runs next, and why the others do not (SEL-3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.backlog.selection import Selection, select_next
from aiflow.domain.request import RequestStatus
from aiflow.usecases.read_backlog import read_backlog, with_interrupted

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiflow.domain.backlog.selection import Barrier
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


def next_request(
    sources: BacklogSources,
    locks: Callable[[], Locks],
    *,
    include_all: bool = False,
    is_brief: bool = False,
    warn: Callable[[Request], tuple[Barrier, ...]] = lambda _request: (),
) -> NextAnswer:
    """Select the next request and, unless in brief, look at what is not selected; locks are judged only if need be.

    `warn` says what keeps a request from nothing and should be known before it runs.
    """
    backlog = read_backlog(sources, with_all_runs=False)
    if backlog.locks or backlog.queue_lock:  # a start would reclaim those of dead holders: then that is said (SEL-7)
        backlog = with_interrupted(backlog, locks())
    answer = NextAnswer(select_next(backlog, include_all=include_all))
    if is_brief:
        return answer
    chosen = answer.selection.next
    running = tuple(request.id for request in backlog.requests if request.status is RequestStatus.RUNNING)
    judged = with_interrupted(backlog, locks()) if running else backlog
    return answer._replace(
        running=running,
        interrupted=judged.interrupted,
        lost=judged.lost,
        waiting=sum(request.status is RequestStatus.BLOCKED for request in backlog.requests),
        warnings=warn(chosen) if chosen is not None else (),
    )
