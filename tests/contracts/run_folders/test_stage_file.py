"""`stage.json` (RUN-1, D34 §3): its fields to the letter, any run there and back."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aiflow.adapters.run_folders.stage_file import stage_of
from aiflow.adapters.run_folders.stage_reading import run_of
from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.call import Feedback
from aiflow.domain.agents.plan import PlanStep
from aiflow.domain.agents.usage import Usage
from aiflow.domain.lifecycle import ACTIVE_RUN_STATES, RunEvent, RunState
from aiflow.domain.run_summary import TaskRef
from aiflow.domain.runs.course import Course
from aiflow.domain.runs.events import called, left, noted, stopped
from aiflow.domain.runs.merge import Landing
from aiflow.domain.runs.quota import QuotaWait
from aiflow.domain.runs.resume import GoOn
from aiflow.domain.runs.resume_events import resumed
from aiflow.domain.runs.retry import StepStop
from aiflow.domain.runs.run import Evidence, Happening, Run, RunError, Visit
from aiflow.domain.runs.step_record import EndedTest, Footprint, Review, StepRecord
from aiflow.domain.runs.step_work import StepWork
from aiflow.domain.runs.worktree import FileChange, Place, Unfinished
from run_builders import EVERY_STATE, at, done, fail, in_step, in_tests, new_run, why

# D34 §3, with the types of its example: what stands in an entry, and what may be missing.
D34_FIELDS = {
    "version": str,
    "request_id": str,
    "run_id": str,
    "state": str,
    "current_step_index": int,
    "current_step_id": str,
    "attempts": dict,
    "error": dict,
    "history": list,
}


def on_disk(run: Run) -> dict[str, Any]:
    """The stage as somebody else reads it."""
    read: dict[str, Any] = json.loads(json.dumps(stage_of(run), ensure_ascii=False).encode("utf-8", "backslashreplace"))
    return read


RECORD = StepRecord(
    Footprint((FileChange("src/a.py", 3, 1), FileChange("logo.png", 0, 0)), 4, 30, 11),
    (EndedTest("unit", 1.5, None, 0), EndedTest("e2e", 9.0, "E2E_TEST_FAILED", 2)),
    (Review(is_passed=False, findings=("One.", "Two.")), Review(is_passed=True)),
)


def full_run() -> Run:
    """A run in which every field says something."""
    run = fail(in_tests(2), "UNIT_TEST_FAILED")
    run = fail(called(run, Role.IMPLEMENTER), "UNIT_TEST_FAILED")
    run = resumed(run, GoOn(RunEvent.RESUMED_AT_STEP, "S02"), "Yes.", at(41))
    told = RunError(
        "RETRY_LIMIT_EXCEEDED",
        "twice",
        "QA_REJECTED",
        "Which?",
        Evidence("TESTING", "S02", "make test", 2, "E assert", ("runs/x/logs/step-2.log",)),
        (("path", "a.txt"),),
        ("yes", "no"),
        "the first line\n[aiflow] …\nthe last",
    )
    run = left(stopped(called(fail(run, "AGENT_FAILED"), Role.IMPLEMENTER), told, at(42)), Unfinished("t", "wip", b""))
    fields: dict[str, Any] = {name: getattr(run, name) for name in Run.__dataclass_fields__}
    fields |= {
        "place": Place(run.run_id, "/w", "aiflow/x", "main", "base", copied=(".env",)),
        "feedback": (Feedback("SENT_BACK", "smaller", "please"),),
        "warnings": ("WORKTREE_DIRTY",),
        "compare_url": "https://github.com/a/b/compare/x",
        "replaces": "RUN-1",
        "replaced_by": "RUN-2",
        "accepted_as": "0123abc",
        "course": Course(has_baseline=True, has_plan=False, has_review=False),
        "base_tested": "base",
        "planning_session": "session-0",
        "usage": Usage(3, 1000, 400, 50, 0.25, 12.5),
        "roles": {"implementer": Usage(2, 900, 400, 40, 0.2, 10.0), "qa": Usage(1, 100, 0, 10, 0.05, 2.5)},
        "quota": QuotaWait(at(1), at(2), 3, "429", is_over=True),
        "lock": {"pid": 5, "host": "h", "fence": 7},
        "task": TaskRef("shop", "TASK-1"),
    }
    fields["steps"] = {**run.steps, "S01": replace(run.steps["S01"], record=RECORD)}
    return noted(Run(**fields), "LOCK_RECLAIMED", at(43), "LOCK_STALE_RECOVERED", "pid 5")


# --- D34 §3 to the letter --------------------------------------------------------------------------------------------


@pytest.mark.spec("RUN-1")
def test_the_fields_of_d34_come_first_and_have_its_types() -> None:
    stage = on_disk(full_run())
    assert list(stage)[: len(D34_FIELDS)] == list(D34_FIELDS)
    assert {name: type(stage[name]) for name in D34_FIELDS} == D34_FIELDS


@pytest.mark.spec("RUN-1")
def test_a_stopped_run_says_what_d34_says() -> None:
    stage = on_disk(full_run())
    assert (stage["version"], stage["request_id"], stage["run_id"]) == ("1.0", "RQ-1", full_run().run_id)
    assert (stage["state"], stage["current_step_index"], stage["current_step_id"]) == ("NEEDS_INPUT", 1, "S02")
    assert stage["attempts"] == {
        "planning": 1,
        "steps": {
            "S01": {"implementer": 1, "qa": 1, "tests": 1},
            "S02": {"implementer": 3, "qa": 0, "tests": 0},
        },
    }
    assert {name: stage["error"][name] for name in ("category", "reason_code", "summary", "cause")} == {
        "category": "EXECUTION",
        "reason_code": "RETRY_LIMIT_EXCEEDED",
        "summary": "twice",
        "cause": "QA_REJECTED",
    }
    assert {"at": at(3).isoformat(), "event": "STEP_DONE", "step_id": "S01"} in stage["history"]
    assert {
        "at": at(42).isoformat(),
        "event": "NEEDS_INPUT",
        "step_id": "S02",
        "reason_code": "RETRY_LIMIT_EXCEEDED",
        "note": "QA_REJECTED",
    } in stage["history"]


@pytest.mark.spec("RUN-1")
def test_a_run_that_has_no_plan_yet_has_no_step() -> None:
    stage = on_disk(new_run())
    assert [stage[name] for name in ("current_step_index", "current_step_id", "error", "history")] == [
        None,
        None,
        None,
        [],
    ]
    assert stage["attempts"] == {"planning": 0, "steps": {}}
    assert (stage["created_at"], stage["updated_at"]) == (at(0).isoformat(), at(0).isoformat())


@pytest.mark.spec("RUN-1")
@pytest.mark.parametrize(("run", "state"), [(run, state.value) for state, run in EVERY_STATE.items()])
def test_every_state_has_its_name(run: Run, state: str) -> None:
    assert on_disk(run)["state"] == state
    assert on_disk(done())["error"] is None


@pytest.mark.spec("RUN-1")
def test_the_ui_can_be_drawn_from_it_alone() -> None:
    stage = on_disk(full_run())
    assert [(step["id"], step["title"], step["state"], step["commit"]) for step in stage["steps"]] == [
        ("S01", "First", "done", "commit-1"),
        ("S02", "Second", "pending", None),
        ("S03", "Third | last", "pending", None),
    ]
    assert (stage["title"], stage["agent"], stage["branch"]) == ("A title", "demo", "aiflow/x")
    assert stage["error"]["question"] == "Which?"
    assert stage["error"]["evidence"]["log_paths"] == ["runs/x/logs/step-2.log"]
    assert (stage["replaces"], stage["replaced_by"], stage["lock"]["pid"]) == ("RUN-1", "RUN-2", 5)
    assert stage["updated_at"] == at(43).isoformat()


# --- there and back --------------------------------------------------------------------------------------------------

words = st.text(st.characters(codec="utf-8"), max_size=8)
names = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=8)
counts = st.integers(0, 9)
zones = st.sampled_from([UTC, timezone(timedelta(hours=9)), timezone(-timedelta(hours=3, minutes=30))])
instants = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=zones)  # noqa: DTZ001
codes = st.sampled_from(["UNIT_TEST_FAILED", "QA_REJECTED", "RETRY_LIMIT_EXCEEDED"])
areas = st.frozensets(words, max_size=2)
feedback = st.lists(st.builds(Feedback, codes, words, words), max_size=2).map(tuple)


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


amounts = st.integers(0, 10**6)
records = st.builds(
    StepRecord,
    st.builds(
        Footprint,
        st.lists(st.builds(FileChange, names, amounts, amounts), max_size=2).map(tuple),
        amounts,
        amounts,
        amounts,
    ),
    st.lists(st.builds(EndedTest, names, st.floats(0, 1e6), maybe(codes), maybe(counts)), max_size=2).map(tuple),
    st.lists(st.builds(Review, st.booleans(), st.lists(words, max_size=2).map(tuple)), max_size=2).map(tuple),
)
works = st.builds(
    StepWork,
    record=records,
    base=maybe(names),
    commit=maybe(names),
    is_done=st.booleans(),
    summary=words,
    retries=counts,
    restarts=counts,
    calls=st.dictionaries(st.sampled_from(["implementer", "qa", "tests"]), counts),
    stops=st.lists(st.builds(StepStop, codes, maybe(codes), counts, areas), max_size=2).map(tuple),
    kept=maybe(names),
    merges=maybe(names),
    conflicts=st.lists(names, max_size=2).map(tuple),
    unmarked=st.lists(names, max_size=2).map(tuple),
)
visits = st.builds(
    Visit,
    calls=st.dictionaries(st.sampled_from([role.value for role in Role]), counts),
    failures=st.dictionaries(st.sampled_from([role.value for role in Role]), st.lists(codes, max_size=2).map(tuple)),
    feedback=feedback,
    calling=maybe(st.sampled_from(Role)),
    crashes=counts,
    is_tested=st.booleans(),
    is_reviewed=st.booleans(),
    changed_files=counts,
    changed_lines=counts,
    areas=areas,
    summary=words,
)
plans = st.lists(
    st.builds(
        PlanStep,
        id=st.integers(1, 99).map("S{:02d}".format),
        title=names,
        instructions=words,
        target_paths=st.lists(st.sampled_from(["src", "a b/c", ""]), max_size=2).map(tuple),
        tests=st.none() | st.sampled_from([(), ("unit",), ("e2e", "unit")]),
    ),
    max_size=3,
    unique_by=lambda step: step.id,
).map(tuple)
errors = st.builds(
    RunError,
    codes,
    words,
    maybe(codes),
    maybe(words),
    st.builds(
        Evidence, words, maybe(names), maybe(words), maybe(st.integers(-9, 255)), words, st.lists(names).map(tuple)
    ),
    st.dictionaries(names, words, max_size=2).map(lambda facts: tuple(facts.items())),
)


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """Any run that can be: one in a step has that step in its plan, one that stopped says why."""
    plan = draw(plans)
    ids = [step.id for step in plan]
    state = draw(st.sampled_from([s for s in RunState if plan or s not in (RunState.IMPLEMENTING, RunState.TESTING)]))
    is_in_step = state in (RunState.IMPLEMENTING, RunState.TESTING)
    run_id = draw(names)
    current = draw(st.sampled_from(ids if is_in_step else [None, *ids]))
    place = draw(st.builds(Place, st.just(run_id), names, names, names, names, st.lists(names, max_size=2).map(tuple)))
    has_error = state in (RunState.NEEDS_INPUT, RunState.FAILED)
    return Run(
        request_id=draw(names),
        run_id=run_id,
        place=place,
        created_at=draw(instants),
        state=state,
        title=draw(words),
        agent=draw(words),
        plan=plan,
        current_step_id=current,
        planning_calls=draw(counts),
        planning_retries=draw(counts),
        roles=draw(st.dictionaries(st.sampled_from(["planner", "qa"]), st.builds(Usage, *[amounts] * 4))),
        step_retries=draw(counts),
        steps={step_id: draw(works) for step_id in ids if draw(st.booleans())},
        visit=draw(visits),
        error=draw(errors if has_error else maybe(errors)),
        history=tuple(draw(st.lists(st.builds(Happening, instants, names, maybe(names), maybe(codes), maybe(words))))),
        answers=tuple(draw(st.lists(st.tuples(words, words), max_size=2))),
        feedback=draw(feedback),
        warnings=tuple(draw(st.lists(words, max_size=2))),
        is_prepared=draw(st.booleans()),
        left_tree=draw(maybe(names)),
        stopped_in=draw(maybe(st.sampled_from(RunState))),
        compare_url=draw(maybe(names)),
        replaces=draw(maybe(names)),
        replaced_by=draw(maybe(names)),
        accepted_as=draw(maybe(names)),
        landing=draw(maybe(st.builds(Landing, names, names, names, maybe(names)))),
        lock=draw(st.dictionaries(names, st.integers() | words, max_size=2)),
    )


@pytest.mark.spec("RUN-1")
@settings(max_examples=40)  # a run has forty fields to draw; each state has an example of its own below
@given(runs())
def test_any_run_is_read_back_as_it_was(run: Run) -> None:
    assert run_of(on_disk(run)) == run


@pytest.mark.spec("RUN-1")
@pytest.mark.parametrize(
    "run",
    [*EVERY_STATE.values(), done(), full_run(), stopped(in_step(2), why("INTERNAL_ERROR"), at(5))],
    ids=lambda run: run.state.value,
)
def test_a_run_at_any_point_of_its_way_is_read_back_as_it_was(run: Run) -> None:
    assert run_of(on_disk(run)) == run


@pytest.mark.spec("RUN-1")
def test_half_a_character_in_a_text_does_not_make_a_run_unreadable() -> None:
    run = stopped(in_step(), RunError("AGENT_FAILED", "a\ud800b\udcff"), at(5))
    assert run_of(on_disk(run)) == run


@pytest.mark.spec("RUN-1")
def test_what_a_later_version_adds_is_passed_over() -> None:
    stage = on_disk(full_run()) | {"version": "1.7", "new": [1]}
    assert run_of(stage) == full_run()


# --- odd files --------------------------------------------------------------------------------------------------------

STAGE = on_disk(full_run())


@pytest.mark.spec("RUN-1")
@settings(max_examples=80)
@given(
    st.dictionaries(
        st.sampled_from(list(STAGE)),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
            max_leaves=5,
        ),
    )
)
def test_no_json_raises(changes: dict[str, Any]) -> None:
    run_of(changes)
    run_of(STAGE | changes)


@pytest.mark.spec("RUN-2")
def test_every_working_state_is_read_as_one() -> None:
    assert set(EVERY_STATE) == ACTIVE_RUN_STATES
    for run in EVERY_STATE.values():
        read = run_of(on_disk(run))
        assert read is not None
        assert read.is_active
