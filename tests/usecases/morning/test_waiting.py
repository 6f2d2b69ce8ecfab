"""What waits for a person, in full: in the order of the page, with its matter, and what the answer unblocks."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from aiflow.adapters.memory.time import PlayedTime
from aiflow.domain.agents.call import Brief
from aiflow.domain.agents.usage import Usage
from aiflow.domain.morning.waiting import WaitingList
from aiflow.domain.runs.events import stopped
from aiflow.domain.runs.run import Evidence, Run, RunError
from aiflow.domain.runs.step_work import StepWork
from aiflow.messages import Texts
from aiflow.usecases.morning.waiting import tell_waiting
from memory_engine import MemoryCheckout, MemoryProcess, obliging
from run_builders import PLACE, at, done, in_step, in_tests

pytestmark = pytest.mark.spec("WEB-1")
TEXTS = Texts("en")
ASKED = RunError("NEEDS_CLARIFICATION", "", question="Which word?", choices=("late", "overdue"))
FAILED = RunError(
    "RETRY_LIMIT_EXCEEDED",
    "1 of 8 tests",
    cause="UNIT_TEST_FAILED",
    evidence=Evidence(command="make test", exit_code=1, stderr_snippet="FAIL: test_x\nAssertionError: 1 != 2\n"),
)


class Scene:
    """A checkout in memory with runs that stopped."""

    def __init__(self) -> None:
        self.checkout = MemoryCheckout()
        self.engine = MemoryProcess(self.checkout, 7, PlayedTime(), obliging(self.checkout)).engine()
        self.asked: list[int] = []

    def waits(self, request_id: str, run: Run, minutes: float, status: str = "blocked", **keys: str) -> Run:
        """Keep a run that stopped at a time, of a request of its own."""
        self.checkout.add(request_id, status, **keys)
        later = timedelta(minutes=minutes)
        history = tuple(replace(line, at=line.at + later) for line in run.history)
        named = replace(run, request_id=request_id, run_id=f"RUN-20260102-030405-{request_id:0>6}", history=history)
        self.engine.runs.create(named, Brief(request_id, "A title", "", "P2"))
        return named

    def tell(self, **how: Any) -> WaitingList:
        return tell_waiting(self.engine, TEXTS, **how)


@pytest.fixture
def scene() -> Scene:
    return Scene()


def to_accept(scene: Scene) -> Run:
    """A run that is done, with eight files to accept."""
    repository = scene.checkout.repository
    files = {**repository.files_of(scene.checkout.base), **{f"{n}.txt": b"one\ntwo\n" for n in range(8)}}
    tip = repository.make_commit(repository.keep_tree(files), (scene.checkout.base,), "work")
    run = done()
    steps = {**run.steps, "S03": StepWork(tip, tip, is_done=True)}
    return replace(run, place=replace(PLACE, base_commit=scene.checkout.base), steps=steps, usage=Usage(cost_usd=1.72))


def test_questions_come_first_then_what_stopped_then_what_is_to_accept_and_the_oldest_of_each(scene: Scene) -> None:
    scene.waits("A", done(), 0)
    scene.waits("B", stopped(in_tests(), FAILED, at(12)), 20)
    scene.waits("C", stopped(in_step(), ASKED, at(12)), 30)
    scene.waits("D", stopped(in_step(), ASKED, at(12)), 10)
    scene.waits("E", stopped(in_tests(), FAILED, at(12)), 5)
    scene.waits("F", in_step(), 0, status="running")  # nobody works on it
    scene.checkout.add("G", "running")  # nothing is left of its run
    scene.checkout.add("H")
    found = scene.tell()
    assert [(each.kind.value, each.request_id) for each in found.items] == [
        ("question", "D"),
        ("question", "C"),
        ("stopped", "G"),
        ("stopped", "F"),
        ("stopped", "E"),
        ("stopped", "B"),
        ("acceptance", "A"),
    ]
    assert [each.reason_code for each in found.items][2:4] == ["RUN_LOST", "PROCESS_CRASHED"]
    assert found.items[2].run_id is None
    assert [[(way.kind.value, way.is_recommended) for way in each.ways] for each in found.items[2:4]] == [
        [("set", True)],
        [("resume", True), ("retry_step", False), ("replan", False)],
    ]
    few = scene.tell(limit=2)
    assert ([each.request_id for each in few.items], few.total, few.more) == (["D", "C"], 7, 5)
    assert dict(few.by_kind) == {"question": 2, "stopped": 4, "acceptance": 1}


def test_a_question_with_its_choices_and_what_it_unblocks(scene: Scene) -> None:
    scene.waits("A", stopped(in_step(2), ASKED, at(12)), 0)
    scene.checkout.add("B", depends_on="[A]")
    scene.checkout.add("C", depends_on="[B]")
    (item,) = scene.tell().items
    assert (item.question, item.choices, item.title) == ("Which word?", ("late", "overdue"), "A title")
    assert (item.where.step_id, item.where.step_number, item.where.steps) == ("S02", 2, 3)
    assert (item.where.role, item.where.step_title) == ("implementer", "Second")
    assert tuple(item.unblocks) == (("B",), ("C",), ("B",))
    assert item.since == at(12)
    assert [(way.kind.value, way.is_recommended) for way in item.ways] == [
        ("answer", True),
        ("retry_step", False),
        ("replan", False),
    ]


def test_failed_tests_with_the_lines_that_tell_and_the_retries(scene: Scene) -> None:
    run = stopped(in_tests(), FAILED, at(12))
    scene.waits("A", replace(run, steps={"S01": replace(run.steps["S01"], retries=1)}), 0)
    (item,) = scene.tell().items
    assert (item.reason_code, item.cause, item.summary) == ("RETRY_LIMIT_EXCEEDED", "UNIT_TEST_FAILED", "1 of 8 tests")
    assert item.excerpt == (("FAIL: test_x", "AssertionError: 1 != 2"), 1)
    assert (item.where.retries, item.where.retries_allowed, item.where.role) == (1, 3, None)
    assert (item.where.attempt, item.where.attempts_allowed) == (1, 2)
    assert (item.where.command, item.where.exit_code, item.diff) == ("make test", 1, None)


def test_what_is_to_accept_with_its_files_read_for_all_at_once(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    real = scene.engine.merging.sizes

    def sizes(pairs: Any) -> Any:
        scene.asked.append(len(pairs))
        return real(pairs)

    monkeypatch.setattr(scene.engine.merging, "sizes", sizes)
    scene.waits("A", to_accept(scene), 0)
    scene.waits("B", done(), 1)
    scene.waits("C", replace(to_accept(scene), error=RunError("MERGE_CONFLICT", "")), 2)
    first, gone, conflict = scene.tell().items
    assert scene.asked == [3]
    assert first.diff is not None
    assert (len(first.diff.files), first.diff.more, first.diff.added, first.diff.deleted) == (6, 2, 16, 0)
    assert (first.reason_code, first.cost_usd, first.worked_seconds) == ("AWAITING_ACCEPTANCE", 1.72, 21 * 60.0)
    assert gone.diff is not None
    assert (gone.diff.is_gone, gone.cost_usd) == (True, None)
    assert conflict.reason_code == "MERGE_CONFLICT"
    assert scene.tell(limit=1).items[0].request_id == "A"
    assert scene.asked == [3, 1]
