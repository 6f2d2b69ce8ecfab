"""A run (RUN-2, RUN-4): what it does next, and how it is summed up for the decision how it goes on."""

from __future__ import annotations

from dataclasses import replace

import pytest

import run_builders as runs
from aiflow.domain.agents.answers import Role
from aiflow.domain.lifecycle import RunState
from aiflow.domain.runs.course import Course
from aiflow.domain.runs.events import base_tested, called, rebased, reviewed, step_done, stopped
from aiflow.domain.runs.next_move import Action, CallRole, next_action
from aiflow.domain.runs.resume_events import recovered
from aiflow.domain.runs.retry import NOT_THE_WORK, ReplanSignal, StepStop
from aiflow.domain.runs.run import Run, RunError
from aiflow.domain.runs.run_limits import RunLimits
from aiflow.domain.runs.step_work import StepWork
from aiflow.domain.runs.stopped import as_stopped
from builders import NOW

PLANNER, IMPLEMENTER, QA = (CallRole(role) for role in Role)
PREPARE, BASELINE, CONTINUE, PLAN, TEST, COMMIT, REPORT, WAIT, LIMIT, GIVE_UP = Action


# --- what is next ----------------------------------------------------------------------------------------------------


@pytest.mark.spec("RUN-2", "RUN-3")
@pytest.mark.parametrize(
    ("run", "action"),
    [
        (runs.new_run(), PREPARE),
        (runs.new_run(is_prepared=True), PREPARE),
        (runs.planning(), PLANNER),
        (runs.in_step(), IMPLEMENTER),
        (runs.in_tests(), TEST),
        (runs.in_review(), QA),
        (runs.ready_to_commit(runs.in_step()), COMMIT),
        (runs.in_step(2), IMPLEMENTER),
        (runs.in_report(), REPORT),
        (runs.done(), None),
        (stopped(runs.in_tests(), runs.why(), runs.at(11)), None),
        (stopped(runs.in_tests(), runs.why("INTERNAL_ERROR"), runs.at(11)), None),
    ],
)
def test_a_run_knows_what_it_does_next(run: Run, action: CallRole | Action | None) -> None:
    assert next_action(run, runs.LIMITS) == action


WITH_BASELINE, ALONE = Course(has_baseline=True), Course(has_plan=False, has_review=False)


@pytest.mark.spec("RUN-17", "RUN-18")
@pytest.mark.parametrize(
    ("run", "course", "action"),
    [
        (runs.planning(), WITH_BASELINE, BASELINE),
        (base_tested(runs.planning(), runs.at(2)), WITH_BASELINE, PLANNER),
        (called(runs.planning(), Role.PLANNER), WITH_BASELINE, PLANNER),
        (replace(runs.planning(), has_edits=True), WITH_BASELINE, PLANNER),
        (rebased(base_tested(runs.planning(), runs.at(2)), "other"), WITH_BASELINE, BASELINE),
        (runs.in_step(), WITH_BASELINE, IMPLEMENTER),
        (runs.planning(), ALONE, PLAN),
        (runs.planning(), replace(ALONE, has_baseline=True), BASELINE),
        (runs.in_tests(), ALONE, TEST),
        (runs.in_review(), ALONE, COMMIT),
    ],
)
def test_a_run_keeps_to_its_course(run: Run, course: Course, action: CallRole | Action) -> None:
    assert next_action(replace(run, course=course), runs.LIMITS) == action


@pytest.mark.spec("RUN-2")
@pytest.mark.parametrize("run", runs.EVERY_STATE.values(), ids=runs.EVERY_STATE)
def test_a_worktree_that_is_gone_comes_first(run: Run) -> None:
    assert next_action(replace(run, is_prepared=False), runs.LIMITS) is PREPARE


@pytest.mark.spec("RUN-3")
def test_nothing_is_committed_untested_or_unreviewed() -> None:
    assert next_action(reviewed(runs.in_tests()), runs.LIMITS) is TEST
    assert next_action(called(runs.in_review(), Role.IMPLEMENTER), runs.LIMITS) is TEST


