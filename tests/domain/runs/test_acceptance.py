"""What happens to a run that is done (REQ-6, GIT-3): accepted, not accepted, sent back, merged with its base."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.plan import MAX_STEPS, PlanStep, merging_step, plan_shape, read_plan
from aiflow.domain.lifecycle import RunOutcome, RunState, outcome_of
from aiflow.domain.reasons import WayOn
from aiflow.domain.runs.base_merging import updated
from aiflow.domain.runs.events import (
    accepted,
    called,
    not_accepted,
    reported,
    sent_back,
    step_done,
    stopped,
)
from aiflow.domain.runs.merge import Update, has_markers
from aiflow.domain.runs.next_move import Action, CallRole, next_action
from aiflow.domain.runs.stopped import recommended
from aiflow.errors import TransitionError
from run_builders import EVERY_STATE, LIMITS, at, done, in_step, why


def merging(*conflicts: str) -> PlanStep:
    step = merging_step(done().plan, "main", conflicts)
    assert step is not None
    return step


@pytest.mark.spec("REQ-6")
def test_an_accepted_run_stays_done_and_says_what_brought_it_in() -> None:
    refused = not_accepted(done(), why("MERGE_CONFLICT"), at(60))
    run = accepted(refused, "abc", at(61))
    assert (run.state, run.accepted_as, run.error) == (RunState.DONE, "abc", None)
    assert (run.history[-1].event, run.history[-1].note) == ("ACCEPTED", "abc")
    assert outcome_of(run.state, None, is_accepted=True) is RunOutcome.ACCEPTED


@pytest.mark.spec("REQ-6")
def test_a_run_with_nothing_in_it_says_so_when_it_is_done_and_when_it_is_accepted() -> None:
    reporting = replace(done(), state=RunState.REPORTING)
    assert reported(reporting, at(60)).error is None
    run = reported(reporting, at(60), "NOTHING_CHANGED")
    assert (run.state, run.is_idle, run.was_empty) == (RunState.DONE, True, False)
    assert (run.history[-1].reason_code, recommended(run)) == ("NOTHING_CHANGED", WayOn.ACCEPT)
    assert run.outcome is RunOutcome.AWAITING_ACCEPTANCE
    taken = accepted(run, "abc", at(61), is_empty=True)
    assert (taken.error, taken.was_empty, taken.outcome) == (None, True, RunOutcome.ACCEPTED)
    assert not accepted(run, "abc", at(61)).was_empty


@pytest.mark.spec("GIT-3")
def test_a_run_that_is_not_accepted_stays_done_with_the_reason_and_the_way_on() -> None:
    run = not_accepted(done(), why("MERGE_CONFLICT"), at(60))
    assert (run.state, run.accepted_as) == (RunState.DONE, None)
    assert run.history[-1].reason_code == "MERGE_CONFLICT"
    assert recommended(run) is WayOn.UPDATE
    assert outcome_of(run.state, "MERGE_CONFLICT") is RunOutcome.AWAITING_ACCEPTANCE


@pytest.mark.spec("GIT-3", "RUN-8")
@pytest.mark.parametrize(
    "code",
    [
        "GIT_FAILED",
        "DISK_FULL",
        "SETUP_FAILED",
        "CHECKOUT_IN_THE_WAY",
        "SETTINGS_CHANGED",
        "CONFLICT_TO_REVIEW",
        "NOTHING_CHANGED",
    ],
)
def test_what_is_done_is_accepted_once_its_trouble_is_mended_for_it_cannot_be_resumed(code: str) -> None:
    assert recommended(not_accepted(done(), why(code), at(60))) is WayOn.ACCEPT


@pytest.mark.spec("REQ-6")
def test_a_run_that_waits_is_closed_when_it_is_sent_back() -> None:
    waiting = [stopped(in_step(), why(code), at(50)) for code in ("NEEDS_CLARIFICATION", "INTERNAL_ERROR")]
    for before in (done(), *waiting):
        run = sent_back(before, "Not like this", at(60))
        assert run.state is RunState.FAILED
        assert run.error is not None
        assert (run.error.reason_code, run.error.summary) == ("SENT_BACK", "Not like this")
        assert outcome_of(run.state, run.error.reason_code) is RunOutcome.SENT_BACK
    for active in EVERY_STATE.values():
        with pytest.raises(TransitionError):
            sent_back(active, "x", at(60))


@pytest.mark.spec("GIT-3")
def test_a_conflict_is_the_implementers_in_a_step_of_its_own() -> None:
    update = Update("base", "merged", ("a.txt", "b.txt"))
    run = updated(not_accepted(done(), why("MERGE_CONFLICT"), at(60)), merging(*update.conflicts), update, at(61))
    assert (run.state, run.current_step_id, run.error) == (RunState.IMPLEMENTING, run.plan[-1].id, None)
    assert (run.step_base, run.work.merges, run.work.conflicts) == ("merged", "base", update.conflicts)
    assert run.visit.feedback[0].reason_code == "MERGE_CONFLICT"
    assert "b.txt" in run.visit.feedback[0].summary
    assert next_action(run, LIMITS) is Action.PREPARE  # the merge has to be laid out
    assert next_action(replace(run, is_prepared=True), LIMITS) == CallRole(Role.IMPLEMENTER)


@pytest.mark.spec("GIT-3")
def test_a_conflict_that_no_marker_shows_is_told_apart() -> None:
    update = Update("base", "merged", ("a.txt", "b.png"), ("b.png",))
    run = updated(done(), merging(*update.conflicts), update, at(61))
    assert run.work.unmarked == ("b.png",)
    marked, unmarked = (told.summary for told in run.visit.feedback)
    assert ("a.txt" in marked, "b.png" in marked) == (True, False)
    assert ("a.txt" in unmarked, "b.png" in unmarked, "decide" in unmarked) == (False, True, True)
    only = updated(done(), merging("b.png"), Update("base", "merged", ("b.png",), ("b.png",)), at(61))
    assert (only.state, len(only.visit.feedback)) == (RunState.IMPLEMENTING, 1)


@pytest.mark.spec("GIT-3")
def test_without_a_conflict_only_the_tests_run() -> None:
    run = replace(updated(done(), merging(), Update("base", "merged"), at(61)), is_prepared=True)
    assert next_action(run, LIMITS) is Action.TEST
    passed = replace(run, visit=replace(run.visit, is_tested=True))
    assert next_action(passed, LIMITS) is Action.COMMIT
    assert step_done(passed, None, at(62)).tip == "merged"
    # Whoever has to mend something is reviewed as always.
    assert not called(replace(run, state=RunState.IMPLEMENTING), Role.IMPLEMENTER).visit.is_reviewed


@pytest.mark.spec("GIT-3")
def test_the_merging_step_can_be_read_back_whatever_its_files_are_called() -> None:
    names = ("~odd", "C:x", "a/../b", "fine.txt", ".git/x")
    step = merging(*names)
    assert step.target_paths == ("fine.txt",)
    assert all(name in step.instructions for name in names)
    plan = (*done().plan, step)
    assert read_plan({"steps": plan_shape(plan)}) == plan
    assert merging_step((PlanStep(f"S{MAX_STEPS}", "last"),), "main", ()) is None


@pytest.mark.spec("GIT-3")
@pytest.mark.parametrize(
    ("text", "is_marked"),
    [
        (b"a\n<<<<<<< main\nb\n=======\nc\n>>>>>>> branch\n", True),
        (b"a\r\n<<<<<<< main\r\nb\r\n=======\r\nc\r\n>>>>>>> branch\r\n", True),
        (b"Heading\n=======\n", False),
        (b"text about <<<<<<< markers >>>>>>> inside a line\n", False),
        (b"", False),
    ],
)
def test_conflict_markers_are_told_from_text_like_them(text: bytes, is_marked: bool) -> None:
    assert has_markers(text) is is_marked
