"""A run's history as a timeline: stages, attempts, phases, times."""

from __future__ import annotations

import pytest

from aiflow.domain.agents.answers import Role
from aiflow.domain.lifecycle import RunEvent
from aiflow.domain.runs import events
from aiflow.domain.runs.agent_events import quota_reached, quota_waited
from aiflow.domain.runs.events import (
    accepted,
    accepting,
    asked,
    called,
    implemented,
    prepared,
    reviewed,
    step_done,
    stopped,
)
from aiflow.domain.runs.quota import QuotaPatience
from aiflow.domain.runs.resume import GoOn
from aiflow.domain.runs.resume_events import resumed
from aiflow.domain.runs.run import Run
from aiflow.domain.runs.timeline import Phase, Stage, timeline
from run_builders import CHANGES, EVERY_STATE, at, done, fail, in_review, in_step, in_tests, new_run, why
from run_page_runs import MADE

pytestmark = pytest.mark.spec("WEB-1")


def stage(run: Run, name: str) -> Stage:
    return next(each for each in timeline(run) if each.name == name)


def told(run: Run, name: str) -> list[tuple[list[str], str | None]]:
    """Each attempt's phases, those that failed with a mark, and its code."""
    attempts = stage(run, name).attempts
    return [([f"{phase.name}{'!' * phase.is_failed}" for phase in each.phases], each.reason_code) for each in attempts]


def test_it_has_the_plan_each_step_and_the_report() -> None:
    assert [(each.name, each.mark) for each in timeline(done())] == [
        ("plan", "done"),
        ("S01", "done"),
        ("S02", "done"),
        ("S03", "done"),
        ("report", "done"),
    ]
    assert [each.mark for each in timeline(in_step(2))] == ["done", "done", "run", "todo", "todo"]


def test_a_failed_phase_is_named_by_its_code_and_a_new_attempt_begins() -> None:
    run = fail(in_tests(2), "QA_REJECTED")
    run = implemented(called(run, Role.IMPLEMENTER), CHANGES, "again", at(33))
    run = stopped(run, why("UNIT_TEST_FAILED"), at(34))
    assert told(run, "S02") == [
        (["implement", "review!"], "QA_REJECTED"),
        (["implement", "tests!"], "UNIT_TEST_FAILED"),
    ]
    second = stage(run, "S02").attempts[1]
    assert [phase.seconds for phase in second.phases] == [180, 60]
    assert stage(run, "S02").mark == "stopped"
    assert stage(run, "S02").seconds == (at(34) - at(3)).total_seconds()


def test_tests_and_review_have_times_of_their_own() -> None:
    run = step_done(reviewed(called(in_review(), Role.QA)), "commit-1", at(14))
    assert told(run, "S01") == [(["implement", "tests", "review"], None)]
    assert [phase.seconds for phase in stage(run, "S01").attempts[0].phases] == [480, 60, 180]
    again = stopped(fail(called(in_review(), Role.QA), "QA_REJECTED"), why("CANCELLED"), at(40))
    assert told(again, "S01")[0] == (["implement", "tests", "review!"], "QA_REJECTED")


def test_what_goes_on_is_the_tests_until_they_have_passed() -> None:
    assert told(events.testing(in_tests()), "S01") == [(["implement", "tests"], None)]
    reviewing = called(in_review(), Role.QA)
    assert told(reviewing, "S01") == [(["implement", "tests", "review"], None)]
    assert stage(reviewing, "S01").running == Phase("review", at(11))
    waiting = quota_reached(reviewing, Role.QA, why("AGENT_QUOTA"), (at(90), QuotaPatience(9)), at(13))
    back = called(quota_waited(waiting, at(90)), Role.QA)
    assert told(back, "S01") == [(["implement", "tests", "review", "wait", "review"], None)]