@pytest.mark.spec("RUN-4")
@pytest.mark.parametrize("attempts", [1, 2, 3])
@pytest.mark.parametrize(
    ("run", "role"), [(runs.planning(), Role.PLANNER), (runs.in_step(), Role.IMPLEMENTER), (runs.in_review(), Role.QA)]
)
def test_a_role_without_a_call_left_is_not_called(run: Run, role: Role, attempts: int) -> None:
    limits = RunLimits(role_attempts=attempts)
    run = replace(run, visit=replace(run.visit, calls={}))
    for _ in range(attempts):
        assert not run.is_spent(role, limits)
        assert next_action(run, limits) == CallRole(role)
        run = called(run, role)
    assert run.is_spent(role, limits)
    assert next_action(run, limits) is GIVE_UP


@pytest.mark.spec("RUN-4")
def test_what_one_role_has_spent_is_not_anothers() -> None:
    run = called(called(runs.in_review(), Role.QA), Role.QA)
    assert next_action(replace(run, state=RunState.IMPLEMENTING), runs.LIMITS) == IMPLEMENTER


@pytest.mark.spec("RUN-11", "RUN-14")
def test_after_a_crash_a_run_does_what_it_was_about_to_do() -> None:
    cases = {
        PLANNER: runs.planning(),
        IMPLEMENTER: runs.in_step(2),
        TEST: runs.in_tests(),
        QA: runs.in_review(),
        REPORT: runs.in_report(),
    }
    for action, run in cases.items():
        assert next_action(recovered(run, runs.LIMITS, runs.at(12)), runs.LIMITS) == action
    commit = recovered(runs.ready_to_commit(runs.in_step()), runs.LIMITS, runs.at(12))
    assert next_action(commit, runs.LIMITS) is COMMIT


# --- where it stands -------------------------------------------------------------------------------------------------


@pytest.mark.spec("RUN-1")
def test_the_current_step_its_place_and_its_commits() -> None:
    run = runs.new_run()
    assert (run.current_step, run.current_index, run.step_base, run.tip) == (None, None, "base", "base")
    run = runs.in_step()
    assert (run.current_step, run.current_index, run.step_base, run.tip) == (runs.PLAN[0], 0, "base", "base")
    run = runs.in_step(3)
    assert (run.current_step, run.current_index, run.step_base, run.tip) == (runs.PLAN[2], 2, "commit-2", "commit-2")
    run = runs.in_report()
    assert (run.current_step, run.current_index, run.step_base, run.tip) == (runs.PLAN[2], 2, "commit-2", "commit-3")


@pytest.mark.spec("RUN-1")
def test_when_it_changed_and_whether_it_has_commits() -> None:
    assert (runs.new_run().changed_at, runs.new_run().has_commits) == (NOW, False)
    assert (runs.in_step().changed_at, runs.in_step().has_commits) == (runs.at(2), False)
    assert (runs.in_step(2).changed_at, runs.in_step(2).has_commits) == (runs.at(3), True)
    assert runs.new_run(steps={"S01": StepWork(is_done=True)}).has_commits is False


@pytest.mark.spec("RUN-2")
def test_a_run_is_active_until_it_ends() -> None:
    assert all(run.is_active for run in runs.EVERY_STATE.values())
    assert not runs.done().is_active
    assert not stopped(runs.in_tests(), runs.why(), runs.at(11)).is_active


# --- summed up for the decision how it goes on -----------------------------------------------------------------------


