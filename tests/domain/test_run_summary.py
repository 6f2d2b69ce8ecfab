"""Runs (SEL-4): which of a request's runs speaks for it, and how long one was worked on."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aiflow.domain.lifecycle import RunState
from aiflow.domain.run_summary import RunSummary, latest_run, worked_seconds
from run_builders import at

ACTIVE = ["INIT", "PLANNING", "IMPLEMENTING", "TESTING", "REPORTING"]


def runs(*states: str) -> list[RunSummary]:
    """Runs in the order in which they were started."""
    return [RunSummary(f"RUN-2026010{day}-000000-aaaaaa", RunState(state)) for day, state in enumerate(states, 1)]


def latest_day(*states: str) -> int | None:
    latest = latest_run(runs(*states))
    return int(latest.run_id[11:12]) if latest else None


@pytest.mark.spec("SEL-4")
@pytest.mark.parametrize(
    ("states", "day"),
    [
        ((), None),
        (("DONE",), 1),
        (("DONE", "DONE"), 2),
        (("NEEDS_INPUT", "DONE"), 1),
        (("NEEDS_INPUT", "FAILED", "DONE"), 1),
        (("NEEDS_INPUT", "NEEDS_INPUT", "FAILED"), 2),
        (("FAILED", "DONE"), 1),
        (("FAILED", "FAILED", "DONE"), 2),
        (("DONE", "FAILED"), 2),
        *((((state, "NEEDS_INPUT", "FAILED", "DONE"), 1)) for state in ACTIVE),
        (("PLANNING", "TESTING", "DONE"), 2),
        (("TESTING", "PLANNING", "DONE"), 2),
    ],
)
def test_an_active_run_then_the_newest_that_waits_then_failed_then_done(
    states: tuple[str, ...], day: int | None
) -> None:
    assert latest_day(*states) == day


@pytest.mark.spec("SEL-4")
@settings(max_examples=30)
@given(st.lists(st.sampled_from(RunState), max_size=9), st.randoms())
def test_the_order_in_which_runs_are_found_does_not_matter(states: list[RunState], shuffler: random.Random) -> None:
    shuffled = runs(*states)
    shuffler.shuffle(shuffled)
    latest = latest_run(shuffled)
    assert latest == latest_run(runs(*states))
    ranks = {"NEEDS_INPUT": 1, "FAILED": 2, "DONE": 3}
    best = min((ranks.get(state, 0) for state in states), default=None)
    expected = [run for run in runs(*states) if ranks.get(run.state, 0) == best]
    assert latest == (expected[-1] if expected else None)


@pytest.mark.spec("SEL-1", "SEL-4")
def test_what_is_active_and_what_waits_for_a_person() -> None:
    for state in RunState:
        summary = RunSummary("RUN-1", state)
        assert summary.is_active == (state in ACTIVE)
        assert summary.is_waiting == (state == "NEEDS_INPUT")


@pytest.mark.spec("CLI")
def test_the_time_a_run_was_worked_on_leaves_out_when_it_waited_for_a_person() -> None:
    asked = [(at(1), "PLANNING_STARTED"), (at(3), "PLANNED"), (at(10), "NEEDS_INPUT")]
    assert worked_seconds(at(0), asked) == 600
    answered = [*asked, (at(500), "RESUMED_AT_STEP"), (at(505), "LAST_STEP_DONE"), (at(506), "REPORTED")]
    accepted = [*answered, (at(900), "ACCEPTING"), (at(910), "ACCEPTED")]
    assert worked_seconds(at(0), answered) == worked_seconds(at(0), accepted) == 960
    assert worked_seconds(at(0), []) == 0
    assert worked_seconds(at(0), [(at(-5), "PLANNING_STARTED"), (at(-4), "PLANNED")]) == 60
