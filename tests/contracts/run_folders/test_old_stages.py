"""A `stage.json` of another version (RUN-16): D34 §3's fields alone are a run, every reader reads it the same way, and
what this version does not know stays as it was."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aiflow.adapters.files.given_fields import USED_UP
from aiflow.adapters.run_folders.run_store import RunFolders
from aiflow.adapters.run_folders.stage_file import stage_of
from aiflow.adapters.secrets import Masker
from aiflow.domain.lifecycle import RunEvent, RunState
from aiflow.domain.reasons import WayOn
from aiflow.domain.request import RequestId
from aiflow.domain.run_summary import RunSummary, made_at
from aiflow.domain.runs.events import cancelled, noted
from aiflow.domain.runs.resume import Goal, GoOn, Refused, ResumeMode, StartAnew, decide_resume
from aiflow.domain.runs.resume_events import recovered, resumed
from aiflow.domain.runs.run import Run
from aiflow.domain.runs.stopped import as_stopped, recommended
from builders import NOW
from contracts.run_folders.test_stage_file import full_run, on_disk
from run_builders import LIMITS, PLAN, RUN_ID, at, in_step, in_tests

RQ = RequestId("RQ-1")
# D34 §3 to the letter, but for the names and the one state that its list stands for.
D34: dict[str, Any] = {
    "version": "1.0",
    "request_id": "RQ-1",
    "run_id": RUN_ID,
    "state": "NEEDS_INPUT",
    "current_step_index": 2,
    "current_step_id": "S03",
    "attempts": {
        "planning": 1,
        "steps": {
            "S01": {"implementer": 1, "qa": 0, "tests": 0},
            "S03": {"implementer": 2, "qa": 1, "tests": 1},
        },
    },
    "error": {"category": "EXECUTION", "reason_code": "UNIT_TEST_FAILED", "summary": "単体テストが失敗しました"},
    "history": [
        {"at": "ISO", "event": "STEP_DONE", "step_id": "S01"},
        {"at": "ISO", "event": "NEEDS_INPUT", "step_id": "S03", "reason_code": "UNIT_TEST_FAILED"},
    ],
}
STAGE = on_disk(full_run())
FIXTURES = sorted((Path(__file__).parents[2] / "fixtures/runs-0.1.0").glob("*/stage.json"))
# What git is called with, and which pages others lead to.
LINKS = ("replaces", "replaced_by", "continued_by", "begun_at", "accepted_as", "merging_as")
COMMITS = ("base_commit", "left_tree", "base", "commit", "kept", "before", "after", "tip", "undone_as", "merges")
NAMES = ("branch", "base_branch", *COMMITS, *LINKS)
# Without these, or with something else there, nobody can say where the run stands, or it is another one.
TELLING = ("state", "request_id", "run_id")


class Shelf:
    """The folder of one run, read by both readers."""

    def __init__(self, root: Path) -> None:
        self.store = RunFolders(str(root), Masker({}), lambda: NOW)
        self.folder = root / "runs/RQ-1" / RUN_ID
        self.folder.mkdir(parents=True)

    def put(self, stage: object, planning: object = None) -> None:
        (self.folder / "stage.json").write_text(json.dumps(stage))
        if planning is not None:
            (self.folder / "planning.json").write_text(json.dumps(planning))

    @property
    def raw(self) -> Any:
        return json.loads((self.folder / "stage.json").read_text())

    @property
    def summary(self) -> RunSummary:
        return self.store.latest()[RQ]

    @property
    def run(self) -> Run:
        run = self.store.load(RQ, RUN_ID)
        assert run is not None
        return run

    def agrees(self) -> bool:
        """Check that both readers say the same, and tell whether they can read the run."""
        run, summary = self.store.load(RQ, RUN_ID), self.summary
        if run is None:
            assert summary == RunSummary(RUN_ID, RunState.FAILED, "RUN_LOST")
            return False
        why = (run.error.reason_code, run.error.cause) if run.error else (None, None)
        assert (summary.state, summary.reason_code, summary.cause) == (run.state, *why)
        assert (summary.changed_at, summary.task) == (run.changed_at, run.task)
        return True


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


# --- D34 §3 alone ----------------------------------------------------------------------------------------------------


@pytest.mark.spec("RUN-16")
def test_the_fields_of_d34_alone_are_a_run(shelf: Shelf) -> None:
    shelf.put(D34)
    assert shelf.agrees()
    run = shelf.run
    assert (run.state, run.current_step_id, run.planning_calls) == (RunState.NEEDS_INPUT, "S03", 1)
    assert run.error is not None
    assert (run.error.reason_code, run.error.summary) == ("UNIT_TEST_FAILED", "単体テストが失敗しました")
    assert run.created_at == run.changed_at == made_at(RUN_ID)
    assert [line.event for line in run.history] == ["STEP_DONE", "NEEDS_INPUT"]
    assert run.place.branch == f"aiflow/RQ-1/{RUN_ID}"
    assert recommended(run) is WayOn.RETRY_STEP
    assert shelf.summary.way_on is None  # its reason's
    # D34 §6.1: without a plan it goes on at PLANNING.
    way = decide_resume(as_stopped(run, None), Goal(), 3)
    assert way == GoOn(RunEvent.RESUMED_AT_PLANNING, is_again=True)
    assert isinstance(way, GoOn)
    assert resumed(run, way, None, NOW).current_step_id is None


@pytest.mark.spec("RUN-16")
def test_the_plan_of_such_a_run_is_in_its_planning_json(shelf: Shelf) -> None:
    shelf.put(D34, {"steps": [{"id": step.id, "title": step.title} for step in PLAN]})
    run = shelf.run
    assert [step.title for step in run.plan] == ["First", "Second", "Third | last"]
    assert [step_id for step_id, work in run.steps.items() if work.is_done] == ["S01", "S02"]
    assert run.steps["S03"].calls == {"implementer": 2, "qa": 1, "tests": 1}
    way = decide_resume(as_stopped(run, None), Goal(), 3)
    assert way == GoOn(RunEvent.RESUMED_AT_STEP, "S03", is_again=True)
    shelf.put({**D34, "state": "DONE", "error": None}, {"steps": [{"id": "S01", "title": "x"}]})
    assert shelf.run.steps["S01"].is_done


@pytest.mark.spec("RUN-16")
@pytest.mark.parametrize("state", [state.value for state in RunState])
def test_a_state_alone_is_a_run(shelf: Shelf, state: str) -> None:
    shelf.put({"state": state})
    assert shelf.agrees()
    assert shelf.run.state is RunState(state)
    is_stopped = state in ("NEEDS_INPUT", "FAILED")
    assert shelf.summary.reason_code == ("PROCESS_CRASHED" if is_stopped else None)


@pytest.mark.spec("RUN-16", "RUN-11")
@pytest.mark.parametrize("state", ["IMPLEMENTING", "TESTING", "REPORTING"])
def test_a_run_at_work_without_a_plan_stops_and_is_planned_again(shelf: Shelf, state: str) -> None:
    shelf.put({"state": state, "current_step_id": "S02"})
    stopped = recovered(shelf.run, LIMITS, at(1))
    assert (stopped.state, stopped.steps) == (RunState.NEEDS_INPUT, {})
    assert decide_resume(as_stopped(stopped, None), Goal(), 3) == GoOn(RunEvent.RESUMED_AT_PLANNING)


@pytest.mark.spec("RUN-16")
@pytest.mark.parametrize("stage", [None, 5, [], {}, {"state": None}, {"state": 5}, {"state": ""}, {"state": ["DONE"]}])
def test_what_says_no_state_is_damaged_to_both(shelf: Shelf, stage: object) -> None:
    shelf.put(stage)
    assert not shelf.agrees()


@pytest.mark.spec("RUN-16", "RUN-1")
def test_a_file_that_names_another_run_is_lost_to_both(shelf: Shelf) -> None:
    shelf.put({**D34, "run_id": "RUN-9"})
    assert not shelf.agrees()
    shelf.put({**D34, "run_id": 9, "request_id": None})
    assert shelf.agrees()


# --- fields missing, fields of another kind --------------------------------------------------------------------------

JUNK: list[Any] = [None, True, -1, 10**400, float("inf"), "x", [], [5, {}], {"x": 5}]
Where = tuple[str | int, ...]


def places_in(value: Any, here: Where = ()) -> Iterator[Where]:
    """Every place in a stage."""
    if here:
        yield here
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inside:
        yield from places_in(item, (*here, key))


def parent_of(stage: Any, place: Where) -> Any:
    for part in place[:-1]:
        stage = stage[part]
    return stage


SHORT = STAGE | {"history": STAGE["history"][-2:], "steps": STAGE["steps"][:2]}
PLACES = list(places_in(SHORT))


@pytest.mark.spec("RUN-16")
def test_any_one_field_may_be_missing(shelf: Shelf) -> None:
    for place in PLACES:
        stage = copy.deepcopy(SHORT)
        del parent_of(stage, place)[place[-1]]
        shelf.put(stage)
        assert shelf.agrees() is (place != ("state",)), place


@pytest.mark.spec("RUN-16")
def test_any_other_value_may_stand_in_any_place(shelf: Shelf) -> None:
    lost = set()
    for place in PLACES:
        for junk in JUNK:
            stage = copy.deepcopy(SHORT)
            parent_of(stage, place)[place[-1]] = junk
            shelf.put(stage)
            if not shelf.agrees():
                lost.add(place)
    assert lost == {(name,) for name in TELLING}


@pytest.mark.spec("RUN-16", "GIT-1")
@pytest.mark.parametrize("junk", ["a\ud800b", "a\0b", "x" * 5000])
def test_what_no_program_can_be_called_with_is_no_name(shelf: Shelf, junk: str) -> None:
    landing = dict.fromkeys(("before", "after", "tip", "undone_as"), "c0ffee")
    stage = copy.deepcopy(STAGE) | dict.fromkeys(LINKS, "RUN-2") | {"landing": landing}
    for place in list(places_in(stage)):
        if place[-1] in NAMES or place == ("worktree", "path"):
            parent_of(stage, place)[place[-1]] = junk
    shelf.put(stage)
    assert shelf.agrees()
    run = replace(shelf.run, lock={})
    assert junk not in texts_in(asdict(run))
    assert (run.place.base_branch, run.accepted_as, run.landing, run.continues) == ("", None, None, None)


def texts_in(value: object) -> set[str]:
    """Every text in a value."""
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return {value} if isinstance(value, str) else {text for each in inside for text in texts_in(each)}


def reals() -> list[Any]:
    """Real stages: a run in which every field says something, D34's, and those that 0.1.0 wrote."""
    return [STAGE, D34, *(json.loads(path.read_text("utf-8")) for path in FIXTURES)]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=4,
)
# Words that another version may have: a state, a role, a reason, a way on, a format.
new_words = st.sampled_from(["PAUSED", "architect", "LINT_FAILED", "ponder", "2.0", "0.9", "skipped", "S100", "ISO"])


