"""How a run ends on disk (RUN-1, RUN-7, RUN-9): errors.json to the letter, a report that tells every end once."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from aiflow.adapters.markdown_requests.source import FileSource
from aiflow.adapters.memory.journal import MemoryJournal
from aiflow.adapters.memory.requests import MemoryRequests
from aiflow.adapters.run_folders.run_store import RunFolders
from aiflow.adapters.secrets import Masker
from aiflow.adapters.system_time import SystemTime
from aiflow.domain.agents.call import Brief
from aiflow.domain.lifecycle import RunEvent, RunState
from aiflow.domain.reasons import CATALOGUE, exit_code, way_on
from aiflow.domain.runs.events import crashed, replaced, stopped
from aiflow.domain.runs.resume import GoOn
from aiflow.domain.runs.resume_events import recovered, resumed
from aiflow.domain.runs.run import Evidence, Run, RunError
from aiflow.domain.runs.stopped import outcome_code
from aiflow.domain.runs.worktree import Place, Unfinished
from aiflow.errors import ConflictError, EnvironmentProblemError
from aiflow.messages import Texts
from aiflow.settings import settle
from aiflow.usecases.engine import Voice
from aiflow.usecases.runs.ending import end_run, finish_run
from aiflow.usecases.runs.report import add_lines, add_to_report, errors_shape
from aiflow.usecases.runs.work import Work
from aiflow.usecases.shapes.runs import exit_code_of, run_result
from builders import NOW
from engines import engine_of
from run_builders import (
    ERRORS_KEYS,
    LIMITS,
    PLAN,
    RUN_ID,
    at,
    done,
    in_report,
    in_step,
    in_tests,
    new_run,
    planning,
    ready_to_commit,
    why,
)

LANGUAGES = ("en", "ja")
KANA = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")
WHY = RunError(
    "RETRY_LIMIT_EXCEEDED",
    "2 tests failed",
    cause="UNIT_TEST_FAILED",
    evidence=Evidence("TESTING", "S02", "make test", 2, "E assert", (f"runs/RQ-1/{RUN_ID}/logs/step-2.log",)),
)


class Lease:
    """A lock that is ours until it is lost."""

    def __init__(self) -> None:
        self.is_lost = False
        self.is_writing = False

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        if self.is_lost:
            raise ConflictError(reason_code="LOCK_LOST")
        self.is_writing = True
        yield
        self.is_writing = False


class Worktree:
    """A worktree in which an unfinished step left something."""

    def __init__(self) -> None:
        self.kept: list[tuple[str, str]] = []
        self.is_there = True
        self.problem: Exception | None = None

    def is_intact(self, place: Place) -> bool:
        return self.is_there

    def keep_unfinished(self, place: Place, since: str, ref: str) -> Unfinished:
        if self.problem:
            raise self.problem
        self.kept.append((since, ref))
        return Unfinished("tree", "wip", b"diff --git a b\n")

    def snapshot(self, place: Place) -> str:
        if self.problem:
            raise self.problem
        return "as it is"


class Files(RunFolders):
    """The files of runs, on a disk where some cannot be written."""

    refused: tuple[str, ...] = ()
    written: list[str]
    lease: Lease

    def _refuse(self, name: str) -> None:
        if name in self.refused:
            raise EnvironmentProblemError(reason_code="DISK_FULL", path=name)
        self.written.append(name if self.lease.is_writing else f"{name} without the lock")

    def save(self, run: Run) -> None:
        self._refuse("stage.json")
        super().save(run)

    def write_errors(self, run: Run, errors: Any) -> None:
        self._refuse("errors.json")
        super().write_errors(run, errors)

    def append_report(self, run: Run, text: str) -> None:
        self._refuse("report.md")
        super().append_report(run, text)

    def write_patch(self, run: Run, step_id: str, patch: bytes | None) -> str | None:
        self._refuse("patch")
        return super().write_patch(run, step_id, patch)


class Scene:
    """A run that is being worked on, its files real, git and the lock not."""

    def __init__(self, root: Path, language: str = "en") -> None:
        self.root = root
        self.lease, self.worktree, self.journal = Lease(), Worktree(), MemoryJournal()
        self.files = Files(str(root), Masker({"API_TOKEN": "s3cret-value"}), lambda: NOW)
        self.files.lease, self.files.written = self.lease, []
        used: dict[str, Any] = {
            "runs": self.files,
            "source": FileSource(MemoryRequests()),
            "workspaces": lambda _run_id: self.worktree,
            "journal": self.journal,
            "time": SystemTime(lambda: at(60)),
            "settings": settle({}),
        }
        self.engine = engine_of(Voice(Texts(language)), **used)

    def work(self, run: Run) -> Work:
        if self.files.find(run.run_id) is None:
            self.files.create(run, Brief("RQ-1", "A title", "", "P1"))
        self.files.save(run)
        self.files.written.clear()
        return Work(self.engine, cast(Any, self.lease), run)

    def report(self) -> str:
        return self.files.report(new_run()) or ""

    def tell(self, run: Run, patch: str | None = None) -> str:
        self.files.folder(run.request_id, run.run_id).mkdir(parents=True, exist_ok=True)
        add_to_report(self.engine, run, patch)
        return self.report()


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


MakeScene = Callable[[str], Scene]


@pytest.fixture
def scene_in(tmp_path: Path) -> MakeScene:
    return lambda language: Scene(tmp_path, language)


def stop(run: Run, error: RunError = WHY, minutes: float = 40) -> Run:
    return stopped(run, error, at(minutes))


def go_on(run: Run, *, is_from_start: bool = False) -> Run:
    return resumed(run, GoOn(RunEvent.RESUMED_AT_STEP, run.current_step_id, is_from_start), None, at(41))


# --- errors.json -----------------------------------------------------------------------------------------------------

EVIDENCE = ["failed_at_state", "step_id", "command", "exit_code", "stderr_snippet", "log_paths"]


@pytest.mark.spec("RUN-1")
@pytest.mark.parametrize("language", LANGUAGES)
def test_errors_json_has_the_fields_of_the_specification_and_no_others(language: str) -> None:
    shape = errors_shape(stop(in_tests(2)), Texts(language))
    assert list(shape) == ERRORS_KEYS
    assert list(shape["evidence"]) == EVIDENCE
    assert {name: shape[name] for name in ERRORS_KEYS if name not in ("title", "message", "actions")} == {
        "version": "1.0",
        "request_id": "RQ-1",
        "run_id": RUN_ID,
        "state": "NEEDS_INPUT",
        "category": "EXECUTION",
        "reason_code": "RETRY_LIMIT_EXCEEDED",
        "cause": "UNIT_TEST_FAILED",
        "retryable": False,
        "evidence": {
            "failed_at_state": "TESTING",
            "step_id": "S02",
            "command": "make test",
            "exit_code": 2,
            "stderr_snippet": "E assert",
            "log_paths": [f"runs/RQ-1/{RUN_ID}/logs/step-2.log"],
        },
        "suggested_next": {"way_on": "retry_step", "command": "aiflow retry-step RQ-1"},
    }
    words = [shape["title"], shape["message"], *shape["actions"]]
    assert all(words)
    assert bool(KANA.search("".join(words))) == (language == "ja")
    assert shape["message"].endswith("2 tests failed")


@pytest.mark.spec("RUN-1", "RUN-8", "ERR-1")
@pytest.mark.parametrize("language", LANGUAGES)
def test_every_reason_is_told_with_all_its_facts(language: str) -> None:
    for code, reason in CATALOGUE.items():
        run = stop(in_tests(2), replace(WHY, reason_code=code, cause=None, question="Which?"))
        shape = errors_shape(run, Texts(language))
        assert (shape["category"], shape["retryable"]) == (reason.category, reason.is_retryable)
        assert shape["suggested_next"]["way_on"] == way_on(code)
        assert exit_code_of(run) == exit_code(code)
        if reason.stops_as is not None:
            unknown = re.findall(r"<[a-z_]+>", shape["title"] + shape["message"] + "".join(shape["actions"]))
            assert unknown == [], code


@pytest.mark.spec("RUN-7")
def test_why_a_run_does_not_go_on_is_told_without_touching_the_run() -> None:
    run = stop(in_tests(2))
    shape = errors_shape(run, Texts("en"), why("WORKTREE_DIRTY", "a.txt"))
    assert (shape["reason_code"], shape["state"], shape["cause"]) == ("WORKTREE_DIRTY", "NEEDS_INPUT", None)
    assert shape["suggested_next"]["command"] == "aiflow resume RQ-1"


# --- the report ------------------------------------------------------------------------------------------------------


@pytest.mark.spec("RUN-1")
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_stop_is_reported_with_its_reason_its_steps_and_what_to_do(scene_in: MakeScene, language: str) -> None:
    run = replace(stop(in_tests(2)), compare_url="https://github.com/a/b/compare/x", replaces="RUN-0")
    report = scene_in(language).tell(run, "runs/x/S02.patch")
    lines = report.splitlines()
    assert lines[0] == "# RQ-1 A title"
    for fact in (RUN_ID, run.place.branch, "`main`", "https://github.com/a/b/compare/x", "RUN-0", "runs/x/S02.patch"):
        assert fact in report
    assert f"## {at(40).isoformat()} NEEDS_INPUT: RETRY_LIMIT_EXCEEDED" in lines
    assert "> 2 tests failed" in lines
    assert "UNIT_TEST_FAILED" in report
    message = Texts(language).message("RETRY_LIMIT_EXCEEDED", {"request_id": "RQ-1"})
    assert f"**{message.title}**" in report
    rows = [line for line in lines if line.startswith("| S0")]
    assert [row.split(" | ")[0] for row in rows] == ["| S01", "| S02", "| S03"]
    assert ("commit-1" in rows[0], "commit-" in rows[1]) == (True, False)
    assert "Third / last" in rows[2]
    assert {row.count("|") for row in rows} == {6}
    assert bool(KANA.search(report)) == (language == "ja")


@pytest.mark.spec("RUN-1")
def test_a_finished_run_is_reported(scene: Scene) -> None:
    report = scene.tell(done())
    assert f"## {at(21).isoformat()} DONE" in report.splitlines()
    assert "commit-3" in report
    assert "NEEDS_INPUT" not in report


@pytest.mark.spec("RUN-3")
def test_a_step_without_changes_is_noted(scene: Scene) -> None:
    run = done()
    steps = {**run.steps, "S02": replace(run.steps["S02"], commit=None)}
    rows = [line for line in scene.tell(replace(run, steps=steps)).splitlines() if line.startswith("| S02")]
    assert rows == ["| S02 | Second | done | no changes | 1 |"]


@pytest.mark.spec("RUN-1")
def test_a_run_that_stopped_before_its_plan_is_reported_too(scene: Scene) -> None:
    report = scene.tell(stop(planning(), why("AGENT_FAILED")))
    assert "NEEDS_INPUT: AGENT_FAILED" in report
    assert "| S01" not in report


@pytest.mark.spec("RUN-9")
def test_every_end_has_a_section_of_its_own_below_the_others(scene: Scene) -> None:
    first = stop(in_tests(2))
    one = scene.tell(first)
    second = stop(go_on(first, is_from_start=True), minutes=50)
    two = scene.tell(second)
    assert two.startswith(one)
    assert two.count("# RQ-1 A title") == 1
    assert f"## {at(50).isoformat()} NEEDS_INPUT: RETRY_LIMIT_EXCEEDED (retry_step S02)" in two.splitlines()
    third = stop(go_on(second), minutes=55)
    three = scene.tell(third)
    assert three.startswith(two)
    assert "(resume S02)" in three.removeprefix(two)
    four = scene.tell(replaced(third, "RUN-9", at(56)))
    assert "FAILED: REPLANNED" in four.removeprefix(three)
    assert four.count("<!-- aiflow:end") == 4


@pytest.mark.spec("RUN-9")
@pytest.mark.parametrize(
    "run", [stop(in_tests(2)), done(), stop(go_on(stop(in_tests(2))))], ids=["stop", "done", "again"]
)
def test_the_same_end_is_never_told_twice(scene: Scene, run: Run) -> None:
    once = scene.tell(run)
    assert scene.tell(run) == once
    assert scene.tell(run, "a.patch") == once


@pytest.mark.spec("RUN-9", "RUN-11")
def test_an_end_that_was_told_but_not_saved_is_not_told_again_after_the_crash(scene: Scene) -> None:
    once = scene.tell(done())  # killed here: stage.json still says REPORTING
    again = recovered(in_report(), LIMITS, at(30))
    work = scene.work(again)
    finish_run(work)
    assert scene.report() == once


@pytest.mark.spec("RUN-1", "RUN-9", "RUN-11")
def test_another_end_behind_a_crash_is_told(scene: Scene) -> None:
    scene.tell(stop(in_tests(3)))  # killed here: stage.json still says TESTING
    run = recovered(in_tests(3), LIMITS, at(45))
    work = scene.work(stopped(run, why("CANCELLED"), at(46)))
    add_to_report(scene.engine, work.run, None)
    assert "NEEDS_INPUT: CANCELLED" in scene.report()


@pytest.mark.spec("LCK-5")
def test_what_happened_between_ends_is_in_the_report_below_what_the_run_is(scene: Scene) -> None:
    scene.work(in_tests(2))
    add_lines(scene.engine, in_tests(2), ["LOCK_STALE_RECOVERED: pid 5, host h", ""])
    assert scene.report().startswith("# RQ-1 A title\n")
    assert scene.report().endswith("\nLOCK_STALE_RECOVERED: pid 5, host h\n\n")
    report = scene.tell(stop(in_tests(2)))
    assert report.count("# RQ-1 A title") == 1
    assert report.index("LOCK_STALE_RECOVERED") < report.index("NEEDS_INPUT")


@pytest.mark.spec("RUN-1")
def test_warnings_are_told_at_the_end(scene: Scene) -> None:
    report = scene.tell(replace(done(), warnings=("ORIGIN_MISSING",)))
    assert f"ORIGIN_MISSING: {Texts('en').message('ORIGIN_MISSING', {}).title}" in report


@pytest.mark.spec("AGT-4")
def test_no_secret_reaches_the_report(scene: Scene) -> None:
    assert "s3cret-value" not in scene.tell(stop(in_tests(2), replace(WHY, summary="uses s3cret-value")))


# --- ending ----------------------------------------------------------------------------------------------------------


@pytest.mark.spec("RUN-1", "RUN-7", "LCK-3")
def test_a_stop_keeps_the_work_says_why_reports_and_is_saved_last(scene: Scene) -> None:
    work = scene.work(in_tests(2))
    end_run(work, stop(work.run))
    assert scene.worktree.kept == [("commit-1", f"refs/aiflow/wip/{RUN_ID}/S02")]
    assert scene.files.written[-3:] == ["errors.json", "report.md", "stage.json"]
    saved = scene.files.load("RQ-1", RUN_ID)
    assert saved == work.run
    assert saved is not None
    assert (saved.state, saved.left_tree, saved.work.kept) == (RunState.NEEDS_INPUT, "tree", "wip")
    errors = scene.files.errors(saved)
    assert errors is not None
    assert errors["reason_code"] == "RETRY_LIMIT_EXCEEDED"
    patch = f"runs/RQ-1/{RUN_ID}/S02.patch"
    assert (scene.root / patch).read_bytes() == b"diff --git a b\n"
    assert patch in scene.report()
    assert [(entry.reason_code, entry.data["to"]) for entry in scene.journal.entries] == [
        ("RETRY_LIMIT_EXCEEDED", "NEEDS_INPUT")
    ]


@pytest.mark.spec("RUN-1")
def test_at_the_end_there_is_a_report_and_no_errors_json(scene: Scene) -> None:
    work = scene.work(replace(in_report(), left_tree="tree"))
    scene.files.write_errors(work.run, {"reason_code": "OLD"})
    finish_run(work)
    saved = scene.files.load("RQ-1", RUN_ID)
    assert saved is not None
    assert (saved.state, saved.error, saved.left_tree) == (RunState.DONE, None, None)
    assert scene.files.errors(saved) is None
    assert f"## {at(60).isoformat()} DONE" in scene.report()
    assert scene.files.written[-1] == "stage.json"


@pytest.mark.spec("RUN-2", "RUN-7")
@pytest.mark.parametrize("run", [new_run(), planning(), in_report(), replace(in_step(2), is_prepared=False)])
def test_only_a_step_leaves_something_unfinished(scene: Scene, run: Run) -> None:
    work = scene.work(run)
    end_run(work, stop(run, why("CANCELLED")))
    assert scene.worktree.kept == []
    assert (work.run.state, work.run.left_tree) == (RunState.NEEDS_INPUT, "as it is" if run.is_prepared else None)


@pytest.mark.spec("RUN-2")
def test_trouble_with_git_does_not_keep_a_run_from_ending(scene: Scene) -> None:
    scene.worktree.problem = EnvironmentProblemError(reason_code="GIT_FAILED")
    work = scene.work(in_tests(2))
    end_run(work, stop(work.run))
    assert scene.files.load("RQ-1", RUN_ID) == work.run
    assert work.run.left_tree is None
    scene.worktree.problem, scene.worktree.is_there = None, False
    end_run(work, stop(go_on(work.run), minutes=50))
    assert scene.worktree.kept == []
    assert work.run.left_tree is None


@pytest.mark.spec("RUN-2")
@pytest.mark.parametrize(
    "refused",
    [
        ("errors.json",),
        ("report.md",),
        ("errors.json", "report.md"),
        ("patch",),
        ("patch", "errors.json", "report.md"),
    ],
    ids=str,
)
def test_a_disk_without_room_for_the_words_does_not_keep_a_run_from_ending(
    scene: Scene, refused: tuple[str, ...]
) -> None:
    work = scene.work(in_tests(2))
    scene.files.refused = refused
    end_run(work, stop(work.run))
    saved = scene.files.load("RQ-1", RUN_ID)
    assert saved is not None
    assert saved.state is RunState.NEEDS_INPUT


@pytest.mark.spec("LCK-3")
def test_a_holder_that_lost_its_lock_writes_nothing_more(scene: Scene) -> None:
    work = scene.work(in_tests(2))
    scene.lease.is_lost = True
    with pytest.raises(ConflictError, match="LOCK_LOST"):
        end_run(work, stop(work.run))
    assert scene.files.written == []


@pytest.mark.spec("LCK-3")
def test_a_holder_that_lost_its_lock_does_not_finish_a_run(scene: Scene) -> None:
    work = scene.work(in_report())
    scene.lease.is_lost = True
    with pytest.raises(ConflictError, match="LOCK_LOST"):
        finish_run(work)
    assert (scene.files.written, scene.report(), scene.journal.entries) == ([], "", [])


# --- what `run` and `resume` answer ----------------------------------------------------------------------------------


@pytest.mark.spec("CLI")
def test_what_is_answered_about_a_stopped_run() -> None:
    run = replace(stop(in_tests(2), replace(WHY, question="Which?")), warnings=("x",), replaces="RUN-0")
    result = run_result(run)
    assert list(result)[:4] == ["request_id", "run_id", "state", "reason_code"]
    assert (result["state"], result["reason_code"], result["cause"]) == (
        "NEEDS_INPUT",
        "RETRY_LIMIT_EXCEEDED",
        "UNIT_TEST_FAILED",
    )
    assert (result["question"], result["current_step_id"], result["changed_at"]) == (
        "Which?",
        "S02",
        at(40).isoformat(),
    )
    assert result["steps"] == [
        {"step_id": "S01", "title": "First", "is_done": True, "commit": "commit-1"},
        {"step_id": "S02", "title": "Second", "is_done": False, "commit": None},
        {"step_id": "S03", "title": "Third | last", "is_done": False, "commit": None},
    ]
    assert result["suggested_next"] == {"way_on": "retry_step", "command": "aiflow retry-step RQ-1"}
    assert exit_code_of(run) == 7


@pytest.mark.spec("CLI", "REQ-6")
def test_a_finished_run_waits_for_acceptance_and_an_active_one_for_nothing() -> None:
    assert (outcome_code(done()), exit_code_of(done())) == ("AWAITING_ACCEPTANCE", 0)
    assert run_result(done())["suggested_next"] == {"way_on": "accept", "command": "aiflow accept RQ-1"}
    active = run_result(ready_to_commit(in_step()))
    assert (active["reason_code"], active["suggested_next"]) == (None, {"way_on": None, "command": None})
    assert outcome_code(crashed(in_step(), at(5))) == "PROCESS_CRASHED"
    assert len(PLAN) == len(active["steps"])
