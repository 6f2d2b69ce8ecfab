"""Who waits for whom (WEB-1): the dependency graph of the backlog as it is now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.backlog.graph import DependencyGraph, draw_graph
from aiflow.domain.backlog.selection import select_next
from aiflow.usecases.read_backlog import read_backlog, with_interrupted

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiflow.domain.request import RequestId
    from aiflow.ports import Locks
    from aiflow.usecases.read_backlog import BacklogSources


def graph_backlog(
    sources: BacklogSources,
    locks: Callable[[], Locks],
    chosen: RequestId | None = None,
    *,
    include_closed: bool = False,
) -> DependencyGraph:
    """Draw the graph, around a chosen request if it is too large; locks are judged only if there are any."""
    backlog = read_backlog(sources, with_all_runs=False)
    if backlog.locks or backlog.queue_lock:
        backlog = with_interrupted(backlog, locks())
    return draw_graph(backlog, select_next(backlog), chosen, include_closed=include_closed)
