"""What runs cost (RUN-19): by role, by request, by night and by month."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from aiflow.domain.lifecycle import RunState
from aiflow.domain.morning.costs import DAYS, MONTHS, NIGHTS, CostLine, first_month, sum_costs
from aiflow.domain.request import RequestId
from aiflow.domain.run_summary import RoleSpent, RunRecord, RunSummary

NOW = datetime(2026, 11, 18, 8, 0, tzinfo=UTC)
TOKYO = timezone(timedelta(hours=9))


def run(began: datetime, request: str = "RQ-1", cost: float = 0.0, *roles: RoleSpent) -> tuple[RequestId, RunSummary]:
    record = RunRecord(began, 60.0, cost, 100, 3, 20.0, roles=roles)
    return RequestId(request), RunSummary(f"RUN-{began:%Y%m%d-%H%M%S}-aaaaaa", RunState.DONE, record=record)


@pytest.mark.spec("RUN-19")
def test_each_role_is_told_and_what_no_role_used_as_well() -> None:
    planner, qa = RoleSpent("planner", 1, 40, 0.25, 5.0), RoleSpent("qa", 2, 50, 0.5, 10.0)
    costs = sum_costs([run(NOW, "RQ-1", 0.75, planner, qa), run(NOW, "RQ-2", 1.0)], NOW, UTC)
    assert costs.roles == (
        CostLine(None, 2, 3, 110, 1.0, 25.0),  # tests and set-up of the first, all of an older version's second
        CostLine("qa", 1, 2, 50, 0.5, 10.0),
        CostLine("planner", 1, 1, 40, 0.25, 5.0),
    )
    assert costs.total == CostLine(None, 2, 6, 200, 1.75, 40.0)
    assert [line.name for line in costs.requests] == ["RQ-2", "RQ-1"]


@pytest.mark.spec("RUN-19")
def test_roles_and_requests_count_the_last_days_and_months_all_that_is_read() -> None:
    before = NOW - timedelta(days=DAYS, seconds=1)
    costs = sum_costs([run(NOW, cost=1.0), run(before, cost=2.0)], NOW, UTC)
    assert (costs.total.cost_usd, [line.cost_usd for line in costs.requests]) == (1.0, [1.0])
    assert [(line.name, line.cost_usd) for line in costs.months] == [("2026-11", 1.0), ("2026-10", 2.0)]


@pytest.mark.spec("RUN-19")
def test_a_night_lasts_from_evening_to_evening_by_the_local_clock() -> None:
    evening = datetime(2026, 11, 17, 18, 0, tzinfo=TOKYO).astimezone(UTC)
    moments = [evening - timedelta(seconds=1), evening, evening + timedelta(hours=23)]
    costs = sum_costs([run(each) for each in moments], NOW, TOKYO)
    assert [(line.name, line.runs) for line in costs.nights] == [("2026-11-17", 2), ("2026-11-16", 1)]


@pytest.mark.spec("RUN-19")
def test_no_more_is_listed_than_a_person_reads_the_newest_first() -> None:
    runs = [run(NOW - timedelta(days=number * 20)) for number in range(40)]
    costs = sum_costs(runs, NOW, UTC)
    assert (len(costs.nights), len(costs.months)) == (NIGHTS, MONTHS)
    assert costs.months[0].name == "2026-11"
    assert costs.months == tuple(sorted(costs.months, key=lambda line: line.name or "", reverse=True))


@pytest.mark.spec("RUN-19")
@pytest.mark.parametrize(
    ("now", "first"),
    [((2026, 11, 18), (2025, 12, 1)), ((2026, 12, 31), (2026, 1, 1)), ((2027, 1, 1), (2026, 2, 1))],
)
def test_twelve_months_are_read(now: tuple[int, int, int], first: tuple[int, int, int]) -> None:
    assert first_month(datetime(*now, 12, tzinfo=UTC), UTC) == datetime(*first, tzinfo=UTC)


@pytest.mark.spec("RUN-19")
def test_a_run_that_says_not_when_it_began_or_what_it_used_is_left_out() -> None:
    odd = (RequestId("RQ-1"), RunSummary("RUN-odd", RunState.DONE, record=RunRecord(None, 1.0, 5.0)))
    bare = (RequestId("RQ-1"), RunSummary(run(NOW)[1].run_id, RunState.DONE))
    assert sum_costs([odd, bare], NOW, UTC).months == ()
