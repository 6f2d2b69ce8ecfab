"""Forecast (SEL-6): the order in which the backlog will run, and what can never run."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aiflow.domain.backlog.forecast import Forecast, forecast, positions
from aiflow.domain.backlog.selection import Backlog, select_next
from aiflow.domain.lock import Lock, LockType
from aiflow.domain.request import InvalidRequest, Problem, ProblemKind, RequestId, RequestStatus
from aiflow.domain.run_summary import RunSummary
from builders import NOW, backlog, request, request_lock, run


def broken(request_id: str, kind: ProblemKind = ProblemKind.EMPTY) -> InvalidRequest:
    return InvalidRequest(RequestId(request_id), f"requests/{request_id}.md", (Problem(kind),))


def told(answer: Forecast) -> tuple[list[str], list[str], dict[str, str]]:
    """Ids running, ids in order, and for what never runs its reason."""
    never: dict[str, str] = {each.request_id: each.barrier.reason_code for each in answer.never}
    return [each.id for each in answer.running], [each.id for each in answer.order], never


@pytest.mark.spec("SEL-6")
def test_the_order_follows_priority_and_dependencies() -> None:
    chosen = backlog(
        request("LOW", priority="P3"),
        request("TOP", priority="P0", depends_on=["MID"]),
        request("MID", priority="P2"),
        request("HIGH", priority="P1"),
        request("LAST", priority="P0", depends_on=["TOP", "LOW"]),
    )
    assert told(forecast(chosen)) == ([], ["HIGH", "MID", "TOP", "LOW", "LAST"], {})


@pytest.mark.spec("SEL-6")
def test_what_can_never_run_is_told_with_its_reason() -> None:
    chosen = backlog(
        request("A"),
        request("DRAFT", "draft"),
        request("BLOCKED", "blocked"),
        request("AFTER", depends_on=["A", "DRAFT"]),
        request("AFTER-THAT", depends_on=["AFTER"]),
        request("LOST", depends_on=["X"]),
        request("ON-BROKEN", depends_on=["BROKEN"]),
        request("C1", depends_on=["C2"]),
        request("C2", depends_on=["C1"]),
        request("ASKS"),
        request("DONE", "done"),
        request("GONE", "archived"),
        request("ON-GONE", depends_on=["GONE"]),
        invalid=(broken("BROKEN"), broken("TWICE", ProblemKind.SAME_ID)),
        runs={RequestId("ASKS"): run("NEEDS_INPUT")},
    )
    running, order, never = told(forecast(chosen))
    assert (running, order) == ([], ["A"])
    assert never == {
        "DRAFT": "NOT_READY",
        "BLOCKED": "NOT_READY",
        "AFTER": "DEPENDS_NOT_DONE",
        "AFTER-THAT": "DEPENDS_NOT_DONE",
        "LOST": "DEPENDS_NOT_FOUND",
        "ON-BROKEN": "DEPENDS_NOT_DONE",
        "C1": "DEPENDS_CYCLE",
        "C2": "DEPENDS_CYCLE",
        "ASKS": "LATEST_RUN_NEEDS_INPUT",
        "ON-GONE": "DEPENDS_NOT_DONE",
        "BROKEN": "REQUEST_INVALID",
        "TWICE": "DUPLICATE_ID",
    }


@pytest.mark.spec("SEL-6")
def test_what_keeps_a_request_for_ever_is_named_without_what_will_be_done_by_then() -> None:
    never = forecast(backlog(request("A"), request("B", depends_on=["A", "D"]), request("D", "draft"))).never
    assert {each.request_id: dict(each.barrier.facts).get("ids") for each in never} == {"B": "D", "D": None}


@pytest.mark.spec("SEL-6")
@pytest.mark.parametrize(
    ("status", "parts", "is_running"),
    [
        ("running", {}, True),
        ("ready", {"locks": request_lock("A")}, True),
        ("ready", {"runs": {RequestId("A"): run("TESTING")}}, True),
        ("ready", {}, False),
        ("draft", {"locks": request_lock("A")}, False),
        ("blocked", {"runs": {RequestId("A"): run("TESTING")}}, False),
        ("done", {"locks": request_lock("A")}, False),
    ],
)
def test_what_is_locked_counts_as_running(status: str, parts: dict[str, object], is_running: bool) -> None:
    chosen = backlog(request("A", status), request("B", depends_on=["A"]), **parts)
    running, order, _ = told(forecast(chosen))
    assert running == (["A"] if is_running else [])
    assert ("B" in order) == (is_running or status in ("ready", "done"))


@pytest.mark.spec("SEL-6")
def test_a_held_queue_changes_nothing_in_the_order() -> None:
    free = backlog(request("A", depends_on=["B"]), request("B"))
    held = backlog(*free.requests, queue_lock=Lock(LockType.QUEUE, pid=7))
    assert told(forecast(held)) == told(forecast(free)) == ([], ["B", "A"], {})


@pytest.mark.spec("SEL-6")
def test_a_circle_that_a_running_request_is_part_of_opens_when_that_is_done() -> None:
    chosen = backlog(request("A", depends_on=["B"]), request("B", "running", depends_on=["A"]))
    assert told(forecast(chosen)) == (["B"], ["A"], {})


@pytest.mark.spec("SEL-6")
def test_a_long_chain_needs_no_deep_recursion() -> None:
    size = 5_000
    chain = [request(f"R{n}", depends_on=[f"R{n + 1}"]) for n in range(size)]
    order = forecast(backlog(*chain, request(f"R{size}"))).order
    assert [each.id for each in order] == [f"R{n}" for n in range(size, -1, -1)]


# --- properties ------------------------------------------------------------------------------------------------------

IDS = [f"R{number}" for number in range(7)]
BROKEN_IDS = ["X0", "X1"]
fields = st.tuples(
    st.sampled_from(["ready", "ready", "ready", "ready", "draft", "running", "blocked", "done", "archived"]),
    st.sampled_from(["P0", "P1", "P3"]),
    st.lists(st.sampled_from([*IDS, "X0"]), max_size=2),
    st.sampled_from([None, NOW]),
)


@st.composite
def backlogs(draw: st.DrawFn) -> Backlog:
    """Any backlog of up to seven requests, with dependencies that may be missing, broken or lead in circles."""
    chosen = draw(st.dictionaries(st.sampled_from(IDS), fields, max_size=len(IDS)))
    locked = draw(st.sampled_from([None, None, *IDS]))
    states = draw(st.dictionaries(st.sampled_from(IDS), st.sampled_from(["TESTING", "NEEDS_INPUT"]), max_size=1))
    runs: dict[RequestId, RunSummary] = {RequestId(i): run(state) for i, state in states.items()}
    return backlog(
        *(
            request(i, status, priority, depends_on=wanted, updated_at=updated)
            for i, (status, priority, wanted, updated) in chosen.items()
        ),
        invalid=tuple(broken(i) for i in draw(st.sampled_from([[], BROKEN_IDS[:1], BROKEN_IDS]))),
        locks=request_lock(locked) if locked else {},
        runs=runs,
    )


def as_if_done(chosen: Backlog, ids: set[str]) -> Backlog:
    requests = (each._replace(status=RequestStatus.DONE) if each.id in ids else each for each in chosen.requests)
    return backlog(*requests, invalid=chosen.invalid, runs=chosen.runs, locks=chosen.locks)


@pytest.mark.spec("SEL-6", "SEL-7")
@settings(max_examples=40)
@given(backlogs())
def test_the_order_is_that_of_selecting_again_and_again(chosen: Backlog) -> None:
    answer = forecast(chosen)
    rest = as_if_done(chosen, {each.id for each in answer.running})
    order = []
    while (selected := select_next(rest).next) is not None:
        order.append(selected.id)
        rest = as_if_done(rest, {selected.id})
    assert [each.id for each in answer.order] == order


@pytest.mark.spec("SEL-6")
@settings(max_examples=40)
@given(backlogs())
def test_everything_not_done_or_archived_is_running_in_order_or_never_exactly_once(chosen: Backlog) -> None:
    running, order, _ = told(forecast(chosen))
    never = [each.request_id for each in forecast(chosen).never]
    expected = [each.id for each in chosen.requests if each.status not in ("done", "archived")]
    assert sorted([*running, *order, *never]) == sorted([*expected, *(each.id for each in chosen.invalid)])
    for each in chosen.requests:
        assert each.status not in ("draft", "blocked") or each.id in never
        assert each.status != "running" or each.id in running
        is_locked = each.id in chosen.locks or (each.id in chosen.runs and chosen.runs[each.id].is_active)
        assert each.status != "ready" or (each.id in running) == is_locked


@pytest.mark.spec("SEL-6", "WEB-1")
def test_tonights_positions_are_the_forecasts_order() -> None:
    held = Lock(LockType.QUEUE, pid=1, host="h")
    chosen = backlog(
        request("LOW", priority="P3"),
        request("TOP", priority="P0", depends_on=["MID"]),
        request("MID"),
        request("AT-WORK", "running"),
        request("BEHIND", priority="P1", depends_on=["AT-WORK"]),
        request("NEVER", depends_on=["GONE"]),
        request("DEAD", priority="P0"),
        locks=request_lock("DEAD"),
        queue_lock=held,
        dead_locks=frozenset({RequestId("DEAD")}),
    )
    assert positions(chosen, select_next(chosen)) == {"DEAD": 1, "BEHIND": 2, "MID": 3, "TOP": 4, "LOW": 5}
    alive = Backlog(chosen.requests, locks=chosen.locks)
    assert "DEAD" not in positions(alive, select_next(alive))


STATUSES = [*RequestStatus, *[RequestStatus.READY] * 8]


@pytest.mark.spec("SEL-6", "WEB-1")
@given(
    st.lists(
        st.tuples(st.sampled_from(STATUSES), st.sampled_from("0123"), st.sets(st.integers(0, 11), max_size=3)),
        max_size=10,
    ),
    st.sets(st.integers(0, 9), max_size=2),
)
def test_positions_are_the_order_of_the_forecast(
    rows: list[tuple[RequestStatus, str, set[int]]], locked: set[int]
) -> None:
    requests = [
        request(f"R{number}", status, f"P{rank}", depends_on=[f"R{wanted}" for wanted in sorted(wants)])
        for number, (status, rank, wants) in enumerate(rows)
    ]
    locks = {name: lock for number in locked for name, lock in request_lock(f"R{number}").items()}
    chosen = backlog(*requests, locks=locks, queue_lock=Lock(LockType.QUEUE))
    expected = {each.id: place for place, each in enumerate(forecast(chosen).order, 1)}
    assert positions(chosen, select_next(chosen)) == expected
