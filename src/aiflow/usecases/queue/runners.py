"""List runners: running ones first, then by their last heartbeat."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.queue.runner import is_alive

if TYPE_CHECKING:
    from datetime import datetime

    from aiflow.domain.queue.runner import Runner
    from aiflow.usecases.queue.desk import StoreView


class RunnerList(NamedTuple):
    """Runners, each with whether its process is provably gone, how many there are, and where the list continues."""

    runners: tuple[tuple[Runner, bool], ...]
    now: datetime
    timeout_seconds: float
    total: int
    next_after: int | None = None


def list_runners(view: StoreView, *, is_all: bool = False, limit: int | None = None, after: int = 0) -> RunnerList:
    """List the runners of a namespace, or of all, from a place on."""
    now, timeout = view.time.now(), view.timeout_seconds
    found = view.store.all_runners() if is_all else view.store.runners(view.namespace).all()
    latest_first = sorted(found, key=lambda each: each.last_heartbeat, reverse=True)
    judged = [(each, not each.is_at_rest and view.is_gone(each)) for each in latest_first]
    judged.sort(key=lambda pair: pair[1] or not is_alive(pair[0], now, timeout))
    until = None if limit is None else after + limit
    next_after = until if until is not None and until < len(judged) else None
    return RunnerList(tuple(judged[after:until]), now, timeout, len(judged), next_after)