def test_without_tests_there_is_a_review_and_without_a_review_there_are_tests() -> None:
    untested = step_done(reviewed(called(events.tested(in_tests()), Role.QA)), "commit-1", at(14))
    assert told(untested, "S01") == [(["implement", "review"], None)]
    merged = step_done(in_review(), "commit-1", at(14))
    assert told(merged, "S01") == [(["implement", "tests"], None)]
    asks = asked(called(in_review(), Role.QA), Role.QA, why("NEEDS_CLARIFICATION"), at(14))
    assert told(asks, "S01") == [(["implement", "tests", "review"], "NEEDS_CLARIFICATION")]
    cancelled = stopped(events.testing(in_tests()), why("CANCELLED"), at(14))
    assert told(cancelled, "S01") == [(["implement", "tests!"], "CANCELLED")]


def test_a_run_that_did_not_note_when_its_tests_passed_shows_both_as_one() -> None:
    run = step_done(reviewed(called(events.tested(events.testing(in_tests())), Role.QA)), "commit-1", at(14))
    assert told(run, "S01") == [(["implement", "check"], None)]


def test_a_question_is_no_failure() -> None:
    assert told(MADE["question"](), "S01") == [(["implement"], "NEEDS_CLARIFICATION")]
    assert stage(MADE["question"](), "S01").mark == "question"


def test_what_goes_on_counts_from_when_it_would_have_begun_without_a_break() -> None:
    stop = stopped(in_step(), why("AGENT_FAILED"), at(10))
    run = resumed(stop, GoOn(RunEvent.RESUMED_AT_STEP, "S01"), None, at(100))
    first = stage(run, "S01")
    assert (first.mark, first.seconds) == ("run", 480)
    assert first.running is not None
    assert (first.running.name, first.ticks_from) == ("implement", at(92))


def test_waiting_for_quota_is_a_phase_of_its_own() -> None:
    run = MADE["waiting"]()
    assert (stage(run, "S02").mark, told(run, "S02")) == ("pause", [(["implement", "wait"], None)])
    assert told(quota_waited(run, at(90)), "S02") == [(["implement", "wait", "implement"], None)]


def test_acceptance_is_there_once_it_was_tried() -> None:
    assert told(MADE["conflicting"](), "acceptance") == [(["merge!"], "MERGE_CONFLICT")]
    again = accepted(accepting(MADE["conflicting"](), at(40)), "abc", at(41))
    assert (stage(again, "acceptance").mark, len(stage(again, "acceptance").attempts)) == ("done", 2)


@pytest.mark.parametrize("run", [*EVERY_STATE.values(), *(make() for make in MADE.values())])
def test_every_run_has_one(run: Run) -> None:
    stages = timeline(run)
    steps = ["plan", *(step.id for step in run.plan), "report"]
    first = ["baseline"] if any(line.event == events.BASELINE for line in run.history) else []
    assert [each.name for each in stages][: len(first + steps)] == first + steps
    assert sum(each.running is not None for each in stages) == run.is_active
    assert all(phase.seconds >= 0 for each in stages for attempt in each.attempts for phase in attempt.phases)


@pytest.mark.spec("RUN-17")
def test_the_tests_of_the_base_are_a_stage_of_their_own_before_the_plan() -> None:
    run = MADE["base_red"]()
    assert (stage(run, "baseline").mark, told(run, "baseline")) == ("stopped", [(["tests!"], "BASE_TESTS_FAILED")])
    assert (stage(run, "plan").mark, stage(run, "plan").seconds) == ("todo", 0)
    again = events.noted(resumed(run, GoOn(RunEvent.RESUMED_AT_PLANNING), None, at(20)), events.BASELINE, at(21))
    assert (stage(again, "baseline").mark, stage(again, "baseline").attempts[-1].number) == ("run", 2)
    passed = events.base_tested(again, at(24))
    assert [(each.name, each.mark) for each in timeline(passed)][:2] == [("baseline", "done"), ("plan", "run")]
    assert told(passed, "plan") == [(["plan", "plan"], None)]


def test_a_stop_before_the_plan_is_the_plans() -> None:
    run = stopped(prepared(new_run(), at(1)), why("AGENT_FAILED"), at(2))
    assert (stage(run, "plan").mark, told(run, "plan")) == ("stopped", [(["plan!"], "AGENT_FAILED")])


def test_a_report_stays_written_when_the_work_is_sent_back() -> None:
    assert stage(MADE["sent_back"](), "report").mark == "done"
