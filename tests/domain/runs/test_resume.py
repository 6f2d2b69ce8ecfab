"""Resuming (D34 §4 to §7; RUN-5, RUN-6): where a stopped run goes on, and which way is open if not this one."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

from aiflow.domain.details import Detail, detail
from aiflow.domain.lifecycle import ACTIVE_RUN_STATES, RUN_TRANSITIONS, RunEvent, RunState, advance
from aiflow.domain.reasons import CATALOGUE
from aiflow.domain.runs.resume import Decision, Goal, GoOn, Refused, ResumeMode, StartAnew, StoppedRun, decide_resume
from aiflow.domain.runs.retry import ReplanSignal, may_retry_step

STEPS = ("S01", "S02", "S03")
RESUME, RETRY_STEP, REPLAN = ResumeMode.RESUME, ResumeMode.RETRY_STEP, ResumeMode.REPLAN


def stopped(state: str = "NEEDS_INPUT", **fields: Any) -> StoppedRun:
    """A run of three steps that stopped in the second."""
    usual = {"step_ids": STEPS, "done_step_ids": frozenset({"S01"}), "current_step_id": "S02"}
    return StoppedRun("RUN-1", RunState(state), **{**usual, **fields})


def decide(run: StoppedRun, mode: str = "resume", target: str | None = None, *, force: bool = False) -> Decision:
    return decide_resume(run, Goal(ResumeMode(mode), target, force), step_retries=3)


def told(decision: Decision) -> str:
    """The decision in one word: the reason it was refused, the event it goes on with, or that it starts anew."""
    if isinstance(decision, Refused):
        return decision.reason_code
    return "new run" if isinstance(decision, StartAnew) else decision.event.value


# --- whether: state x mode x force -----------------------------------------------------------------------------------

# state, then (resume, retry_step, replan) without force, then the same three with it
IN_PROGRESS = (("RUN_IN_PROGRESS",) * 3,) * 2
WHETHER = {
    **dict.fromkeys(("INIT", "PLANNING", "IMPLEMENTING", "TESTING", "REPORTING"), IN_PROGRESS),
    "DONE": (("RUN_NOT_RESUMABLE",) * 3, ("RUN_NOT_RESUMABLE",) * 3),
    "NEEDS_INPUT": (("RESUMED_AT_STEP", "RESUMED_AT_STEP", "new run"),) * 2,
    "FAILED": (
        ("RUN_NOT_RESUMABLE", "RUN_NOT_RESUMABLE", "new run"),
        ("RESUMED_AT_STEP", "RESUMED_AT_STEP", "new run"),
    ),
}


@pytest.mark.spec("RUN-6")
@pytest.mark.parametrize("state", RunState)
def test_whether_a_run_goes_on(state: str) -> None:
    for is_forced in (False, True):
        decisions = tuple(told(decide(stopped(state), mode, force=is_forced)) for mode in ResumeMode)
        assert decisions == WHETHER[state][is_forced]


@pytest.mark.spec("RUN-6")
@pytest.mark.parametrize("mode", [RESUME, RETRY_STEP])
def test_a_failed_run_is_refused_with_the_advice_to_plan_anew(mode: ResumeMode) -> None:
    decision = decide(stopped("FAILED"), mode)
    assert isinstance(decision, Refused)
    assert decision.advice is REPLAN
    assert decision.detail == detail("refused.failed", run_id="RUN-1")
    assert decide_resume(stopped("FAILED"), Goal(mode), step_retries=3) == decision


@pytest.mark.spec("RUN-6", "LCK-7")
@pytest.mark.parametrize("state", [*sorted(ACTIVE_RUN_STATES), "DONE"])
def test_a_run_in_progress_or_done_offers_no_other_way(state: str) -> None:
    for mode, is_forced in itertools.product(ResumeMode, (False, True)):
        decision = decide(stopped(state), mode, force=is_forced)
        assert isinstance(decision, Refused)
        assert decision.advice is None
        assert decision.detail == detail("refused.state", run_id="RUN-1", state=state)


@pytest.mark.spec("RUN-6")
@pytest.mark.parametrize("state", ["NEEDS_INPUT", "FAILED"])
@pytest.mark.parametrize("field", ["replaced_by", "newer_run_id"])
def test_only_the_latest_run_that_was_not_replaced_goes_on_even_by_force(state: str, field: str) -> None:
    for mode, is_forced in itertools.product(ResumeMode, (False, True)):
        decision = decide(stopped(state, **{field: "RUN-2"}), mode, force=is_forced)
        assert isinstance(decision, Refused)
        assert decision.reason_code == "RUN_NOT_RESUMABLE"
        key = "refused.replaced" if field == "replaced_by" else "refused.newer"
        assert decision.detail == detail(key, run_id="RUN-1", newer="RUN-2")


@pytest.mark.spec("RUN-6")
def test_planning_anew_names_the_run_it_replaces() -> None:
    assert decide(stopped(), "replan") == StartAnew(replaces="RUN-1")


# --- where: plan and current step ------------------------------------------------------------------------------------


@pytest.mark.spec("RUN-6")
@pytest.mark.parametrize(
    ("steps", "done", "current", "event", "step"),
    [
        # the current step, wherever it stands
        (STEPS, "", "S01", "RESUMED_AT_STEP", "S01"),
        (STEPS, "S01", "S02", "RESUMED_AT_STEP", "S02"),
        (STEPS, "S01 S02", "S03", "RESUMED_AT_STEP", "S03"),
        (STEPS, "", "S02", "RESUMED_AT_STEP", "S02"),
        (STEPS, "S01", "S03", "RESUMED_AT_STEP", "S03"),
        # none: PLANNING without a plan, else the first step, but nothing that is finished already
        ((), "", None, "RESUMED_AT_PLANNING", None),
        (STEPS, "", None, "RESUMED_AT_STEP", "S01"),
        (STEPS, "S01", None, "RESUMED_AT_STEP", "S02"),
        (STEPS, "S01 S02 S03", None, "RESUMED_AT_REPORT", None),
        # one that the plan does not know is none
        ((), "", "S02", "RESUMED_AT_PLANNING", None),
        (STEPS, "", "S09", "RESUMED_AT_STEP", "S01"),
        (STEPS, "S01", "S09", "RESUMED_AT_STEP", "S02"),
    ],
)
def test_resume_goes_on_at_the_current_step(
    steps: tuple[str, ...], done: str, current: str | None, event: str, step: str | None
) -> None:
    run = stopped(step_ids=steps, done_step_ids=frozenset(done.split()), current_step_id=current)
    assert decide_resume(run, Goal(), step_retries=3) == GoOn(RunEvent(event), step, is_from_start=False)


@pytest.mark.spec("RUN-6")
@pytest.mark.parametrize("target", [None, "S02"])
def test_resume_may_name_the_step_it_goes_on_at(target: str | None) -> None:
    assert decide(stopped(), "resume", target) == GoOn(RunEvent.RESUMED_AT_STEP, "S02")


@pytest.mark.spec("RUN-6")
@pytest.mark.parametrize("target", ["S01", "S03", "S09"])
def test_resume_does_not_go_elsewhere_and_points_to_retry_step(target: str) -> None:
    decision = decide(stopped(), "resume", target, force=True)
    assert isinstance(decision, Refused)
    assert (decision.reason_code, decision.advice) == ("INPUT_INVALID", RETRY_STEP)


@pytest.mark.spec("RUN-6")
@pytest.mark.parametrize(
    ("done", "current", "target", "step"),
    [
        ("S01", "S02", None, "S02"),
        ("S01", "S02", "S02", "S02"),
        ("S01", "S02", "S01", "S01"),
        ("S01 S02", "S03", "S01", "S01"),
        ("S01", None, None, "S02"),
        ("S01 S02 S03", None, None, "S03"),
        ("S01 S02 S03", None, "S02", "S02"),
    ],
)
def test_retry_step_does_the_current_or_an_earlier_step_from_its_start(
    done: str, current: str | None, target: str | None, step: str
) -> None:
    run = stopped(done_step_ids=frozenset(done.split()), current_step_id=current)
    # What is done already is done again whatever the run stopped for (RUN-4).
    is_earlier = target is not None and step != (current or "S03")
    way = GoOn(RunEvent.RESUMED_AT_STEP, step, is_from_start=True, is_again=is_earlier)
    assert decide(run, "retry_step", target) == way
    assert decide(replace(run, has_failed=True), "retry_step", target) == replace(way, is_again=True)


@pytest.mark.spec("RUN-6")
def test_retry_step_without_a_plan_plans_again() -> None:
    run = stopped(step_ids=(), done_step_ids=frozenset(), current_step_id=None)
    assert decide(run, "retry_step") == GoOn(RunEvent.RESUMED_AT_PLANNING, is_from_start=True)


@pytest.mark.spec("RUN-6")
@pytest.mark.parametrize(
    ("steps", "target", "advice"),
    [(STEPS, "S03", RESUME), (STEPS, "S09", None), (STEPS, "s01", None), ((), "S01", None)],
)
@pytest.mark.parametrize("is_forced", [False, True])
def test_retry_step_refuses_a_later_and_an_unknown_step(
    steps: tuple[str, ...], target: str, advice: ResumeMode | None, is_forced: bool
) -> None:
    decision = decide(stopped(step_ids=steps), "retry_step", target, force=is_forced)
    assert isinstance(decision, Refused)
    assert (decision.reason_code, decision.advice) == ("INPUT_INVALID", advice)
    assert isinstance(decision.detail, Detail)
    assert ("step_id", target) in decision.detail.facts


# --- limits and the advice to plan anew ------------------------------------------------------------------------------


@pytest.mark.spec("RUN-4")
@pytest.mark.parametrize("mode", [RESUME, RETRY_STEP])
@pytest.mark.parametrize("place", ["S02", "planning"])
@pytest.mark.parametrize("limit", [0, 1, 3])
def test_what_failed_is_done_again_so_often_and_then_a_new_plan_is_advised(
    limit: int, place: str, mode: ResumeMode
) -> None:
    usual: dict[str, Any] = {} if place == "S02" else {"step_ids": (), "current_step_id": None}
    for count in range(limit + 3):
        run = stopped(**usual, has_failed=True, retries={"S01": 9, place: count})
        decision = decide_resume(run, Goal(mode), limit)
        assert isinstance(decision, GoOn) == (count < limit) == may_retry_step(count, limit)
        if isinstance(decision, GoOn):
            assert decision.is_again
        else:
            assert isinstance(decision, Refused)
            assert (decision.reason_code, decision.advice) == ("RETRY_LIMIT_EXCEEDED", REPLAN)
        forced = decide_resume(run, Goal(mode, is_forced=True), limit)
        assert isinstance(forced, GoOn)
        assert forced.is_again
        # Behind a question, a cancel, a quota, a crash or a mended environment, and behind a person's own mending.
        for other in (replace(run, has_failed=False), replace(run, is_mended=True)):
            way = decide_resume(other, Goal(mode), limit)
            assert isinstance(way, GoOn)
            assert way.is_again is other.has_failed


@pytest.mark.spec("RUN-4", "RUN-6")
def test_the_limit_of_one_step_is_not_that_of_another_nor_of_replan() -> None:
    run = stopped(has_failed=True, retries={"S02": 3})
    assert told(decide(run, "retry_step", "S01")) == "RESUMED_AT_STEP"
    assert told(decide_resume(run, Goal(RETRY_STEP, "S01"), step_retries=1)) == "RESUMED_AT_STEP"
    assert told(decide(run, "replan")) == "new run"


@pytest.mark.spec("RUN-4", "RUN-5")
@pytest.mark.parametrize("mode", [RESUME, RETRY_STEP])
def test_the_limit_is_told_before_the_advice_to_plan_anew(mode: ResumeMode) -> None:
    run = stopped(has_failed=True, retries={"S02": 3}, replan_signal=ReplanSignal.SAME_REASON_TWICE)
    assert told(decide(run, mode)) == "RETRY_LIMIT_EXCEEDED"
    assert told(decide(run, mode, force=True)) == "RESUMED_AT_STEP"


@pytest.mark.spec("RUN-5")
@pytest.mark.parametrize("signal", ReplanSignal)
@pytest.mark.parametrize("mode", [RESUME, RETRY_STEP])
def test_when_the_plan_must_change_both_ways_say_so_and_force_overrides(signal: ReplanSignal, mode: ResumeMode) -> None:
    run = stopped(replan_signal=signal)
    assert decide(run, mode) == Refused("REPLAN_REQUIRED", detail(f"replan.{signal}"), REPLAN)
    assert told(decide(run, mode, force=True)) == "RESUMED_AT_STEP"
    assert told(decide(run, "replan")) == "new run"


@pytest.mark.spec("RUN-4", "RUN-5", "RUN-6")
@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"state": "TESTING"}, "RUN_IN_PROGRESS"),
        ({"state": "DONE"}, "RUN_NOT_RESUMABLE"),
        ({"replaced_by": "RUN-2"}, "RUN_NOT_RESUMABLE"),
        ({"newer_run_id": "RUN-2"}, "RUN_NOT_RESUMABLE"),
    ],
)
def test_force_overrides_advice_and_nothing_else(fields: dict[str, Any], code: str) -> None:
    run = stopped(**fields, replan_signal=ReplanSignal.SAME_REASON_TWICE)
    assert told(decide(run, "retry_step", force=True)) == code


@pytest.mark.spec("RUN-2", "RUN-6", "ERR-1")
def test_every_decision_is_a_row_of_the_lifecycle_or_a_reason_of_the_catalogue() -> None:
    plans: list[dict[str, Any]] = [
        {},
        {"is_work_done": True},
        {"step_ids": ()},
        {"current_step_id": None, "done_step_ids": frozenset(STEPS)},
    ]
    signals = (None, ReplanSignal.STEP_TOO_LARGE)
    targets = (None, "S01", "S03")
    for state, plan, signal in itertools.product(RunState, plans, signals):
        run = stopped(state, **plan, replan_signal=signal)
        for mode, target, is_forced in itertools.product(ResumeMode, targets, (False, True)):
            decision = decide(run, mode, target, force=is_forced)
            if isinstance(decision, GoOn):
                assert advance(RUN_TRANSITIONS, run.state, decision.event) in ACTIVE_RUN_STATES
            elif isinstance(decision, StartAnew):
                assert advance(RUN_TRANSITIONS, run.state, RunEvent.REPLACED) is RunState.FAILED
            else:
                assert decision.reason_code in CATALOGUE
                assert decision.advice is not mode


@pytest.mark.spec("RUN-6")
def test_a_current_step_that_is_done_is_not_done_again() -> None:
    stopped = StoppedRun("RUN-1", RunState.NEEDS_INPUT, ("S01", "S02"), frozenset({"S01"}), current_step_id="S01")
    assert decide_resume(stopped, Goal(), step_retries=3) == GoOn(RunEvent.RESUMED_AT_STEP, "S02")
    finished = StoppedRun("RUN-1", RunState.NEEDS_INPUT, ("S01",), frozenset({"S01"}), current_step_id="S01")
    assert decide_resume(finished, Goal(), step_retries=3) == GoOn(RunEvent.RESUMED_AT_REPORT)


# --- the work was never found wanting: tests and review go on --------------------------------------------------------


@pytest.mark.spec("RUN-6", "RUN-10")
@pytest.mark.parametrize("target", [None, "S02"])
def test_work_that_nobody_found_wanting_is_not_done_again(target: str | None) -> None:
    assert decide(stopped(is_work_done=True), "resume", target) == GoOn(RunEvent.RESUMED_AT_TESTS, "S02")
    failed = stopped("FAILED", is_work_done=True)
    assert decide(failed, "resume", target, force=True) == GoOn(RunEvent.RESUMED_AT_TESTS, "S02")


@pytest.mark.spec("RUN-6")
def test_retry_step_and_replan_do_it_again_all_the_same() -> None:
    run = stopped(is_work_done=True)
    assert decide(run, "retry_step") == GoOn(RunEvent.RESUMED_AT_STEP, "S02", is_from_start=True)
    assert decide(run, "replan") == StartAnew(replaces="RUN-1")


@pytest.mark.spec("RUN-6")
@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"current_step_id": None}, GoOn(RunEvent.RESUMED_AT_STEP, "S02")),
        ({"current_step_id": "S01"}, GoOn(RunEvent.RESUMED_AT_STEP, "S02")),
        ({"current_step_id": "S09"}, GoOn(RunEvent.RESUMED_AT_STEP, "S02")),
        ({"done_step_ids": frozenset(STEPS)}, GoOn(RunEvent.RESUMED_AT_REPORT)),
        ({"step_ids": ()}, GoOn(RunEvent.RESUMED_AT_PLANNING)),
    ],
)
def test_only_the_step_in_which_the_run_stopped_has_work_to_test(fields: dict[str, Any], expected: GoOn) -> None:
    assert decide(stopped(is_work_done=True, **fields)) == expected
