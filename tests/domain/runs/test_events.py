"""What happens to a run (RUN-2 to RUN-6, RUN-10, RUN-11, RUN-14): every recording function, and any sequence of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.call import Feedback
from aiflow.domain.agents.plan import PlanStep
from aiflow.domain.details import detail
from aiflow.domain.lifecycle import RUN_TRANSITIONS, RunEvent, RunState
from aiflow.domain.reasons import CATALOGUE
from aiflow.domain.runs.events import (
    asked,
    attempt_failed,
    called,
    crashed,
    failure,
    implemented,
    left,
    measured,
    noted,
    planned,
    prepared,
    rebased,
    replaced,
    reported,
    reviewed,
    step_done,
    stopped,
    told_of,
)
from aiflow.domain.runs.events import tested as passed_tests
from aiflow.domain.runs.events import testing as begun_tests
from aiflow.domain.runs.next_move import Action, CallRole, next_action
from aiflow.domain.runs.quota import QuotaWait
from aiflow.domain.runs.resume import Goal, GoOn, Refused, ResumeMode, decide_resume
from aiflow.domain.runs.resume_events import delivered_again, recovered, resumed
from aiflow.domain.runs.retry import NOT_THE_WORK, StepStop
from aiflow.domain.runs.run import Happening, Run, RunError, Visit
from aiflow.domain.runs.run_limits import RunLimits
from aiflow.domain.runs.step_record import StepRecord, footprint_of
from aiflow.domain.runs.step_work import StepWork
from aiflow.domain.runs.stopped import as_stopped, recommended
from aiflow.domain.runs.worktree import Changes, FileChange, Unfinished
from aiflow.errors import TransitionError
from run_builders import (
    CHANGES,
    EVERY_STATE,
    LIMITS,
    PLAN,
    at,
    done,
    fail,
    in_report,
    in_review,
    in_step,
    in_tests,
    new_run,
    planning,
    ready_to_commit,
    why,
)

PLANNER, IMPLEMENTER, QA = Role
AT_STEP = GoOn(RunEvent.RESUMED_AT_STEP, "S02")
FROM_START = GoOn(RunEvent.RESUMED_AT_STEP, "S02", is_from_start=True)


def last(run: Run) -> Happening:
    return run.history[-1]


def stop(run: Run, code: str = "UNIT_TEST_FAILED", **fields: Any) -> Run:
    return stopped(run, replace(why(code), **fields), at(40))


# --- the usual way ---------------------------------------------------------------------------------------------------


@pytest.mark.spec("RUN-2")
def test_a_prepared_run_begins_to_plan_and_one_prepared_again_goes_on() -> None:
    run = prepared(new_run(), at(1))
    assert (run.state, run.is_prepared, last(run)) == (RunState.PLANNING, True, Happening(at(1), "PLANNING_STARTED"))
    for before in list(EVERY_STATE.values())[1:]:
        again = prepared(replace(before, is_prepared=False), at(50))
        assert again == replace(before, is_prepared=True)


@pytest.mark.spec("RUN-14")
@pytest.mark.parametrize(("run", "role"), [(planning(), PLANNER), (in_step(2), IMPLEMENTER), (in_review(2), QA)])
def test_a_call_is_counted_before_it_is_made(run: Run, role: Role) -> None:
    def total(run: Run) -> int:
        return run.planning_calls if role is PLANNER else run.work.calls.get(role, 0)

    before = total(run)
    once = called(run, role)
    assert (once.calls_of(role), total(once), once.visit.calling) == (1, before + 1, role)
    twice = called(once, role)
    assert (twice.calls_of(role), total(twice)) == (2, before + 2)
    assert (twice.state, twice.history) == (run.state, run.history)
    others = set(Role) - {role}
    assert [twice.calls_of(other) for other in others] == [run.calls_of(other) for other in others]


@pytest.mark.spec("RUN-3")
def test_new_work_is_neither_tested_nor_reviewed() -> None:
    visit = called(ready_to_commit(in_step()), IMPLEMENTER).visit
    assert (visit.is_tested, visit.is_reviewed) == (False, False)
    assert called(in_review(), QA).visit.is_tested


@pytest.mark.spec("RUN-2")
def test_a_plan_begins_with_its_first_step_on_the_base() -> None:
    run = planned(called(planning(), PLANNER), PLAN, at(2))
    assert (run.state, run.plan, run.current_step_id, last(run).event) == ("IMPLEMENTING", PLAN, "S01", "PLANNED")
    assert (run.steps, run.visit, run.planning_calls) == ({"S01": StepWork(base="base")}, Visit(), 1)


@pytest.mark.spec("RUN-3", "RUN-5")
def test_the_implementers_work_is_measured_and_goes_to_the_tests() -> None:
    run = called(in_step(), IMPLEMENTER)
    after = implemented(run, CHANGES, "did it", at(3))
    assert (after.state, last(after)) == (RunState.TESTING, Happening(at(3), "IMPLEMENTED", "S01"))
    assert (after.visit.changed_files, after.visit.changed_lines, after.visit.areas) == (2, 5, frozenset({"src", ""}))
    assert (after.visit.calling, after.visit.summary) == (None, "did it")
    assert measured(run, CHANGES).visit == replace(after.visit, calling=IMPLEMENTER, summary="")


@pytest.mark.spec("RUN-1", "RUN-3")
def test_tests_are_counted_and_passing_them_changes_no_state() -> None:
    run = begun_tests(begun_tests(in_tests()))
    assert run.work.calls == {"implementer": 1, "tests": 2}
    assert (passed_tests(run).visit.is_tested, passed_tests(run).history) == (True, run.history)
    review = reviewed(called(passed_tests(run), QA))
    assert (review.visit.is_reviewed, review.visit.calling, review.state) == (True, None, RunState.TESTING)


@pytest.mark.spec("RUN-3")
def test_a_finished_step_leads_to_the_next_one_on_top_of_it() -> None:
    run = step_done(ready_to_commit(in_step()), "abc", at(5))
    assert run.steps["S01"] == StepWork(
        "base",
        "abc",
        is_done=True,
        summary="did it",
        calls={"implementer": 1, "tests": 1, "qa": 1},
        tested_at=(at(2),),
        record=StepRecord(footprint_of(CHANGES)),
    )
    assert (run.state, run.current_step_id, run.steps["S02"], run.visit) == (
        RunState.IMPLEMENTING,
        "S02",
        StepWork(base="abc"),
        Visit(),
    )
    assert last(run) == Happening(at(5), "STEP_DONE", "S01")


@pytest.mark.spec("RUN-3")
def test_a_step_that_changed_nothing_is_done_without_a_commit_and_noted() -> None:
    run = step_done(ready_to_commit(in_step(2)), None, at(5))
    assert (run.steps["S02"].is_done, run.steps["S02"].commit) == (True, None)
    assert (run.step_base, last(run).note) == ("commit-1", "no changes")


@pytest.mark.spec("RUN-2")
def test_the_last_step_leads_to_the_report_and_the_report_to_done() -> None:
    run = in_report()
    assert (run.state, run.current_step_id, last(run).event) == (RunState.REPORTING, "S03", "STEP_DONE")
    assert (run.tip, run.visit) == ("commit-3", Visit())
    run = reported(replace(run, error=why()), at(21))
    assert (run.state, run.error, last(run).event) == (RunState.DONE, None, "REPORTED")


@pytest.mark.spec("RUN-3")
def test_a_finished_step_keeps_nothing_unfinished() -> None:
    run = ready_to_commit(left(in_step(), Unfinished("tree", "wip", b"")))
    assert run.work.kept == "wip"
    assert step_done(run, "abc", at(5)).steps["S01"].kept is None


# --- RUN-4: a role is called at most twice in one visit ---------------------------------------------------------------


class Sequence(NamedTuple):
    """What happens in one visit of a step: `i` and `q` are calls, the code behind is its failure, if it fails."""

    limit: int
    happens: str
    state: str
    code: str | None = None
    cause: str | None = None


def play(sequence: Sequence) -> Run:
    limits = RunLimits(role_attempts=sequence.limit)
    run = in_step(2)
    for word in sequence.happens.split():
        who, _, code = word.partition(":")
        role = {"i": IMPLEMENTER, "t": IMPLEMENTER, "q": QA, "r": QA}[who]
        expected = {"i": CallRole(IMPLEMENTER), "t": Action.TEST, "q": CallRole(QA), "r": CallRole(QA)}[who]
        assert next_action(run, limits) == expected, (sequence, word)
        run = begun_tests(run) if who == "t" else called(run, role)
        if who == "r":  # rejected: the implementer's failure
            run = attempt_failed(run, IMPLEMENTER, why("QA_REJECTED"), limits, at(30))
        elif code:
            run = attempt_failed(run, role, why(code), limits, at(30))
        else:
            run = {"i": lambda r: implemented(r, CHANGES, "", at(30)), "t": passed_tests, "q": reviewed}[who](run)
    return run


@pytest.mark.spec("RUN-4")
@pytest.mark.parametrize(
    "sequence",
    [
        # one failure: tried again, with it as feedback
        Sequence(2, "i:AGENT_FAILED", "IMPLEMENTING"),
        Sequence(2, "i t:UNIT_TEST_FAILED", "IMPLEMENTING"),
        Sequence(2, "i t r", "IMPLEMENTING"),
        Sequence(2, "i t q:JSON_PARSE_ERROR", "TESTING"),
        # both for the same reason: the limit, and its cause
        Sequence(2, "i:AGENT_FAILED i:AGENT_FAILED", "NEEDS_INPUT", "RETRY_LIMIT_EXCEEDED", "AGENT_FAILED"),
        Sequence(
            2, "i t:UNIT_TEST_FAILED i t:UNIT_TEST_FAILED", "NEEDS_INPUT", "RETRY_LIMIT_EXCEEDED", "UNIT_TEST_FAILED"
        ),
        Sequence(2, "i t r i t r", "NEEDS_INPUT", "RETRY_LIMIT_EXCEEDED", "QA_REJECTED"),
        Sequence(
            2,
            "i t q:JSON_PARSE_ERROR q:JSON_PARSE_ERROR",
            "NEEDS_INPUT",
            "RETRY_LIMIT_EXCEEDED",
            "JSON_PARSE_ERROR",
        ),
        # for different reasons: the last one itself
        Sequence(2, "i:AGENT_FAILED i:AGENT_TIMEOUT", "NEEDS_INPUT", "AGENT_TIMEOUT"),
        Sequence(2, "i t:UNIT_TEST_FAILED i t r", "NEEDS_INPUT", "QA_REJECTED"),
        Sequence(2, "i t r i t:UNIT_TEST_FAILED", "NEEDS_INPUT", "UNIT_TEST_FAILED"),
        Sequence(2, "i t q:AGENT_FAILED q:JSON_PARSE_ERROR", "NEEDS_INPUT", "JSON_PARSE_ERROR"),
        # the second call heals the first
        Sequence(2, "i:AGENT_FAILED i t q", "TESTING"),
        Sequence(2, "i t:UNIT_TEST_FAILED i t q", "TESTING"),
        Sequence(2, "i t q:AGENT_TIMEOUT q", "TESTING"),
        Sequence(2, "i t r i t q", "TESTING"),
        # a reviewer without a call left could not look at what would be mended
        Sequence(2, "i t q:JSON_PARSE_ERROR r", "NEEDS_INPUT", "QA_REJECTED"),
        Sequence(3, "i t q:JSON_PARSE_ERROR r", "IMPLEMENTING"),
        Sequence(1, "i t r", "NEEDS_INPUT", "QA_REJECTED"),
        # other limits
        Sequence(1, "i:AGENT_FAILED", "NEEDS_INPUT", "AGENT_FAILED"),
        Sequence(3, "i:AGENT_FAILED i:AGENT_FAILED", "IMPLEMENTING"),
        Sequence(
            3,
            "i:AGENT_FAILED i:AGENT_FAILED i:AGENT_FAILED",
            "NEEDS_INPUT",
            "RETRY_LIMIT_EXCEEDED",
            "AGENT_FAILED",
        ),
        Sequence(3, "i:AGENT_FAILED i:AGENT_TIMEOUT i:AGENT_FAILED", "NEEDS_INPUT", "AGENT_FAILED"),
        # what another call cannot mend stops at once
        Sequence(2, "i:STEP_TOO_LARGE", "NEEDS_INPUT", "STEP_TOO_LARGE"),
        Sequence(2, "i:AGENT_NOT_FOUND", "NEEDS_INPUT", "AGENT_NOT_FOUND"),
        Sequence(2, "i:AGENT_PERMISSION_DENIED", "NEEDS_INPUT", "AGENT_PERMISSION_DENIED"),
        Sequence(2, "i:DISK_FULL", "NEEDS_INPUT", "DISK_FULL"),
        Sequence(2, "i:INTERNAL_ERROR", "FAILED", "INTERNAL_ERROR"),
    ],
    ids=lambda sequence: f"{sequence.limit} {sequence.happens}",
)
def test_a_role_has_two_calls_in_a_visit(sequence: Sequence) -> None:
    run = play(sequence)
    assert run.state == sequence.state
    assert (run.error.reason_code if run.error else None) == sequence.code
    assert (run.error.cause if run.error else None) == sequence.cause


@pytest.mark.spec("RUN-4")
@pytest.mark.parametrize("codes", [("JSON_PARSE_ERROR",) * 2, ("AGENT_TIMEOUT", "JSON_SCHEMA_INVALID")])
def test_the_planner_has_two_calls_of_planning(codes: tuple[str, str]) -> None:
    run = fail(called(planning(), PLANNER), codes[0], PLANNER)
    assert (run.state, last(run).event, last(run).reason_code) == (RunState.PLANNING, "ATTEMPT_FAILED", codes[0])
    run = fail(called(run, PLANNER), codes[1], PLANNER)
    assert run.error is not None
    same = codes[0] == codes[1]
    expected = ("RETRY_LIMIT_EXCEEDED", codes[1]) if same else (codes[1], None)
    assert (run.error.reason_code, run.error.cause, run.planning_calls) == (*expected, 2)
    assert (run.state, run.current_step_id) == (RunState.NEEDS_INPUT, None)


@pytest.mark.spec("RUN-4")
def test_the_second_call_gets_the_firsts_failure_as_feedback() -> None:
    told = why("UNIT_TEST_FAILED", "2 failed", stderr_snippet="E  assert 1 == 2")
    run = attempt_failed(in_tests(), IMPLEMENTER, told, LIMITS, at(11))
    assert run.visit.feedback == (Feedback("UNIT_TEST_FAILED", "2 failed", "E  assert 1 == 2"),)
    assert (run.visit.failures, run.visit.calling) == ({"implementer": ("UNIT_TEST_FAILED",)}, None)
    assert last(run) == Happening(at(11), "ATTEMPT_FAILED", "S01", "UNIT_TEST_FAILED", "2 failed")
    run = attempt_failed(called(in_review(), QA), QA, why("JSON_PARSE_ERROR"), LIMITS, at(12))
    assert (last(run).event, run.visit.is_tested) == ("REVIEW_FAILED", True)
    rejected = attempt_failed(called(run, QA), IMPLEMENTER, why("QA_REJECTED"), RunLimits(3), at(13))
    assert rejected.visit.failures == {"qa": ("JSON_PARSE_ERROR",), "implementer": ("QA_REJECTED",)}
    assert [told.reason_code for told in rejected.visit.feedback] == ["JSON_PARSE_ERROR", "QA_REJECTED"]


@pytest.mark.spec("RUN-3", "RUN-4")
def test_of_a_failed_command_the_beginning_and_the_end_are_told_and_of_findings_nothing_but_them() -> None:
    red = replace(why("UNIT_TEST_FAILED", "2 failed", stderr_snippet="the end"), output="the beginning … the end")
    found = why("QA_REJECTED", "a.py: it says 1", stderr_snippet="I looked at a.py and thought")
    assert told_of(red) == Feedback("UNIT_TEST_FAILED", "2 failed", "the beginning … the end")
    assert told_of(found) == Feedback("QA_REJECTED", "a.py: it says 1", "")
    stopped_for = replace(found, reason_code="RETRY_LIMIT_EXCEEDED", cause="QA_REJECTED")
    assert told_of(stopped_for) == Feedback("QA_REJECTED", "a.py: it says 1", "")


# --- RUN-10: a question ----------------------------------------------------------------------------------------------


@pytest.mark.spec("RUN-4", "RUN-10")
@pytest.mark.parametrize(("before", "role"), [(planning(), PLANNER), (in_step(2), IMPLEMENTER), (in_review(2), QA)])
def test_a_question_stops_the_run_and_is_no_attempt(before: Run, role: Role) -> None:
    question = RunError("NEEDS_CLARIFICATION", "Which?", question="Which?")
    run = asked(called(before, role), role, question, at(11))
    assert (run.state, run.stopped_in) == (RunState.NEEDS_INPUT, before.state)
    assert (run.calls_of(role), run.planning_calls) == (before.calls_of(role), before.planning_calls)
    assert {i: {k: n for k, n in w.calls.items() if n} for i, w in run.steps.items()} == {
        i: dict(w.calls) for i, w in before.steps.items()
    }
    assert run.visit.calling is None
    assert run.error is not None
    assert run.error.question == "Which?"


@pytest.mark.spec("RUN-10")
def test_the_answer_reaches_the_run_with_its_question_and_no_feedback() -> None:
    run = asked(called(in_step(2), IMPLEMENTER), IMPLEMENTER, RunError("NEEDS_CLARIFICATION", "?", question="?"), at(5))
    run = resumed(run, AT_STEP, "Yes.", at(6))
    assert (run.answers, run.visit.feedback, run.error) == ((("?", "Yes."),), (), None)
    run = resumed(stop(run), AT_STEP, "And no question.", at(7))
    assert run.answers == (("?", "Yes."), ("", "And no question."))
    assert resumed(stop(run), AT_STEP, None, at(8)).answers == run.answers


@pytest.mark.spec("RUN-5", "RUN-10")
def test_questions_do_not_ask_for_a_new_plan() -> None:
    run = in_step(2)
    for _ in range(5):
        run = asked(called(run, IMPLEMENTER), IMPLEMENTER, RunError("NEEDS_CLARIFICATION", "?", question="?"), at(5))
        assert as_stopped(run, None).replan_signal is None
        run = resumed(run, AT_STEP, "!", at(6))


# --- another delivery ------------------------------------------------------------------------------------------------


@pytest.mark.spec("RUN-14", "QUE-7")
def test_another_delivery_stays_in_the_same_visit() -> None:
    """A new claim sets nothing back: not the attempts, what failed in them, the crashes, or how long a quota took."""
    quota = QuotaWait(at(1), at(2), is_over=True)
    run = attempt_failed(called(in_step(2), IMPLEMENTER), IMPLEMENTER, why("JSON_PARSE_ERROR"), LIMITS, at(3))
    run = replace(run, quota=quota, visit=replace(run.visit, crashes=1))
    cut = stop(called(run, IMPLEMENTER), "RUNNER_STOPPED")
    again = delivered_again(cut, AT_STEP, at(6))
    assert (again.state, again.error, again.stopped_in) == (RunState.IMPLEMENTING, None, None)
    assert again.visit.calls == {"implementer": 2}
    assert again.visit.failures == {"implementer": ("JSON_PARSE_ERROR", "RUNNER_STOPPED")}
    assert [each.reason_code for each in again.visit.feedback] == ["JSON_PARSE_ERROR"]
    assert (again.visit.calling, again.visit.crashes, again.quota) == (None, 1, quota)
    person = resumed(cut, AT_STEP, None, at(6))
    assert (person.visit.calls, person.quota) == ({}, None)


# --- stops -----------------------------------------------------------------------------------------------------------


@pytest.mark.spec("RUN-2", "ERR-1")
@pytest.mark.parametrize("before", EVERY_STATE.values(), ids=EVERY_STATE)
def test_every_reason_stops_a_working_run_as_the_catalogue_says(before: Run) -> None:
    for code, reason in CATALOGUE.items():
        run = stop(before, code)
        assert run.state is (reason.stops_as or RunState.FAILED), code
        assert (run.stopped_in, last(run).event, last(run).reason_code) == (before.state, run.state, code)
    unknown = stop(before, "NO_SUCH_CODE")
    assert unknown.state is RunState.FAILED


@pytest.mark.spec("RUN-1")
def test_a_stop_says_where_it_was_seen() -> None:
    run = stop(in_tests(2))
    assert run.error is not None
    assert (run.error.evidence.failed_at_state, run.error.evidence.step_id) == ("TESTING", "S02")
    told = why("AGENT_FAILED", failed_at_state="IMPLEMENTING", step_id="S01", command="x", exit_code=3)
    kept = stopped(in_tests(2), told, at(12))
    assert kept.error == told
    planner = stop(planning(), "AGENT_FAILED").error
    assert planner is not None
    assert (planner.evidence.failed_at_state, planner.evidence.step_id) == ("PLANNING", None)


@pytest.mark.spec("RUN-1")
def test_a_stop_is_in_the_history_with_its_cause_or_its_summary() -> None:
    assert last(stop(in_tests(), summary="x")).note == "x"
    assert last(stop(in_tests(), summary="x", cause="QA_REJECTED")).note == "QA_REJECTED"
    assert last(stop(in_tests(), summary="")).note is None


@pytest.mark.spec("RUN-5")
def test_a_step_remembers_where_it_stopped_and_how_much_it_had_changed() -> None:
    run = stop(in_tests(2), "RETRY_LIMIT_EXCEEDED", cause="QA_REJECTED")
    assert run.work.stops == (StepStop("RETRY_LIMIT_EXCEEDED", "QA_REJECTED", 5, frozenset({"src", ""})),)
    again = stop(resumed(run, AT_STEP, None, at(41)))
    assert again.work.stops[1:] == (StepStop("UNIT_TEST_FAILED"),)
    for before in (planning(), in_report()):
        assert all(work.stops == () for work in stop(before).steps.values())


@pytest.mark.spec("RUN-2")
@pytest.mark.parametrize("ended", [done(), stop(in_tests()), stop(in_tests(), "INTERNAL_ERROR")])
def test_what_has_ended_neither_stops_nor_goes_on_by_itself(ended: Run) -> None:
    attempts: list[Any] = [
        lambda: stop(ended),
        lambda: crashed(ended, at(50)),
        lambda: recovered(ended, LIMITS, at(50)),
        lambda: reported(ended, at(50)),
        lambda: planned(ended, PLAN, at(50)),
        lambda: implemented(ended, CHANGES, "", at(50)),
        lambda: fail(ended, "UNIT_TEST_FAILED"),
        lambda: step_done(ended, "abc", at(50)),
    ]
    for attempt in attempts:
        with pytest.raises(TransitionError):
            attempt()


@pytest.mark.spec("RUN-6")
def test_done_goes_on_only_in_a_step_that_merges_the_base_in() -> None:
    for event in (RunEvent.RESUMED_AT_PLANNING, RunEvent.RESUMED_AT_REPORT, RunEvent.REPLACED):
        with pytest.raises(TransitionError):
            resumed(done(), GoOn(event, "S01"), None, at(50))


@pytest.mark.spec("RUN-7")
def test_what_a_step_left_is_known_again() -> None:
    run = left(stop(in_tests(2)), Unfinished("tree", "wip", b"patch"))
    assert (run.left_tree, run.work.kept) == ("tree", "wip")
    nothing = left(run, None)
    assert (nothing.left_tree, nothing.work.kept) == (None, "wip")
    early = left(stop(planning()), Unfinished("tree", "wip", b""))
    assert (early.left_tree, early.steps) == ("tree", {})


@pytest.mark.spec("RUN-7")
def test_a_persons_commit_becomes_the_base_of_the_current_step() -> None:
    run = rebased(stop(in_tests(2)), "theirs")
    assert (run.step_base, run.steps["S01"].base) == ("theirs", "base")


@pytest.mark.spec("RUN-6")
@pytest.mark.parametrize("before", [stop(in_tests()), stop(in_tests(), "INTERNAL_ERROR"), stop(planning())])
def test_a_replaced_run_is_failed_and_names_the_other(before: Run) -> None:
    run = replaced(before, "RUN-9", at(50))
    assert (run.state, run.replaced_by, last(run)) == (
        RunState.FAILED,
        "RUN-9",
        Happening(at(50), "REPLACED", before.current_step_id, "REPLANNED", "RUN-9"),
    )
    assert run.error is not None
    assert before.error is not None
    assert (run.error.reason_code, run.error.cause) == ("REPLANNED", before.error.reason_code)


@pytest.mark.spec("LCK-5", "RUN-1")
def test_what_is_noted_changes_no_state() -> None:
    run = in_step(2)
    after = noted(run, "LOCK_RECLAIMED", at(5), "LOCK_STALE_RECOVERED", "pid 5")
    assert after == replace(
        run, history=(*run.history, Happening(at(5), "LOCK_RECLAIMED", "S02", "LOCK_STALE_RECOVERED", "pid 5"))
    )


@pytest.mark.spec("RUN-1")
def test_a_failure_knows_where_it_was_seen() -> None:
    told = failure(in_tests(2), "UNIT_TEST_FAILED", "x", command="make test", exit_code=2, log_paths=("a.log",))
    assert (told.evidence.failed_at_state, told.evidence.step_id, told.evidence.exit_code) == ("TESTING", "S02", 2)
    assert (told.evidence.command, told.evidence.log_paths) == ("make test", ("a.log",))


# --- RUN-11: crashes -------------------------------------------------------------------------------------------------


@pytest.mark.spec("RUN-11")
@pytest.mark.parametrize("before", EVERY_STATE.values(), ids=EVERY_STATE)
def test_a_crash_is_recovered_once_and_a_second_one_stops(before: Run) -> None:
    once = recovered(before, LIMITS, at(50))
    assert (once.state, last(once).event, last(once).reason_code) == (before.state, "RECOVERED", "PROCESS_CRASHED")
    twice = recovered(once, LIMITS, at(51))
    assert twice.error is not None
    assert (twice.state, twice.error.reason_code) == (RunState.NEEDS_INPUT, "PROCESS_CRASHED")


@pytest.mark.spec("RUN-11", "RUN-14")
@pytest.mark.parametrize(("before", "role"), [(planning(), PLANNER), (in_step(2), IMPLEMENTER), (in_review(2), QA)])
def test_a_call_that_was_lost_in_a_crash_stays_counted(before: Run, role: Role) -> None:
    run = recovered(called(before, role), LIMITS, at(50))
    assert (run.calls_of(role), run.visit.calling) == (1, None)
    assert run.visit.failures == {role: ("PROCESS_CRASHED",)}
    assert next_action(run, LIMITS) == CallRole(role)
    run = fail(called(run, role), "AGENT_FAILED", role)
    assert run.error is not None
    assert (run.error.reason_code, run.error.cause) == ("AGENT_FAILED", None)


@pytest.mark.spec("RUN-4", "RUN-11")
def test_a_crash_in_a_roles_last_call_leaves_none() -> None:
    run = called(fail(called(in_step(2), IMPLEMENTER), "AGENT_FAILED"), IMPLEMENTER)
    run = recovered(run, LIMITS, at(50))
    assert run.error is not None
    assert (run.state, run.error.reason_code, run.calls_of(IMPLEMENTER)) == (RunState.NEEDS_INPUT, "PROCESS_CRASHED", 2)


@pytest.mark.spec("RUN-11")
def test_crashes_are_counted_by_the_step() -> None:
    run = recovered(in_step(1), LIMITS, at(50))
    run = step_done(ready_to_commit(run), "abc", at(51))
    assert recovered(run, LIMITS, at(52)).is_active
    resumed_run = resumed(crashed(recovered(run, LIMITS, at(52)), at(53)), AT_STEP, None, at(54))
    assert recovered(resumed_run, LIMITS, at(55)).is_active


@pytest.mark.spec("RUN-11", "RUN-3")
def test_after_a_crash_nothing_that_was_tested_or_reviewed_is_forgotten() -> None:
    before = ready_to_commit(in_step(2))
    after = recovered(before, LIMITS, at(50))
    assert after.visit == replace(before.visit, crashes=1)
    assert (after.steps, after.plan, after.current_step_id) == (before.steps, before.plan, "S02")


# --- RUN-6: resume, retry_step ---------------------------------------------------------------------------------------


@pytest.mark.spec("RUN-4", "RUN-6")
def test_a_persons_resume_begins_a_new_visit_and_resets_no_total() -> None:
    run = fail(called(fail(called(in_step(2), IMPLEMENTER), "AGENT_FAILED"), IMPLEMENTER), "AGENT_TIMEOUT")
    again = resumed(run, AT_STEP, None, at(50))
    assert (again.state, again.error, again.stopped_in) == (RunState.IMPLEMENTING, None, None)
    assert (again.calls_of(IMPLEMENTER), again.work.calls["implementer"]) == (0, 2)
    assert again.work == run.work
    assert again.visit == Visit(feedback=(Feedback("AGENT_TIMEOUT", "2 tests failed"),))
    assert last(again) == Happening(at(50), "RESUMED_AT_STEP", "S02", None, "resume")


@pytest.mark.spec("RUN-6")
def test_the_feedback_names_the_cause_behind_a_limit() -> None:
    run = stop(in_tests(2), "RETRY_LIMIT_EXCEEDED", cause="UNIT_TEST_FAILED")
    assert resumed(run, AT_STEP, None, at(50)).visit.feedback[0].reason_code == "UNIT_TEST_FAILED"


@pytest.mark.spec("RUN-12", "QUE-7", "QUE-10")
@pytest.mark.parametrize("code", ["CANCELLED", "RUNNER_STOPPED", "RUNNER_LOST", "STORE_UNREACHABLE"])
def test_an_end_from_outside_is_no_failure_that_the_next_call_is_told(code: str) -> None:
    assert resumed(stop(in_tests(2), code), AT_STEP, None, at(50)).visit.feedback == ()


@pytest.mark.spec("RUN-6")
def test_resume_keeps_what_the_unfinished_step_left_and_retry_step_does_not() -> None:
    run = left(stop(in_tests(2)), Unfinished("tree", "wip", b""))
    resume = resumed(run, AT_STEP, None, at(50))
    assert (resume.left_tree, resume.work.kept, resume.work.restarts) == ("tree", "wip", 0)
    retry = resumed(run, FROM_START, None, at(50))
    assert (retry.left_tree, retry.work.kept, retry.work.restarts, retry.work.base) == (None, None, 1, "commit-1")
    assert (last(retry).event, last(retry).note) == ("RESUMED_AT_STEP", "retry_step")


@pytest.mark.spec("RUN-4")
@pytest.mark.parametrize("way", [AT_STEP, FROM_START])
def test_what_failed_is_counted_when_it_is_done_again_and_nothing_else(way: GoOn) -> None:
    run = stop(in_tests(2))
    assert resumed(run, way, None, at(50)).work.retries == 0
    again = resumed(run, replace(way, is_again=True), None, at(50))
    assert (again.work.retries, again.planning_retries) == (1, 0)
    planning = stop(prepared(new_run(), at(1)), "JSON_PARSE_ERROR")
    for number in (1, 2):
        way_back = decide_resume(as_stopped(planning, None), Goal(), 3)
        assert isinstance(way_back, GoOn)
        planning = stop(resumed(planning, way_back, None, at(50)), "JSON_PARSE_ERROR")
        assert planning.planning_retries == number


@pytest.mark.spec("RUN-4", "RUN-8")
@pytest.mark.parametrize(
    ("code", "way"), [("UNIT_TEST_FAILED", "retry_step"), ("CANCELLED", "resume"), ("DISK_FULL", "resume")]
)
def test_replan_is_recommended_as_soon_as_what_failed_may_not_be_done_again(code: str, way: str) -> None:
    run = stop(in_tests(2), code)
    assert recommended(run) == way
    tried = replace(run, steps={**run.steps, "S02": replace(run.work, retries=3)})
    assert recommended(tried) == ("replan" if code == "UNIT_TEST_FAILED" else way)
    assert recommended(replace(tried, step_retries=4)) == way


@pytest.mark.spec("RUN-6")
def test_retry_of_an_earlier_step_undoes_it_and_every_later_one() -> None:
    run = stop(in_tests(3))
    again = resumed(run, GoOn(RunEvent.RESUMED_AT_STEP, "S01", is_from_start=True), None, at(50))
    assert (again.state, again.current_step_id, again.tip) == (RunState.IMPLEMENTING, "S01", "base")
    first, second, third = (again.steps[step_id] for step_id in ("S01", "S02", "S03"))
    assert (first.is_done, first.commit, first.restarts, first.base) == (False, None, 1, "base")
    for work in (second, third):
        assert (work.is_done, work.commit, work.base, work.kept, work.restarts) == (False, None, None, None, 0)
    assert third.stops == run.steps["S03"].stops
    assert [work.calls for work in again.steps.values()] == [work.calls for work in run.steps.values()]


@pytest.mark.spec("RUN-6", "RUN-10")
def test_resuming_at_the_tests_keeps_the_work_and_what_was_tested() -> None:
    way = GoOn(RunEvent.RESUMED_AT_TESTS, "S02")
    for before, action in ((in_tests(2), Action.TEST), (in_review(2), CallRole(QA))):
        run = resumed(stop(before, "CANCELLED"), way, None, at(50))
        assert run.state is RunState.TESTING
        assert next_action(run, LIMITS) == action
        assert (run.visit.changed_lines, run.visit.areas, run.visit.summary) == (5, frozenset({"src", ""}), "did it")
        assert run.calls_of(IMPLEMENTER) == 0
    assert resumed(stop(in_review(2), "CANCELLED"), AT_STEP, None, at(50)).visit == Visit()


@pytest.mark.spec("RUN-6")
def test_resuming_at_planning_and_at_the_report() -> None:
    run = resumed(stop(planning()), GoOn(RunEvent.RESUMED_AT_PLANNING), None, at(50))
    assert (run.state, run.current_step_id, run.plan) == (RunState.PLANNING, None, ())
    run = resumed(stop(in_report(), "DISK_FULL"), GoOn(RunEvent.RESUMED_AT_REPORT), None, at(50))
    assert (run.state, next_action(run, LIMITS)) == (RunState.REPORTING, Action.REPORT)
    assert reported(run, at(51)).state is RunState.DONE


@pytest.mark.spec("RUN-6", "GIT-1")
def test_the_branch_of_a_run_that_only_has_to_report_stands_at_its_last_commit() -> None:
    run = resumed(stop(in_report(), "DISK_FULL"), GoOn(RunEvent.RESUMED_AT_REPORT), None, at(50))
    assert run.tip == "commit-3"


# --- any sequence ----------------------------------------------------------------------------------------------------

FAILURES = st.sampled_from(
    ["AGENT_FAILED", "AGENT_TIMEOUT", "JSON_PARSE_ERROR", "STEP_TOO_LARGE", "DISK_FULL", "AGENT_NOT_FOUND"]
)
TEST_FAILURES = st.sampled_from(["UNIT_TEST_FAILED", "E2E_TEST_FAILED", "TEST_TIMEOUT"])
MODES = st.sampled_from([ResumeMode.RESUME, ResumeMode.RETRY_STEP])


def totals(run: Run) -> dict[tuple[str, str], int]:
    """How often each role was called in all, by step."""
    steps = {(step, what): count for step, work in run.steps.items() for what, count in work.calls.items()}
    return {("", "planner"): run.planning_calls, **steps}


class AnyRun(RuleBasedStateMachine):
    """Whatever happens to a run, by the engine, by crashes and by a person, the limits and the table hold."""

    def __init__(self) -> None:
        super().__init__()
        self.run = new_run()
        self.limits = LIMITS
        self.minutes = 0

    @initialize(attempts=st.integers(1, 3), steps=st.integers(1, 3))
    def begin(self, attempts: int, steps: int) -> None:
        self.limits = RunLimits(role_attempts=attempts, step_retries=2)
        self.forced = 0
        self.plan = tuple(PlanStep(f"S{number:02d}", "x") for number in range(1, steps + 1))

    def now(self) -> Any:
        self.minutes += 1
        return at(self.minutes)

    def record(self, run: Run, *, is_question: bool = False, is_retry: bool = False) -> None:
        """Take the next state of the run, and check what must hold from one to the next."""
        before, self.run = self.run, run
        assert run.history[: len(before.history)] == before.history
        fresh = run.history[len(before.history) :]
        state = before.state
        for line in fresh:
            event = RunEvent(line.event)
            if event is RunEvent.STEP_DONE and line.step_id == run.plan[-1].id:  # the history has one name for all
                event = RunEvent.LAST_STEP_DONE
            state = RUN_TRANSITIONS[state, event]
        assert run.state is state
        fallen = {key for key, count in totals(before).items() if totals(run).get(key, 0) < count}
        assert not fallen or is_question
        finished = {step for step, work in before.steps.items() if work.is_done}
        if not is_retry:
            assert all(run.steps[step].is_done for step in finished)
            assert run.current_step_id not in finished or run.current_step_id == before.current_step_id
        assert all(run.steps[step].retries >= work.retries for step, work in before.steps.items())
        assert (run.error is None) == (run.is_active or run.state is RunState.DONE)

    def is_next(self, *actions: CallRole | Action) -> bool:
        return next_action(self.run, self.limits) in actions

    # The engine performs what is next.

    @precondition(lambda self: self.is_next(Action.PREPARE))
    @rule()
    def prepare(self) -> None:
        self.record(prepared(self.run, self.now()))

    @precondition(lambda self: isinstance(next_action(self.run, self.limits), CallRole))
    @rule(outcome=st.sampled_from(["well"] * 4 + ["fails", "asks", "dies"]), code=FAILURES, rejects=st.booleans())
    def call(self, outcome: str, code: str, rejects: bool) -> None:
        action = next_action(self.run, self.limits)
        assert isinstance(action, CallRole)
        role = action.role
        self.record(called(self.run, role))
        if outcome == "dies":
            return
        if outcome == "asks":
            question = RunError("NEEDS_CLARIFICATION", "?", question="?")
            self.record(asked(self.run, role, question, self.now()), is_question=True)
        elif outcome == "fails":
            self.record(attempt_failed(self.run, role, why(code), self.limits, self.now()))
        elif role is PLANNER:
            self.record(planned(self.run, self.plan, self.now()))
        elif role is IMPLEMENTER:
            self.record(implemented(self.run, Changes((FileChange("a", self.minutes, 0),)), "", self.now()))
        elif rejects:
            self.record(attempt_failed(self.run, IMPLEMENTER, why("QA_REJECTED"), self.limits, self.now()))
        else:
            self.record(reviewed(self.run))

    @precondition(lambda self: self.is_next(Action.TEST))
    @rule(code=st.none() | TEST_FAILURES)
    def test(self, code: str | None) -> None:
        self.record(begun_tests(self.run))
        if code is None:
            self.record(passed_tests(self.run))
        else:
            self.record(attempt_failed(self.run, IMPLEMENTER, why(code), self.limits, self.now()))

    @precondition(lambda self: self.is_next(Action.COMMIT))
    @rule(commit=st.none() | st.just("abc"))
    def commit(self, commit: str | None) -> None:
        self.record(step_done(self.run, commit, self.now()))

    @precondition(lambda self: self.is_next(Action.REPORT))
    @rule()
    def report(self) -> None:
        self.record(reported(self.run, self.now()))

    @precondition(lambda self: self.is_next(Action.GIVE_UP))
    @rule()
    def give_up(self) -> None:
        self.record(crashed(self.run, self.now()))

    @precondition(lambda self: self.run.is_active)
    @rule(turns=st.integers(1, 12))
    def go_well(self, turns: int) -> None:
        """Nothing goes wrong for a while: one turn after the other, hardly any run would come out of PLANNING."""
        for _ in range(turns):
            action = next_action(self.run, self.limits)
            if isinstance(action, CallRole):
                self.call("well", "", rejects=False)
            elif action is not None:
                perform: dict[Action, Callable[[], object]] = {
                    Action.PREPARE: self.prepare,
                    Action.TEST: lambda: self.test(None),
                    Action.COMMIT: lambda: self.commit("abc"),
                    Action.REPORT: self.report,
                    Action.GIVE_UP: self.give_up,
                }
                perform[action]()

    # The process dies, a person cancels, a person lets it go on.

    @precondition(lambda self: self.run.is_active)
    @rule()
    def crash(self) -> None:
        self.record(recovered(self.run, self.limits, self.now()))

    @precondition(lambda self: self.run.is_active)
    @rule(code=st.sampled_from(["CANCELLED", "DISK_FULL", "INTERNAL_ERROR"]))
    def stop(self, code: str) -> None:
        self.record(stopped(self.run, why(code), self.now()))

    @precondition(lambda self: not self.run.is_active)
    @rule(mode=MODES, is_forced=st.booleans(), step=st.sampled_from([None, "S01"]))
    def go_on(self, mode: ResumeMode, is_forced: bool, step: str | None) -> None:
        goal = Goal(mode, step if mode is ResumeMode.RETRY_STEP else None, is_forced)
        way = decide_resume(as_stopped(self.run, None), goal, self.limits.step_retries)
        if isinstance(way, Refused):
            return
        assert isinstance(way, GoOn)
        if way.step_id is not None and not way.is_from_start:
            assert not self.run.steps.get(way.step_id, StepWork()).is_done
        self.forced += is_forced
        self.record(resumed(self.run, way, "!", self.now()), is_retry=way.is_from_start)
        assert self.run.visit.calls == {}

    # What holds at every moment.

    @invariant()
    def limits_hold(self) -> None:
        assert all(count <= self.limits.role_attempts for count in self.run.visit.calls.values())
        assert all(count >= 0 for count in totals(self.run).values())
        most = self.limits.step_retries + self.forced
        assert all(work.retries <= most for work in self.run.steps.values())
        assert self.run.planning_retries <= most
        assert self.run.visit.crashes <= 1 or not self.run.is_active

    @invariant()
    def it_stands_somewhere(self) -> None:
        run = self.run
        if run.state in (RunState.IMPLEMENTING, RunState.TESTING):
            assert run.current_step is not None
            assert not run.work.is_done
            assert all(run.steps[step.id].is_done for step in run.plan[: run.current_index])
        assert (next_action(run, self.limits) is None) == (not run.is_active)
        assert run.is_active or run.state is RunState.DONE or run.error is not None
        assert "" not in run.steps

    def teardown(self) -> None:
        """Every run ends: with every call failing, within what its limits allow."""
        run, actions = self.run, 0
        while (action := next_action(run, self.limits)) is not None:
            actions += 1
            assert actions <= 40, "the run does not end"
            run = perform_badly(run, action, self.limits, self.plan if hasattr(self, "plan") else PLAN)
        assert run.state in (RunState.DONE, RunState.NEEDS_INPUT, RunState.FAILED)


def perform_badly(run: Run, action: CallRole | Action, limits: RunLimits, plan: tuple[PlanStep, ...]) -> Run:
    """Do what is next, so that the tests fail and every reviewer rejects."""
    now = run.changed_at
    if isinstance(action, CallRole):
        run = called(run, action.role)
        if action.role is PLANNER:
            return planned(run, plan, now)
        if action.role is IMPLEMENTER:
            return implemented(run, CHANGES, "", now)
        return attempt_failed(run, IMPLEMENTER, why("QA_REJECTED"), limits, now)
    return {
        Action.PREPARE: lambda: prepared(run, now),
        Action.TEST: lambda: attempt_failed(begun_tests(run), IMPLEMENTER, why("UNIT_TEST_FAILED"), limits, now),
        Action.COMMIT: lambda: step_done(run, "abc", now),
        Action.REPORT: lambda: reported(run, now),
        Action.GIVE_UP: lambda: crashed(run, now),
    }[action]()


@pytest.mark.spec("RUN-2", "RUN-4", "RUN-6", "RUN-11", "RUN-14")
def test_whatever_happens_to_a_run_the_limits_and_the_table_hold() -> None:
    run_state_machine_as_test(AnyRun, settings=settings(max_examples=40, stateful_step_count=40, deadline=None))


@pytest.mark.spec("RUN-14")
@pytest.mark.parametrize("attempts", [1, 2, 3])
def test_a_step_that_always_fails_is_worked_on_so_often_and_not_once_more(attempts: int) -> None:
    limits = RunLimits(role_attempts=attempts, step_retries=3)
    run = in_step(2)
    modes: list[ResumeMode] = []
    while True:
        while (action := next_action(run, limits)) is not None:
            run = perform_badly(run, action, limits, PLAN)
        # The limit holds also where nothing advises to plan anew.
        stopped_run = replace(as_stopped(run, None), replan_signal=None)
        for mode in (ResumeMode.RETRY_STEP, ResumeMode.RESUME):
            way = decide_resume(stopped_run, Goal(mode), 3)
            if isinstance(way, GoOn):
                break
        if isinstance(way, Refused):
            break
        assert isinstance(way, GoOn)
        modes.append(mode)
        run = resumed(run, way, None, at(60))
    assert modes == [ResumeMode.RETRY_STEP] * 3
    assert run.work.calls["implementer"] == attempts * 4
    told = detail("refused.retried", step_id="S02", count=3, limit=3)
    assert way == Refused("RETRY_LIMIT_EXCEEDED", told, ResumeMode.REPLAN)
    assert NOT_THE_WORK.isdisjoint(stop.root_reason for stop in run.work.stops)