@pytest.mark.spec("RUN-6")
def test_a_stopped_run_is_summed_up() -> None:
    run = runs.fail(runs.fail(runs.in_tests(2), "UNIT_TEST_FAILED"), "UNIT_TEST_FAILED")
    run = replace(run, steps={**run.steps, "S01": replace(run.steps["S01"], retries=2)}, replaced_by="RUN-9")
    told = as_stopped(run, "RUN-8")
    assert (told.run_id, told.state, told.current_step_id) == (run.run_id, RunState.NEEDS_INPUT, "S02")
    assert (told.step_ids, told.done_step_ids) == (("S01", "S02", "S03"), frozenset({"S01"}))
    assert (dict(told.retries), told.replan_signal, told.is_work_done) == ({"S01": 2}, None, False)
    assert (told.replaced_by, told.newer_run_id) == ("RUN-9", "RUN-8")


@pytest.mark.spec("RUN-3", "RUN-6")
def test_a_step_that_changed_nothing_is_done_all_the_same() -> None:
    run = stopped(step_done(runs.ready_to_commit(runs.in_step()), None, runs.at(5)), runs.why("CANCELLED"), runs.at(6))
    assert as_stopped(run, None).done_step_ids == {"S01"}


@pytest.mark.spec("RUN-6")
def test_a_run_without_a_plan_is_summed_up() -> None:
    told = as_stopped(stopped(runs.planning(), runs.why("NEEDS_CLARIFICATION"), runs.at(3)), None)
    assert (told.step_ids, told.done_step_ids, told.current_step_id, told.replan_signal) == (
        (),
        frozenset(),
        None,
        None,
    )


@pytest.mark.spec("RUN-5")
@pytest.mark.parametrize(
    ("stops", "paths", "signal"),
    [
        ((), (), None),
        ((StepStop("STEP_TOO_LARGE"),), (), ReplanSignal.STEP_TOO_LARGE),
        (
            (StepStop("RETRY_LIMIT_EXCEEDED", "QA_REJECTED"), StepStop("QA_REJECTED")),
            (),
            ReplanSignal.SAME_REASON_TWICE,
        ),
        ((StepStop("QA_REJECTED", None, 10), StepStop("AGENT_FAILED", None, 20)), ("src",), None),
        ((StepStop("QA_REJECTED", None, 10), StepStop("AGENT_FAILED", None, 20)), (".",), ReplanSignal.DIFF_EXPLODES),
    ],
)
def test_the_stops_of_the_current_step_tell_whether_its_plan_must_change(
    stops: tuple[StepStop, ...], paths: tuple[str, ...], signal: ReplanSignal | None
) -> None:
    run = stopped(runs.in_step(2), runs.why("CANCELLED"), runs.at(5))
    plan = (runs.PLAN[0], replace(runs.PLAN[1], target_paths=paths), runs.PLAN[2])
    steps = {**run.steps, "S02": replace(run.work, stops=stops)}
    assert as_stopped(replace(run, plan=plan, steps=steps), None).replan_signal is signal
    elsewhere = {**run.steps, "S01": replace(run.work, stops=stops)}
    assert as_stopped(replace(run, plan=plan, steps=elsewhere), None).replan_signal is None


@pytest.mark.spec("RUN-6", "RUN-10")
@pytest.mark.parametrize("code", sorted(NOT_THE_WORK))
def test_work_that_was_in_its_tests_stands_if_something_else_stopped_it(code: str) -> None:
    for run in (runs.in_tests(), runs.in_review()):
        assert as_stopped(stopped(run, runs.why(code), runs.at(12)), None).is_work_done
        behind_a_limit = stopped(run, RunError("RETRY_LIMIT_EXCEEDED", "x", cause=code), runs.at(12))
        assert as_stopped(behind_a_limit, None).is_work_done
    for run in (runs.planning(), runs.in_step(), runs.in_report()):
        assert not as_stopped(stopped(run, runs.why(code), runs.at(12)), None).is_work_done


@pytest.mark.spec("RUN-6")
@pytest.mark.parametrize("code", ["UNIT_TEST_FAILED", "QA_REJECTED", "TEST_TIMEOUT", "WORKTREE_LOST", "INTERNAL_ERROR"])
def test_work_that_was_found_wanting_does_not(code: str) -> None:
    assert not as_stopped(stopped(runs.in_review(), runs.why(code), runs.at(12)), None).is_work_done
