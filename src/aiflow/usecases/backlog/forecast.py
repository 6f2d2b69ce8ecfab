"""In which order the backlog will run, and what never can (SEL-6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.backlog.forecast import Forecast, forecast
from aiflow.usecases.read_backlog import read_backlog, without_dead_locks

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiflow.ports import Locks
    from aiflow.usecases.read_backlog import BacklogSources


class ForecastPage(NamedTuple):
    """A part of the order and of what never runs, how many follow in all, and where the order continues."""

    foreseen: Forecast
    total: int
    next_after: int | None = None


def forecast_backlog(
    sources: BacklogSources, locks: Callable[[], Locks], *, limit: int | None = None, after: int = 0
) -> ForecastPage:
    """Foresee the order from a place on; what never runs is cut at the same places."""
    backlog = read_backlog(sources)
    whole = forecast(without_dead_locks(backlog, locks()) if backlog.locks else backlog)
    until = None if limit is None else after + limit
    part = Forecast(whole.running, whole.order[after:until], whole.never[after:until])
    longest = max(len(whole.order), len(whole.never))
    return ForecastPage(part, len(whole.order), until if until is not None and until < longest else None)
