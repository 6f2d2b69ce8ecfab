"""Auto-run (AUT-2, AUT-3, RUN-12): it stops when it should, goes on when it should, and says which."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aiflow.domain.agents.usage import Usage
from aiflow.domain.auto.session import (
    AutoSession,
    RunEnded,
    Started,
    carry_on,
    moved,
    never_again,
    record_end,
    record_failed_start,
)
from aiflow.domain.auto.stopping import Limits, StopRequest, barred, minutes_left, strongest, why_stop
from aiflow.domain.health import Health
from aiflow.domain.lifecycle import AutoRunEvent, AutoRunState, RunOutcome, RunState
from aiflow.domain.reasons import CATALOGUE
from aiflow.domain.request import RequestId
from aiflow.errors import TransitionError
from builders import NOW, run

NEVER = Limits(stop_after_needs_input=0, stop_after_failed=0)


def session(**fields: Any) -> AutoSession:
    used = {name: fields.pop(name) for name in Usage.__dataclass_fields__ if name in fields}
    fields |= {"usage": Usage(**used)} if used else {}
    return AutoSession(started_at=NOW, **fields)


def ended(state: str, reason_code: str | None = None, cost_usd: float = 0) -> RunEnded:
    return RunEnded("RQ-1", RunState(state), reason_code, Usage(cost_usd=cost_usd))


def after(*states: str, start: AutoSession | None = None) -> AutoSession:
    """The session after runs that ended so; CANCELLED is NEEDS_INPUT with that reason."""
    current = start or session()
    for state in states:
        is_cancelled = state == "CANCELLED"
        current = record_end(current, ended("NEEDS_INPUT", state) if is_cancelled else ended(state))
    return current


@pytest.mark.spec("AUT-3")
def test_a_lost_run_is_named_and_counts_as_nothing() -> None:
    before = session(runs=2, done=1, failed_in_a_row=1, needs_input_in_a_row=1, current=Started("RQ-1"))
    after_it = record_end(before, RunEnded("RQ-1", RunState.FAILED, "RUN_LOST", Usage(cost_usd=1.5), "RUN-1"))
    assert replace(after_it, results=(), usage=Usage()) == replace(before, current=None)
    assert after_it.cost_usd == 1.5
    named = [(each.request_id, each.run_id, each.outcome, each.reason_code) for each in after_it.results]
    assert named == [("RQ-1", "RUN-1", RunOutcome.FAILED, "RUN_LOST")]
    often = session(results=after_it.results * 5)
    assert barred(often, {}) == frozenset()
    assert why_stop(often, Limits(stop_after_needs_input=1, stop_after_failed=1, session_runs=1), NOW) is None


# --- each stop condition exactly at its limit ------------------------------------------------------------------------

AT_LIMIT: list[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    # reason, limit, one before, at it
    ("AUTO_NEEDS_INPUT_LIMIT", {"stop_after_needs_input": 2}, {"needs_input_in_a_row": 1}, {"needs_input_in_a_row": 2}),
    ("AUTO_NEEDS_INPUT_LIMIT", {"stop_after_needs_input": 5}, {"needs_input_in_a_row": 4}, {"needs_input_in_a_row": 5}),
    ("AUTO_FAILED_LIMIT", {"stop_after_failed": 1}, {"failed_in_a_row": 0}, {"failed_in_a_row": 1}),
    ("AUTO_FAILED_LIMIT", {"stop_after_failed": 3}, {"failed_in_a_row": 2}, {"failed_in_a_row": 3}),
    ("AUTO_RUNS_LIMIT", {"session_runs": 4}, {"runs": 3}, {"runs": 4}),
    ("AUTO_COST_LIMIT", {"session_cost_usd": 2.5}, {"cost_usd": 2.49}, {"cost_usd": 2.5}),
    ("AUTO_TOKENS_LIMIT", {"session_tokens": 30}, {"output_tokens": 29}, {"output_tokens": 30}),
    ("AUTO_CALLS_LIMIT", {"session_agent_calls": 3}, {"calls": 2}, {"calls": 3}),
]


@pytest.mark.spec("AUT-3")
@pytest.mark.parametrize(("code", "limit", "before", "at"), AT_LIMIT)
def test_it_stops_at_the_limit_and_not_one_before(
    code: str, limit: dict[str, Any], before: dict[str, Any], at: dict[str, Any]
) -> None:
    limits = replace(NEVER, **limit)
    assert why_stop(session(**before), limits, NOW) is None
    assert why_stop(session(**at), limits, NOW) == code
    assert why_stop(session(**{name: value + 1 for name, value in at.items()}), limits, NOW) == code
    assert why_stop(session(**at), NEVER, NOW) is None


@pytest.mark.spec("AUT-3")
def test_it_stops_when_its_minutes_are_over_and_not_a_moment_before() -> None:
    limits = replace(NEVER, session_minutes=30)
    end = NOW + timedelta(minutes=30)
    assert why_stop(session(), limits, end - timedelta(seconds=1)) is None
    assert why_stop(session(), limits, end) == "AUTO_MINUTES_LIMIT"
    assert why_stop(session(), NEVER, NOW + timedelta(days=365)) is None


@pytest.mark.spec("AUT-3")
def test_it_stops_at_the_time_that_was_set_and_waits_for_nothing_beyond() -> None:
    end = NOW + timedelta(minutes=30)
    limits = replace(NEVER, until=end)
    assert why_stop(session(), limits, end - timedelta(seconds=1)) is None
    assert why_stop(session(), limits, end) == "AUTO_UNTIL_REACHED"
    assert "AUTO_UNTIL_REACHED" in CATALOGUE
    assert minutes_left(session(), limits, NOW) == 30
    assert minutes_left(session(), replace(limits, session_minutes=10), NOW) == 10
    assert minutes_left(session(), replace(limits, session_minutes=90), end + timedelta(minutes=1)) == 0


@pytest.mark.spec("AUT-3")
@pytest.mark.parametrize(("stop_request", "is_stop"), [("none", False), ("after_run", True), ("now", True)])
def test_it_stops_when_a_person_says_so(stop_request: str, is_stop: bool) -> None:
    asked = session(stop_request=StopRequest(stop_request))
    assert why_stop(asked, NEVER, NOW) == ("AUTO_STOPPED_BY_PERSON" if is_stop else None)


@pytest.mark.spec("AUT-1", "AUT-3")
def test_it_stops_when_the_doctor_finds_a_failure_and_not_for_a_warning() -> None:
    assert [why_stop(session(), NEVER, NOW, health) for health in (Health.PASS, Health.WARN)] == [None, None]
    assert why_stop(session(), NEVER, NOW, Health.FAIL) == "DOCTOR_FAILED"


@pytest.mark.spec("AUT-3")
def test_the_limits_are_two_and_one_unless_set_and_0_is_never() -> None:
    assert Limits() == Limits(
        stop_after_needs_input=2, stop_after_failed=1, session_runs=0, session_minutes=0, session_cost_usd=0
    )
    much = session(runs=999, needs_input_in_a_row=999, failed_in_a_row=999, cost_usd=999.0)
    assert why_stop(much, NEVER, NOW + timedelta(days=9)) is None


@pytest.mark.spec("AUT-3", "ERR-1")
def test_of_several_reasons_the_persons_own_is_told_and_every_one_is_in_the_catalogue() -> None:
    limits = Limits(1, 1, 1, 1, 1)
    now = NOW + timedelta(minutes=1)
    everything = session(
        runs=1, needs_input_in_a_row=1, failed_in_a_row=1, cost_usd=1, stop_request=StopRequest.AFTER_RUN
    )
    steps: list[dict[str, Any]] = [
        {"stop_request": StopRequest.NONE},
        {"failed_in_a_row": 0},
        {"needs_input_in_a_row": 0},
        {"runs": 0},
    ]
    told = [why_stop(everything, limits, now)]
    for step in steps:
        everything = replace(everything, **step)
        told.append(why_stop(everything, limits, now))
    assert told == [
        "AUTO_STOPPED_BY_PERSON",
        "AUTO_FAILED_LIMIT",
        "AUTO_NEEDS_INPUT_LIMIT",
        "AUTO_RUNS_LIMIT",
        "AUTO_MINUTES_LIMIT",
    ]
    assert all(code in CATALOGUE for code in told)


# --- what is counted -------------------------------------------------------------------------------------------------


@pytest.mark.spec("AUT-2", "AUT-3", "RUN-12")
@pytest.mark.parametrize(
    ("states", "needs_input", "failed", "done"),
    [
        ("", 0, 0, 0),
        ("DONE", 0, 0, 1),
        ("NEEDS_INPUT", 1, 0, 0),
        ("NEEDS_INPUT NEEDS_INPUT", 2, 0, 0),
        ("NEEDS_INPUT DONE NEEDS_INPUT", 1, 0, 1),
        ("NEEDS_INPUT FAILED", 0, 1, 0),
        ("FAILED NEEDS_INPUT", 1, 0, 0),
        ("FAILED FAILED DONE", 0, 0, 1),
        ("FAILED FAILED", 0, 2, 0),
        # a cancelled run is neither a failure nor a success
        ("CANCELLED CANCELLED", 0, 0, 0),
        ("NEEDS_INPUT CANCELLED NEEDS_INPUT", 2, 0, 0),
        ("FAILED CANCELLED", 0, 1, 0),
    ],
)
def test_how_runs_that_ended_are_counted(states: str, needs_input: int, failed: int, done: int) -> None:
    counted = after(*states.split())
    assert (counted.needs_input_in_a_row, counted.failed_in_a_row, counted.done) == (needs_input, failed, done)
    assert counted.runs == len(states.split())


@pytest.mark.spec("AUT-3")
def test_with_the_usual_limits_it_stops_after_two_that_wait_in_a_row_or_one_that_failed() -> None:
    assert why_stop(after("NEEDS_INPUT", "DONE", "NEEDS_INPUT"), Limits(), NOW) is None
    assert why_stop(after("NEEDS_INPUT", "NEEDS_INPUT"), Limits(), NOW) == "AUTO_NEEDS_INPUT_LIMIT"
    assert why_stop(after("FAILED"), Limits(), NOW) == "AUTO_FAILED_LIMIT"
    assert why_stop(after(*["CANCELLED"] * 9), Limits(), NOW) is None


@pytest.mark.spec("AUT-2")
def test_a_start_that_failed_counts_as_failed_and_is_not_tried_again() -> None:
    counted = record_failed_start(record_failed_start(after("NEEDS_INPUT"), "RQ-7"), "RQ-8")
    assert (counted.failed_in_a_row, counted.needs_input_in_a_row) == (2, 0)
    assert counted.not_again == {"RQ-7", "RQ-8"}
    assert counted.runs == 1
    assert why_stop(record_failed_start(session(), "RQ-7"), Limits(), NOW) == "AUTO_FAILED_LIMIT"
    assert after("DONE", start=counted).not_again == {"RQ-7", "RQ-8"}


@pytest.mark.spec("AUT-3")
def test_the_cost_of_every_run_counts_however_it_ended() -> None:
    counted = session()
    for state, code in [("DONE", None), ("NEEDS_INPUT", "CANCELLED"), ("NEEDS_INPUT", None), ("FAILED", None)]:
        counted = record_end(counted, ended(state, code, cost_usd=0.5))
    assert counted.cost_usd == 2.0


# --- properties ------------------------------------------------------------------------------------------------------

endings = st.lists(st.sampled_from(["DONE", "NEEDS_INPUT", "FAILED", "CANCELLED", "start failed"]), max_size=12)


@pytest.mark.spec("AUT-2", "AUT-3", "AUT-4")
@settings(max_examples=40)
@given(endings)
def test_counters_never_fall_below_zero_and_done_resets_those_in_a_row(states: list[str]) -> None:
    current = session()
    for state in states:
        before = current
        current = record_failed_start(current, "RQ-1") if state == "start failed" else after(state, start=current)
        assert min(current.runs, current.done, current.needs_input_in_a_row, current.failed_in_a_row) >= 0
        assert not (current.needs_input_in_a_row and current.failed_in_a_row)
        assert current.runs == before.runs + (state != "start failed")
        assert current.done == before.done + (state == "DONE")
        if state == "DONE":
            assert current.needs_input_in_a_row == current.failed_in_a_row == 0
        assert current.started_at == NOW


# --- each run once, and each in the results --------------------------------------------------------------------------


@pytest.mark.spec("AUT-3", "AUT-4")
def test_a_run_counts_once_however_often_it_is_reported() -> None:
    first = RunEnded("RQ-1", RunState.NEEDS_INPUT, "UNIT_TEST_FAILED", Usage(cost_usd=0.5), "RUN-1")
    once = record_end(session(current=Started("RQ-1", "RUN-0")), first)
    assert (once.runs, once.needs_input_in_a_row, once.cost_usd, once.current) == (1, 1, 0.5, None)
    again = record_end(replace(once, current=Started("RQ-1", "RUN-0")), replace(first, state=RunState.DONE))
    assert again == once
    assert record_end(once, replace(first, run_id="RUN-2")).runs == 2


@pytest.mark.spec("AUT-2", "AUT-3")
def test_the_results_say_what_came_of_each() -> None:
    current = session(current=Started("RQ-1"))
    current = record_end(current, RunEnded("RQ-1", RunState.DONE, None, Usage(), "RUN-1", is_accepted=True))
    current = record_end(current, RunEnded("RQ-2", RunState.DONE, "MERGE_CONFLICT", Usage(), "RUN-2"))
    current = record_end(current, RunEnded("RQ-3", RunState.NEEDS_INPUT, "CANCELLED", Usage(), "RUN-3"))
    current = record_end(current, RunEnded("RQ-4", RunState.FAILED, "SENT_BACK", Usage(), "RUN-4"))
    assert (current.runs, current.done, current.failed_in_a_row) == (4, 2, 0)
    current = record_failed_start(current, "RQ-5", "REQUEST_INVALID")
    assert [(r.request_id, r.run_id, r.outcome, r.reason_code) for r in current.results] == [
        ("RQ-1", "RUN-1", RunOutcome.ACCEPTED, None),
        ("RQ-2", "RUN-2", RunOutcome.AWAITING_ACCEPTANCE, "MERGE_CONFLICT"),
        ("RQ-3", "RUN-3", RunOutcome.CANCELLED, "CANCELLED"),
        ("RQ-4", "RUN-4", RunOutcome.SENT_BACK, "SENT_BACK"),
        ("RQ-5", None, RunOutcome.FAILED, "REQUEST_INVALID"),
    ]
    assert current.current is None


@pytest.mark.spec("AUT-2", "RUN-14")
@pytest.mark.parametrize("latest", ["SENT_BACK", "MERGE_CONFLICT", None])
def test_what_came_to_an_end_is_barred_unless_it_is_sent_back_and_then_some_time(latest: str | None) -> None:
    runs = {RequestId("RQ-1"): run("FAILED" if latest else "DONE", reason_code=latest)}
    assert barred(session(), runs) == frozenset()
    for ends, is_barred in ((["DONE"], False), (["DONE", "FAILED"], False), (["DONE", "FAILED", "NEEDS_INPUT"], True)):
        expected = {"RQ-1"} if is_barred or latest != "SENT_BACK" else set()
        assert barred(after(*ends), runs) == expected
        assert barred(record_failed_start(after(*ends), "RQ-2"), runs) == {*expected, "RQ-2"}
    assert barred(after("DONE"), {}) == {"RQ-1"}
    assert never_again(session(not_again=frozenset({"RQ-2"})), "RQ-1").not_again == {"RQ-1", "RQ-2"}


# --- a session that was interrupted ----------------------------------------------------------------------------------


@pytest.mark.spec("AUT-1", "AUT-4")
def test_only_a_session_whose_process_was_at_work_was_interrupted() -> None:
    ended_ones = {AutoRunState.IDLE, AutoRunState.STOPPED, AutoRunState.COMPLETED}
    assert {state for state in AutoRunState if not session(state=state).is_interrupted} == ended_ones


@pytest.mark.spec("AUT-4")
def test_a_session_that_ended_with_its_terminal_is_carried_on_and_its_run_counted_then() -> None:
    before = replace(after("DONE", "NEEDS_INPUT"), current=Started("RQ-1"))
    cut = record_end(before, RunEnded("RQ-1", RunState.NEEDS_INPUT, "AUTO_CUT_OFF", Usage(cost_usd=1), "RUN-1"))
    assert cut == replace(before, current=None)
    stopped = replace(cut, state=AutoRunState.STOPPED, reason_code="AUTO_CUT_OFF")
    assert (stopped.was_cut, stopped.is_interrupted) == (True, False)
    assert not replace(stopped, reason_code="AUTO_STOPPED_BY_PERSON").was_cut
    later = record_end(carry_on(stopped, NOW), RunEnded("RQ-1", RunState.DONE, None, Usage(cost_usd=2), "RUN-1"))
    assert (later.runs, later.done, later.cost_usd, later.reason_code) == (3, 2, 2, None)


@pytest.mark.spec("AUT-4")
def test_counters_survive_a_crash_and_the_time_in_which_nobody_worked_does_not_count() -> None:
    left = replace(
        after("DONE", "NEEDS_INPUT"),
        state=AutoRunState.STOPPING,
        stop_request=StopRequest.AFTER_RUN,
        changed_at=NOW + timedelta(minutes=20),
        spent=timedelta(minutes=5),
        not_again=frozenset({"RQ-9"}),
        current=Started("RQ-3", "RUN-1"),
    )
    later = NOW + timedelta(days=3)
    taken = carry_on(left, later)
    assert (taken.runs, taken.done, taken.needs_input_in_a_row, taken.not_again) == (2, 1, 1, left.not_again)
    assert (taken.current, taken.results) == (left.current, left.results)
    assert (taken.state, taken.stop_request, taken.reason_code) == (AutoRunState.IDLE, StopRequest.NONE, None)
    assert taken.spent == timedelta(minutes=25)
    limits = replace(NEVER, session_minutes=30)
    assert why_stop(taken, limits, later + timedelta(minutes=4, seconds=59)) is None
    assert why_stop(taken, limits, later + timedelta(minutes=5)) == "AUTO_MINUTES_LIMIT"
    # A clock that was set back, and a session that was never saved again, take nothing away.
    assert carry_on(replace(left, changed_at=NOW - timedelta(days=1)), later).spent == timedelta(minutes=5)
    assert carry_on(replace(left, changed_at=None), later).spent == timedelta(minutes=5)


@pytest.mark.spec("AUT-1")
def test_a_session_follows_the_table() -> None:
    at_work = moved(session(), AutoRunEvent.STARTED)
    assert at_work.state is AutoRunState.SELECTING
    assert moved(at_work, AutoRunEvent.NOTHING_LEFT).state is AutoRunState.COMPLETED
    with pytest.raises(TransitionError):
        moved(session(), AutoRunEvent.RUN_STARTED)


@pytest.mark.spec("AUT-3", "LCK-8")
def test_of_several_wishes_the_stronger_one_counts() -> None:
    none, after_run, cut_off, now = StopRequest
    assert strongest() is strongest(none, none) is none
    assert strongest(none, after_run) is strongest(after_run, none) is after_run
    assert strongest(cut_off, after_run) is cut_off
    assert strongest(now, after_run) is strongest(after_run, none, now) is strongest(cut_off, now) is now
