"""Fourteen days: runs by the local day on which they began, and by what became of them."""

from __future__ import annotations

from datetime import UTC, date, timedelta, timezone
from typing import Any

import pytest

from aiflow.domain.lifecycle import RunState
from aiflow.domain.morning.days import DAYS, DayTally, tally_days
from aiflow.domain.request import RequestId
from aiflow.domain.run_summary import RunRecord, RunSummary

pytestmark = pytest.mark.spec("WEB-1")
TODAY = date(2026, 11, 17)


def a_run(stamp: str, state: str, reason: str | None = None, **record: Any) -> tuple[RequestId, RunSummary]:
    known = RunRecord(None, 60.0, **record)
    return RequestId("RQ-1"), RunSummary(f"RUN-{stamp}-aaaaaa", RunState(state), reason, record=known)


def test_each_run_counts_on_its_day_by_what_became_of_it() -> None:
    runs = [
        a_run("20261117-060000", "TESTING"),
        a_run("20261116-230000", "DONE", is_accepted=True, agent_seconds=30.5, cost_usd=0.25),
        a_run("20261116-220000", "DONE", cost_usd=0.5),
        a_run("20261116-210000", "NEEDS_INPUT", "CANCELLED"),
        a_run("20261116-200000", "FAILED", "REPLANNED"),
        a_run("20261104-000000", "FAILED", "INTERNAL_ERROR", agent_seconds=1.0),
        a_run("20261103-235959", "FAILED", "INTERNAL_ERROR"),
        (RequestId("RQ-2"), RunSummary("RUN-20261117-000000-aaaaaa", RunState.FAILED, "RUN_LOST")),
        (RequestId("RQ-2"), RunSummary("RUN-what", RunState.DONE)),
    ]
    last = tally_days(runs, TODAY, zone=UTC)
    assert [each.day for each in last.days] == [TODAY - timedelta(days=back) for back in reversed(range(DAYS))]
    assert last.days[-1] == DayTally(TODAY, runs=1, running=1)
    assert last.days[-2] == DayTally(date(2026, 11, 16), 4, 1, 3, 0, 0, 30.5, 0.75)
    assert last.days[0] == DayTally(date(2026, 11, 4), 1, failed=1, agent_seconds=1.0)
    assert last.total == DayTally(None, 6, 1, 3, 1, 1, 31.5, 0.75)


def test_the_day_is_that_of_the_local_clock() -> None:
    tokyo = timezone(timedelta(hours=9))
    last = tally_days([a_run("20261116-150000", "DONE")], TODAY, zone=tokyo)
    assert [each.runs for each in last.days[-2:]] == [0, 1]


def test_what_a_person_closed_themselves_is_done_too() -> None:
    last = tally_days([a_run("20261117-000000", "DONE")], TODAY, [RequestId("RQ-1")], UTC)
    assert (last.total.done, last.total.waited) == (1, 0)
