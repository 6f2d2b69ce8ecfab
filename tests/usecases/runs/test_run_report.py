"""What a run did (RUN-19): told in the report, in its shape and in `stage.json`, as it happened."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest

from aiflow.adapters.memory.time import PlayedTime
from aiflow.adapters.run_folders.stage_file import stage_of
from aiflow.adapters.run_folders.stage_reading import run_of
from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.call import AgentCall, AgentReply
from aiflow.domain.agents.usage import Usage
from aiflow.domain.programs import End, Ended
from aiflow.domain.request import RequestId
from aiflow.domain.runs.report import RoleUse, report_of
from aiflow.domain.runs.resume import Goal, ResumeMode
from aiflow.domain.runs.run import Run
from aiflow.domain.runs.step_record import EndedTest, Footprint, Review, StepRecord
from aiflow.domain.runs.worktree import FileChange
from aiflow.messages import Texts
from aiflow.settings import Source, settle
from aiflow.usecases.runs.report import read_report
from aiflow.usecases.runs.resume import ResumeWish, resume_run
from aiflow.usecases.runs.start import start_run
from aiflow.usecases.shapes.report_words import role_name
from aiflow.usecases.shapes.run_report import report_shape
from memory_engine import MemoryCheckout, MemoryProcess, plan

CALL = Usage(1, 1_000, 400, 200, 0.25)
SETTINGS: dict[str, Any] = {
    "tests.unit": "make unit",
    "tests.e2e": "make e2e",
    "tests.baseline": False,
    "limits.role_attempts": 3,
}


class Bench:
    """A run of two steps: what its tests and reviewers say, call by call; each test takes ten seconds, a call three."""

    def __init__(self, tests: str = "", reviews: tuple[str, ...] = (), settings: dict[str, Any] = SETTINGS) -> None:
        self.checkout = MemoryCheckout(settings=settle({Source.FILE: settings}))
        self.time = PlayedTime()
        self.tests, self.reviews = iter(tests), iter(reviews)
        self.numbers = itertools.count(1)
        self.checkout.workshop.run_shell = self._shell
        self.engine = MemoryProcess(self.checkout, 7, self.time, self._script).engine()
        self.request_id = self.checkout.add("RQ-1")

    def run(self) -> Run:
        return start_run(self.engine, RequestId(self.request_id))

    def report(self, run: Run) -> str:
        return read_report(self.engine, run)[1] or ""

    def _shell(self, _line: str, *_more: Any) -> Ended:
        self.time.sleep(10)
        return Ended(End.EXITED, int(next(self.tests, "0")))

    def _script(self, call: AgentCall, *_more: Any) -> AgentReply:
        self.time.sleep(3)
        if call.role is Role.PLANNER:
            return AgentReply(plan("S01", "S02").answer, usage=CALL)
        if call.role is Role.QA:
            findings = [found] if (found := next(self.reviews, "")) else []
            verdict = {"verdict": "fail" if findings else "pass", "findings": findings}
            return AgentReply(json.dumps(verdict).encode(), usage=CALL)
        files = self.checkout.repository.worktrees[call.cwd].files
        files[f"{call.step.id if call.step else ''}.txt"] = b"line\n" * next(self.numbers)
        return AgentReply(b'{"status":"done","summary":"Wrote it.\\n| All | of it. |"}', usage=CALL)


def kept(run: Run) -> Run:
    """The same run as another process reads it."""
    read = run_of(json.loads(json.dumps(stage_of(run))))
    assert read is not None
    return read


@pytest.mark.spec("RUN-19", "AGT-4")
def test_a_run_knows_what_it_did_and_what_each_role_used() -> None:
    bench = Bench("1", ("It lacks a test.",))
    run = kept(bench.run())
    passed = (EndedTest("unit", 10.0, None, 0), EndedTest("e2e", 10.0, None, 0))
    assert [(step.step_id, step.attempts, step.test_runs, step.summary) for step in report_of(run).steps] == [
        ("S01", 3, 3, "Wrote it.\n| All | of it. |"),
        ("S02", 1, 1, "Wrote it.\n| All | of it. |"),
    ]
    assert [step.record for step in report_of(run).steps] == [
        StepRecord(
            Footprint((FileChange("S01.txt", 3, 0),), 0, 3, 0),
            passed,
            (Review(is_passed=False, findings=("It lacks a test.",)), Review(is_passed=True)),
        ),
        StepRecord(Footprint((FileChange("S02.txt", 4, 0),), 0, 4, 0), passed, (Review(is_passed=True),)),
    ]
    assert report_of(run).roles == (
        RoleUse("planner", Usage(1, 1_000, 400, 200, 0.25, 3.0)),
        RoleUse("implementer", Usage(4, 4_000, 1_600, 800, 1.0, 12.0)),
        RoleUse("qa", Usage(3, 3_000, 1_200, 600, 0.75, 9.0)),
        RoleUse(None, Usage(seconds=70.0)),
    )
    assert sum((each.usage for each in report_of(run).roles), Usage()) == run.usage


@pytest.mark.spec("RUN-19")
def test_the_report_says_it_in_words() -> None:
    bench = Bench("1", ("It lacks a test.",))
    report = bench.report(bench.run())
    assert (
        "### S01 Do S01\n\n> Wrote it.\n> | All | of it. |\n\n- Files changed: 1, +3 −0\n  - `S01.txt` +3 −0\n"
        "- Tests: unit passed in 0:00:10, e2e passed in 0:00:10\n"
        "- Review 1: not passed\n  > - It lacks a test.\n- Review 2: passed\n"
    ) in report
    assert "| implementer | 4 | 4.8k | $1.00 | 0:00:12 |" in report
    assert "| tests and set-up |  |  |  | 0:01:10 |" in report
    assert "| all | 8 | 9.6k | $2.00 | 0:01:34 |" in report
    assert "Next: `aiflow accept RQ-1`" in report


@pytest.mark.spec("RUN-19")
def test_the_shape_says_it_all_as_data() -> None:
    bench = Bench("1", ("It lacks a test.",))
    run = bench.run()
    shape = report_shape(*read_report(bench.engine, run))
    assert shape["report"] == bench.report(run)
    assert (shape["state"], shape["reason_code"], shape["title"]) == ("DONE", "AWAITING_ACCEPTANCE", "A title")
    assert shape["suggested_next"] == {"way_on": "accept", "command": "aiflow accept RQ-1"}
    assert shape["steps"][0] == {
        "step_id": "S01",
        "title": "Do S01",
        "is_done": True,
        "commit": run.steps["S01"].commit,
        "attempts": 3,
        "test_runs": 3,
        "summary": "Wrote it.\n| All | of it. |",
        "changes": {"files": [{"path": "S01.txt", "added": 3, "deleted": 0}], "more": 0, "added": 3, "deleted": 0},
        "tests": [
            {"kind": kind, "seconds": 10.0, "reason_code": None, "exit_code": 0, "has_passed": True}
            for kind in ("unit", "e2e")
        ],
        "reviews": [
            {"is_passed": False, "findings": ["It lacks a test."]},
            {"is_passed": True, "findings": []},
        ],
    }
    assert [(each["role"], each["calls"], each["tokens"]) for each in shape["roles"]] == [
        ("planner", 1, 1_200),
        ("implementer", 4, 4_800),
        ("qa", 3, 3_600),
        (None, 0, 0),
    ]


@pytest.mark.spec("RUN-19", "RUN-9")
def test_a_stop_says_how_far_it_came_and_the_next_end_only_what_is_new() -> None:
    bench = Bench("00" + "111")
    run = bench.run()
    assert run.state == "NEEDS_INPUT"
    first = bench.report(run)
    assert report_of(kept(run)).steps[1].record.tests == (EndedTest("unit", 10.0, "UNIT_TEST_FAILED", 1),)
    assert "### S02 Do S02\n\n> Wrote it." in first
    assert "- Tests: unit failed in 0:00:10 (UNIT_TEST_FAILED)" in first
    assert "Next:" not in first  # the reason's own advice says it
    run = resume_run(bench.engine, run, ResumeWish(Goal(ResumeMode.RETRY_STEP)))
    assert run.state == "DONE"
    second = bench.report(run).removeprefix(first)
    assert "### S01" not in second
    assert "### S02" in second
    assert "- Tests: unit passed in 0:00:10, e2e passed in 0:00:10" in second


@pytest.mark.spec("RUN-19")
def test_a_step_that_is_done_again_from_its_start_tells_nothing_of_before() -> None:
    bench = Bench("0000" + "111", ("One.",))
    run = bench.run()
    assert [len(work.record.reviews) for work in run.steps.values()] == [2, 0]
    again = resume_run(bench.engine, run, ResumeWish(Goal(ResumeMode.RETRY_STEP, "S01")))
    assert [len(work.record.reviews) for work in again.steps.values()] == [1, 1]


@pytest.mark.spec("RUN-19")
def test_without_tests_the_report_says_so() -> None:
    bench = Bench(settings={})
    assert bench.report(bench.run()).count("- Tests: none ran\n") == 2


@pytest.mark.spec("RUN-19", "RUN-13")
def test_a_call_that_met_a_used_up_quota_is_none_of_its_roles() -> None:
    bench = Bench()
    asked: list[Role] = []
    script: Callable[..., AgentReply] = bench._script

    def used_up(call: AgentCall, *more: Any) -> AgentReply:
        asked.append(call.role)
        return AgentReply(reason_code="AGENT_QUOTA") if len(asked) == 1 else script(call, *more)

    engine = MemoryProcess(bench.checkout, 7, bench.time, used_up).engine()
    run = start_run(engine, RequestId("RQ-1"))
    assert asked[:2] == [Role.PLANNER, Role.PLANNER]
    assert (run.roles["planner"].calls, run.usage.calls) == (1, 5)


@pytest.mark.spec("RUN-19", "RUN-16")
def test_what_an_older_version_did_not_tell_apart_is_said_to_be_of_no_role() -> None:
    stage = stage_of(Bench().run())
    for name in ("roles", "usage"):
        assert name in stage
    del stage["roles"]
    for step in stage["steps"]:
        for name in ("changes", "test_results", "reviews"):
            del step[name]
    told = report_of(run_of(stage) or pytest.fail("unreadable"))
    assert [each.role for each in told.roles] == [None]
    assert told.roles[0].usage == told.usage
    assert role_name(None, told.usage, Texts("en")) == "not recorded by role"
    assert [step.record for step in told.steps] == [StepRecord(), StepRecord()]
