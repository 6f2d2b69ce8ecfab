"""The last 14 days (WEB-1): runs by outcome, time of agents, cost; only the runs of these days are read."""

from __future__ import annotations

from datetime import time, timedelta
from typing import TYPE_CHECKING

from aiflow.domain.morning.clock import at_local
from aiflow.domain.morning.days import DAYS, LastDays, tally_days
from aiflow.domain.request import RequestStatus
from aiflow.usecases.morning.recent_runs import runs_since

if TYPE_CHECKING:
    from datetime import tzinfo

    from aiflow.usecases.engine import Engine
    from aiflow.usecases.morning.recent_runs import ReadBefore, RecentRuns


def tell_days(engine: Engine, zone: tzinfo | None = None, known: ReadBefore | None = None) -> LastDays:
    """Sum up the last days by a zone's clock (the machine's without one)."""
    today = engine.time.now().astimezone(zone).date()
    requests = known.backlog.requests if known else engine.backlog.requests.load_all()[0]
    closed = {request.id for request in requests if request.status is RequestStatus.DONE}
    return tally_days(known.recent if known else runs_of_days(engine, zone), today, closed, zone)


def runs_of_days(engine: Engine, zone: tzinfo | None = None) -> RecentRuns:
    """Return the runs of these days, newest first."""
    today = engine.time.now().astimezone(zone).date()
    return runs_since(engine.backlog.runs, at_local(today - timedelta(days=DAYS - 1), time(), zone))