@st.composite
def mutations(draw: st.DrawFn) -> Any:
    """A real stage with some of it dropped, added, or replaced."""
    stage = copy.deepcopy(draw(st.sampled_from(reals()))) | {"request_id": "RQ-1", "run_id": RUN_ID}
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.sampled_from(list(places_in(stage)) or [("state",)]))
        parent = parent_of(stage, place)
        what = draw(st.sampled_from(["drop", "add", "retype", "rename"]))
        if what == "drop":
            del parent[place[-1]]
        elif what == "add" and isinstance(parent, dict):
            parent[draw(st.text(min_size=1, max_size=4))] = draw(json_values)
        else:
            parent[place[-1]] = draw(new_words if what == "rename" else json_values)
    return stage


@pytest.fixture(scope="module")
def one_shelf(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    return Shelf(tmp_path_factory.mktemp("shelf"))


@pytest.mark.spec("RUN-16")
@settings(max_examples=300, deadline=None)
@given(stage=mutations())
def test_both_readers_agree_on_whatever_another_version_wrote(one_shelf: Shelf, stage: Any) -> None:
    one_shelf.put(stage)
    is_named = all(
        stage.get(name) in (None, "", own) or not isinstance(stage[name], str)
        for name, own in (("request_id", "RQ-1"), ("run_id", RUN_ID))
    )
    state = stage.get("state")
    assert one_shelf.agrees() is (is_named and isinstance(state, str) and state != "")


@pytest.mark.spec("RUN-16", "RUN-14")
@pytest.mark.parametrize("number", ["1e999", "-1", "1.5", '"1"', "true", "null"])
def test_a_count_that_is_none_cannot_lift_a_limit(shelf: Shelf, number: str) -> None:
    stage = copy.deepcopy(STAGE)
    for place in (("attempts", "planning"), ("visit", "calls", "implementer"), ("steps", 1, "retries")):
        parent_of(stage, place)[place[-1]] = json.loads(number)
    shelf.put(stage | {"replaced_by": None})
    run = shelf.run
    assert run.planning_calls == run.visit.calls["implementer"] == run.steps["S02"].retries == USED_UP
    refused = decide_resume(replace(as_stopped(run, None), replan_signal=None), Goal(ResumeMode.RETRY_STEP), 3)
    assert isinstance(refused, Refused)
    assert refused.reason_code == "RETRY_LIMIT_EXCEEDED"


# --- what only a newer aiflow knows ----------------------------------------------------------------------------------


@pytest.mark.spec("RUN-16")
@pytest.mark.parametrize(
    "changes",
    [
        {"state": "PAUSED"},
        {"version": "2.0"},
        {"version": 2},
        {"version": "2.0", "state": "IMPLEMENTING"},
        {"steps": [{"id": "S100", "title": "x"}]},
        {"steps": [{"id": "S01"}, {"id": "S01"}]},
        {"steps": {"S01": {}}},
    ],
    ids=str,
)
def test_a_run_of_a_newer_aiflow_waits_and_is_not_continued(shelf: Shelf, changes: dict[str, Any]) -> None:
    shelf.put({**STAGE, "replaced_by": None, **changes})
    assert shelf.agrees()
    assert (shelf.summary.state, shelf.summary.reason_code) == (RunState.NEEDS_INPUT, "RUN_FROM_NEWER_VERSION")
    stopped = as_stopped(shelf.run, None)
    for mode in (ResumeMode.RESUME, ResumeMode.RETRY_STEP):
        refused = decide_resume(stopped, Goal(mode, is_forced=True), 3)
        assert isinstance(refused, Refused)
        assert refused.reason_code == "RUN_FROM_NEWER_VERSION"
    assert isinstance(decide_resume(stopped, Goal(ResumeMode.REPLAN), 3), StartAnew)


@pytest.mark.spec("RUN-16")
@pytest.mark.parametrize("changes", [{"version": "1.7"}, {"version": "0.3"}, {"version": None}, {"version": "one"}])
def test_another_version_of_the_same_format_is_this_format(shelf: Shelf, changes: dict[str, Any]) -> None:
    shelf.put(STAGE | changes)
    assert (shelf.run.error, shelf.run.plan) == (full_run().error, full_run().plan)


@pytest.mark.spec("RUN-16")
def test_what_is_over_stays_over_in_any_format(shelf: Shelf) -> None:
    shelf.put(STAGE | {"version": "2.0", "state": "DONE", "error": None})
    assert (shelf.agrees(), shelf.summary.state) == (True, RunState.DONE)


@pytest.mark.spec("RUN-16", "RUN-8")
def test_a_reason_that_is_not_known_here_is_shown_and_resumed(shelf: Shelf) -> None:
    stage = copy.deepcopy(STAGE)
    stage["error"] |= {"reason_code": "LINT_FAILED", "cause": None, "way_on": "ponder"}
    shelf.put(stage)
    assert shelf.agrees()
    assert (shelf.summary.reason_code, shelf.summary.way_on, recommended(shelf.run)) == (
        "LINT_FAILED",
        "resume",
        WayOn.RESUME,
    )


@pytest.mark.spec("RUN-16")
def test_why_a_run_stopped_is_found_in_its_history_too(shelf: Shelf) -> None:
    shelf.put({**D34, "error": None})
    assert (shelf.agrees(), shelf.summary.reason_code) == (True, "UNIT_TEST_FAILED")


# --- what is not known stays -----------------------------------------------------------------------------------------

NEW: Any = {"a": [1, 2.50, None, {"b": "日本"}], "c": {}}


def with_new_fields(stage: Any) -> Any:
    """The same stage with a new field in every object that has fields of ours."""
    known = copy.deepcopy(stage)
    lists = (known["steps"], known["history"], known["answers"], known["feedback"], known["steps"][1]["stops"])
    objects = [known, known["worktree"], known["visit"], known["attempts"], known["usage"], known["quota"]]
    objects += [known["error"], known["error"]["evidence"], known["task"], known["steps"][0]["targets"]]
    for one in (*objects, *(entry for entries in lists for entry in entries)):
        one["new"] = NEW
    return known


def new_fields(stage: Any) -> set[Where]:
    return {place for place in places_in(stage) if place[-1] == "new"}


@pytest.mark.spec("RUN-16")
def test_unknown_fields_stay_when_a_run_is_saved(shelf: Shelf) -> None:
    before = with_new_fields(STAGE)
    shelf.put(before)
    shelf.store.save(noted(shelf.run, "LOCK_RECLAIMED", at(50)))
    after = shelf.raw
    assert new_fields(after) == new_fields(before)
    assert all(parent_of(after, place)["new"] == NEW for place in new_fields(after))
    assert len(after["history"]) == len(before["history"]) + 1
    assert list(after)[:9] == list(D34)


@pytest.mark.spec("RUN-16")
def test_unknown_fields_stay_when_a_run_goes_on(shelf: Shelf) -> None:
    before = with_new_fields(STAGE)
    shelf.put(before)
    shelf.store.save(resumed(shelf.run, GoOn(RunEvent.RESUMED_AT_STEP, "S02", is_from_start=True), "No.", at(50)))
    shelf.store.save(cancelled(shelf.run, at(51)))
    # The error is another one, the quota is no longer waited for, the visit's feedback and this stop are new.
    gone = {place for place in new_fields(before) if place[0] in ("error", "quota")}
    assert new_fields(before) - gone == new_fields(shelf.raw)
    assert shelf.raw["error"]["reason_code"] == "CANCELLED"
    assert shelf.run.state is RunState.NEEDS_INPUT


@pytest.mark.spec("RUN-16")
def test_values_that_are_not_understood_stay_until_they_change(shelf: Shelf) -> None:
    odd = {"stopped_in": "PONDERING", "lock": "me", "warnings": {"x": 1}, "compare_url": 5}
    stage = copy.deepcopy(STAGE) | odd
    stage["visit"]["calling"] = "architect"
    stage["steps"][0]["tests"] = ["lint"]
    stage["history"][0] = "a line of old"
    shelf.put(stage)
    assert shelf.run.steps["S01"].is_done
    assert shelf.run.plan[0].tests is None
    shelf.store.save(noted(shelf.run, "LOCK_RECLAIMED", at(50)))
    after = shelf.raw
    assert {name: after[name] for name in odd} == odd
    assert after["visit"]["calling"] == "architect"
    assert after["steps"][0]["tests"] == ["lint"]
    assert after["history"][:-1] == stage["history"]


@pytest.mark.spec("RUN-16")
def test_the_seeds_own_file_is_filled_up_when_it_is_saved(shelf: Shelf) -> None:
    shelf.put(D34, {"steps": [{"id": step.id, "title": step.title} for step in PLAN]})
    before = shelf.run
    shelf.store.save(before)
    assert {name: shelf.raw[name] for name in D34 if name != "error"} == {
        n: v for n, v in D34.items() if n != "error"
    } | {"attempts": shelf.raw["attempts"]}
    assert shelf.raw["attempts"]["steps"]["S03"] == D34["attempts"]["steps"]["S03"]
    assert [step["state"] for step in shelf.raw["steps"]] == ["done", "done", "pending"]
    assert shelf.run == before


@pytest.mark.spec("RUN-16")
@pytest.mark.parametrize("run", [full_run(), in_step(2), in_tests(3)])
def test_what_this_version_wrote_is_written_as_ever(shelf: Shelf, run: Run) -> None:
    shelf.put(stage_of(in_step(1)))
    shelf.store.save(run)
    assert shelf.raw == on_disk(run)
    assert list(shelf.raw) == list(on_disk(run))
