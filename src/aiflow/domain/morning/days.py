"""The last days (WEB-1): how many runs of each began, what became of them, how long agents worked, what it cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.morning.clock import last_days
from aiflow.domain.morning.fates import RunFate, fate_of_summary, is_counted
from aiflow.domain.run_summary import made_at

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from datetime import date, tzinfo

    from aiflow.domain.request import RequestId
    from aiflow.domain.run_summary import RunSummary

DAYS = 14
# What is neither done nor failed nor at work waited for a person, who has decided since, or has not yet.
_OTHERS = (RunFate.DONE, RunFate.FAILED, RunFate.RUNNING)


class DayTally(NamedTuple):
    """The runs that began on one local day, or on all of them (`day` is None); the cost is None if not reported."""

    day: date | None
    runs: int = 0
    done: int = 0
    waited: int = 0
    failed: int = 0
    running: int = 0
    agent_seconds: float = 0.0
    cost_usd: float | None = None


class LastDays(NamedTuple):
    """Each of the last days, oldest first, and all of them together."""

    days: tuple[DayTally, ...]
    total: DayTally


def tally_days(
    runs: Iterable[tuple[RequestId, RunSummary]],
    today: date,
    closed: Collection[RequestId] = (),
    zone: tzinfo | None = None,
    count: int = DAYS,
) -> LastDays:
    """Sum runs up by the local day on which they began; `closed` are the requests that are done."""
    days = {day: DayTally(day) for day in last_days(today, count)}
    for owner, run in runs:
        began = made_at(run.run_id)
        day = began.astimezone(zone).date() if began is not None else None
        if day in days and is_counted(run):
            days[day] = _add(days[day], _one(owner, run, closed))
    total = DayTally(None)
    for each in days.values():
        total = _add(total, each)
    return LastDays(tuple(days.values()), total)


def _one(owner: RequestId, run: RunSummary, closed: Collection[RequestId]) -> DayTally:
    fate, used = fate_of_summary(run, is_closed=owner in closed), run.record
    return DayTally(
        None,
        1,
        done=int(fate is RunFate.DONE),
        waited=int(fate not in _OTHERS),
        failed=int(fate is RunFate.FAILED),
        running=int(fate is RunFate.RUNNING),
        agent_seconds=used.agent_seconds if used else 0.0,
        cost_usd=(used.cost_usd or None) if used else None,
    )


def _add(one: DayTally, other: DayTally) -> DayTally:
    cost = None if one.cost_usd is other.cost_usd is None else (one.cost_usd or 0.0) + (other.cost_usd or 0.0)
    return DayTally(
        one.day,
        one.runs + other.runs,
        one.done + other.done,
        one.waited + other.waited,
        one.failed + other.failed,
        one.running + other.running,
        round(one.agent_seconds + other.agent_seconds, 3),
        None if cost is None else round(cost, 6),
    )
