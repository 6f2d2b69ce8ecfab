"""The run after a send-back (REQ-6a): it continues the branch, in line with its base, and its agents know what was said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from aiflow.adapters.memory.repository import HEADS, MAIN
from aiflow.adapters.memory.time import PlayedTime
from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.call import AgentCall, AgentReply, Feedback
from aiflow.domain.lifecycle import RunState
from aiflow.domain.programs import End, Ended
from aiflow.domain.request import RequestId
from aiflow.domain.runs.resume import Goal, ResumeMode
from aiflow.domain.runs.run import Run
from aiflow.domain.runs.timeline import timeline
from aiflow.domain.runs.worktree import Place
from aiflow.errors import AiflowError
from aiflow.settings import Source, settle
from aiflow.usecases.clean.clean_up import CleanWish, clean_up, plan_clean_up, rules_for
from aiflow.usecases.engine import Engine
from aiflow.usecases.runs.accept import accept_run, send_back
from aiflow.usecases.runs.diff import diff_run
from aiflow.usecases.runs.resume import ResumeWish, resume_run
from aiflow.usecases.runs.start import start_run
from memory_engine import MemoryCheckout, MemoryProcess, plan

pytestmark = pytest.mark.spec("REQ-6a")

ONE = RequestId("RQ-1")
WORDS = "Greet in two languages.\n\nhello.txt:1: in French, too"


@dataclass
class Bench:
    """A checkout with tests that fail while a file `red` is there; each implementer's call writes what `writes` says."""

    checkout: MemoryCheckout = field(default_factory=MemoryCheckout)
    calls: list[AgentCall] = field(default_factory=list)
    tests: list[str] = field(default_factory=list)
    writes: list[dict[str, bytes | None]] = field(default_factory=list)
    steps: tuple[str, ...] = ("S01",)

    def __post_init__(self) -> None:
        self.configure()
        self.checkout.workshop.run_shell = self._shell
        self.checkout.add(ONE)

    def configure(self, **more: Any) -> None:
        self.checkout.settings = settle({Source.FILE: {"tests.unit": "make test", **more}})

    @property
    def engine(self) -> Engine:
        return MemoryProcess(self.checkout, 7, PlayedTime(), self._script).engine()

    def start(self, *writes: dict[str, bytes | None]) -> Run:
        self.writes = list(writes)
        self.calls.clear()
        self.tests.clear()
        return start_run(self.engine, ONE)

    def back(self, run: Run, **how: Any) -> Run:
        return send_back(self.engine, run, WORDS, **how)

    def load(self, run: Run) -> Run:
        found = self.engine.runs.load(run.request_id, run.run_id)
        assert found is not None
        return found

    def set_status(self, status: str) -> None:
        """Let the request have a status that nobody at work gave it."""
        text, now = self.checkout.requests.texts[ONE], self.checkout.status(ONE)
        self.checkout.requests.texts[ONE] = text.replace(f"status: {now}", f"status: {status}")

    def commit(self, **files: bytes) -> str:
        """Commit to the base branch."""
        repository, base = self.checkout.repository, self.checkout.base
        tree = {**repository.files_of(base), **{name.replace("_", "."): data for name, data in files.items()}}
        repository.refs[f"{HEADS}{MAIN}"] = repository.make_commit(repository.keep_tree(tree), (base,), "A person's\n")
        return self.checkout.base

    def tip(self, run: Run) -> str:
        return self.checkout.repository.refs[f"{HEADS}{run.place.branch}"]

    def files(self, name: str) -> dict[str, bytes]:
        return dict(self.checkout.repository.files_of(name))

    def of(self, role: Role) -> list[AgentCall]:
        return [call for call in self.calls if call.role is role]

    def _shell(
        self, command: str, place: Place, output: Callable[[bytes], None], should_stop: Callable[[], bool]
    ) -> Ended:
        files = self.checkout.repository.worktrees[place.path].files
        self.tests.append(" ".join(sorted(files)))
        output(b"tested\n")
        return Ended(End.EXITED, 1 if "red" in files else 0)

    def _script(self, call: AgentCall, *_more: Any) -> AgentReply:
        self.calls.append(call)
        if call.role is Role.PLANNER:
            return plan(*self.steps)
        if call.role is Role.QA:
            return AgentReply(b'{"verdict":"pass"}')
        files = self.checkout.repository.worktrees[call.cwd].files
        for path, data in (self.writes.pop(0) if self.writes else {}).items():
            files.pop(path, None)
            files.update({path: data} if data is not None else {})
        return AgentReply(b'{"status":"done","summary":"Greeted the world"}')


@pytest.fixture
def bench() -> Bench:
    return Bench()


def events(run: Run) -> list[str]:
    return [line.event for line in run.history]


def test_it_begins_at_the_branch_and_plans_what_is_left_to_do(bench: Bench) -> None:
    first = bench.start({"hello.txt": b"hello\n"})
    bench.back(first)
    second = bench.start({"hello.txt": b"hello\nbonjour\n"})
    assert second.state is RunState.DONE
    assert (second.continues, second.begun_at) == ((first.run_id, first.tip), first.tip)
    assert bench.load(first).continued_by == second.run_id
    assert [step.id for step in second.plan] == ["S01"]
    assert second.steps["S01"].base == first.tip
    assert bench.checkout.repository.commits[second.tip].parents == (first.tip,)
    (planner,) = bench.of(Role.PLANNER)
    assert planner.former is not None
    assert planner.former.run_id == planner.continues == first.run_id
    assert [(step.is_done, step.summary) for step in planner.former.steps] == [(True, "Greeted the world")]
    assert planner.former_diff is not None
    assert planner.former_diff().endswith("+hello\n")
    assert Feedback("SENT_BACK", WORDS) in planner.feedback
    assert Feedback("SENT_BACK", WORDS) in bench.of(Role.IMPLEMENTER)[0].feedback
    assert second.place.path != first.place.path


def test_the_whole_change_is_shown_and_merged(bench: Bench) -> None:
    first = bench.start({"hello.txt": b"hello\n"})
    bench.back(first)
    second = bench.start({"world.txt": b"world\n"})
    assert [file.path for file in diff_run(bench.engine, second).files] == ["hello.txt", "world.txt"]
    assert [file.path for file in diff_run(bench.engine, second, "S01").files] == ["world.txt"]
    accepted = accept_run(bench.engine, second)
    assert accepted.accepted_as == bench.checkout.base
    assert {"hello.txt", "world.txt"} <= set(bench.files(f"{HEADS}{MAIN}"))


def test_a_base_that_has_moved_is_merged_in_and_tested_before_the_plan(bench: Bench) -> None:
    first = bench.start({"hello.txt": b"hello\n"})
    bench.back(first)
    base = bench.commit(other_txt=b"other\n")
    second = bench.start({"world.txt": b"world\n"})
    assert second.state is RunState.DONE
    assert [(step.id, step.title) for step in second.plan] == [("S01", "Merge main"), ("S02", "Do S01")]
    merged = second.steps["S01"].base or ""
    assert bench.checkout.repository.commits[merged].parents == (first.tip, base)
    assert second.steps["S01"].merges == base
    assert [call.role.value for call in bench.calls] == ["planner", "implementer", "qa"]
    # The base, then the merge, then the step.
    assert bench.tests == ["README other.txt", "README hello.txt other.txt", "README hello.txt other.txt world.txt"]
    assert [file.path for file in diff_run(bench.engine, second).files] == ["hello.txt", "world.txt"]
    assert [(each.name, each.mark) for each in timeline(second)] == [
        ("baseline", "done"),
        ("S01", "done"),
        ("plan", "done"),
        ("S02", "done"),
        ("report", "done"),
    ]
    assert accept_run(bench.engine, second).accepted_as


def test_conflicts_are_resolved_before_the_plan(bench: Bench) -> None:
    first = bench.start({"hello.txt": b"hello\n"})
    bench.back(first)
    bench.commit(hello_txt=b"good day\n")
    second = bench.start({"hello.txt": b"hello, good day\n"}, {"world.txt": b"world\n"})
    assert second.state is RunState.DONE
    assert [call.role.value for call in bench.calls] == ["implementer", "qa", "planner", "implementer", "qa"]
    resolving, review, planner, working, _ = bench.calls
    assert resolving.step is not None
    assert resolving.step.title == "Merge main"
    assert [told.reason_code for told in resolving.feedback] == ["MERGE_CONFLICT"]
    assert not review.is_at_the_end
    assert planner.step is None
    assert working.step is not None
    assert working.step.id == "S02"
    assert working.is_at_the_end
    assert second.steps["S02"].base == second.begun_at == second.steps["S01"].commit
    assert bench.files(second.tip)["hello.txt"] == b"hello, good day\n"
    assert events(second)[:8] == [
        "PLANNING_STARTED",
        "BASELINE",
        "TESTED",
        "CONTINUED",
        "BASE_CONFLICTS",
        "IMPLEMENTED",
        "STEP_DONE",
        "PLANNED",
    ]


def test_a_merge_that_breaks_the_tests_is_mended_by_the_implementer(bench: Bench) -> None:
    bench.configure(**{"tests.baseline": False})
    first = bench.start({"hello.txt": b"hello\n"})
    bench.back(first)
    bench.commit(red=b"red\n")
    second = bench.start({"red": None}, {"world.txt": b"world\n"})
    assert second.state is RunState.DONE
    assert [call.role.value for call in bench.calls] == ["implementer", "qa", "planner", "implementer", "qa"]
    assert bench.calls[0].feedback[0].reason_code == "UNIT_TEST_FAILED"
    assert second.steps["S01"].commit


@pytest.mark.spec("RUN-17")
def test_a_red_base_stops_it_before_any_agent_is_called_and_it_continues_afterwards(bench: Bench) -> None:
    first = bench.start({"hello.txt": b"hello\n"})
    bench.back(first)
    bench.commit(red=b"red\n")
    second = bench.start()
    assert (second.state, bench.calls) == (RunState.NEEDS_INPUT, [])
    assert second.error is not None
    assert second.error.reason_code == "BASE_TESTS_FAILED"
    repository = bench.checkout.repository
    kept = repository.keep_tree({"README": b"hello\n", "other.txt": b"x\n"})
    repository.refs[f"{HEADS}{MAIN}"] = repository.make_commit(kept, (bench.checkout.base,), "Mended\n")
    resumed = resume_run(bench.engine, second, ResumeWish())
    assert resumed.state is RunState.DONE
    assert resumed.begun_at
    assert "hello.txt" in bench.files(resumed.tip)


def test_a_dropped_run_is_not_continued_and_its_comment_is_told(bench: Bench) -> None:
    first = bench.start({"hello.txt": b"hello\n"})
    bench.back(first, is_dropped=True)
    second = bench.start({"world.txt": b"world\n"})
    assert (second.continues, second.former) == (None, None)
    assert "hello.txt" not in bench.files(second.tip)
    assert bench.of(Role.PLANNER)[0].feedback == (Feedback("SENT_BACK", WORDS),)


@pytest.mark.parametrize("is_there", [False, True], ids=["gone", "moved to the base"])
def test_a_branch_that_is_gone_is_said_and_the_run_starts_from_the_base(bench: Bench, is_there: bool) -> None:
    first = bench.start({"hello.txt": b"hello\n"})
    bench.back(first)
    repository = bench.checkout.repository
    repository.worktrees.pop(first.place.path)
    repository.refs[f"{HEADS}{first.place.branch}"] = bench.checkout.base
    if not is_there:
        del repository.refs[f"{HEADS}{first.place.branch}"]
    second = bench.start({"world.txt": b"world\n"})
    assert second.state is RunState.DONE
    assert second.continues is None
    assert "FORMER_BRANCH_GONE" in second.warnings
    assert events(second)[0] == "FORMER_BRANCH_GONE"
    assert bench.of(Role.PLANNER)[0].former is not None
    assert "hello.txt" not in bench.files(second.tip)


def test_a_run_lost_after_a_send_back_takes_neither_the_words_nor_the_work_along(bench: Bench) -> None:
    """Its process slept when it lost its lock, say, and left the request `running` when it woke."""
    first = bench.start({"hello.txt": b"hello\n"})
    bench.back(first)
    bench.set_status("running")
    with pytest.raises(AiflowError) as refused:
        bench.start()
    assert refused.value.reason_code == "RUN_LOST"
    bench.set_status("ready")
    rules = rules_for(bench.engine, wish := CleanWish(after_days=0, takes_unmerged=True))
    clean_up(bench.engine, plan_clean_up(bench.engine, wish, rules), rules)
    second = bench.start({"world.txt": b"world\n"})
    assert second.state is RunState.DONE
    assert (second.continues, bench.load(first).continued_by) == ((first.run_id, first.tip), second.run_id)
    assert bench.of(Role.PLANNER)[0].feedback == (Feedback("SENT_BACK", WORDS),)
    assert {"hello.txt", "world.txt"} <= set(bench.files(second.tip))


def test_a_run_that_changes_nothing_of_it_waits_for_a_person(bench: Bench) -> None:
    bench.configure(accept="auto")
    first = bench.start({"hello.txt": b"hello\n", "aiflow.toml": b""})
    assert not first.accepted_as
    bench.back(first)
    second = bench.start()
    assert second.state is RunState.DONE
    assert second.error is not None
    assert second.error.reason_code == "NOTHING_ADDED"
    assert not second.accepted_as
    accepted = accept_run(bench.engine, second)
    assert accepted.accepted_as
    assert not accepted.was_empty
    assert "hello.txt" in bench.files(f"{HEADS}{MAIN}")


def test_a_step_is_done_again_from_the_branch_and_a_new_plan_begins_there_too(bench: Bench) -> None:
    first = bench.start({"hello.txt": b"hello\n"})
    bench.back(first)
    bench.commit(other_txt=b"other\n")
    bench.configure(**{"limits.role_attempts": 1})
    second = bench.start({"red": b"red\n"})
    assert second.state is RunState.NEEDS_INPUT
    assert second.current_step_id == "S02"
    bench.writes = [{"red": b"red\n"}]
    again = resume_run(bench.engine, second, ResumeWish(Goal(ResumeMode.RETRY_STEP)))
    assert again.state is RunState.NEEDS_INPUT
    assert bench.tip(again) == again.begun_at
    bench.writes, bench.calls[:] = [{"world.txt": b"world\n"}], []
    third = resume_run(bench.engine, again, ResumeWish(Goal(ResumeMode.REPLAN)))
    assert third.state is RunState.DONE
    assert (third.replaces, third.continues) == (again.run_id, (first.run_id, again.begun_at))
    (planner,) = bench.of(Role.PLANNER)
    assert planner.former is not None
    assert planner.former.run_id == again.run_id
    assert [step.id for step in planner.former.steps] == ["S01", "S02"]
    assert {told.reason_code for told in planner.feedback} == {"SENT_BACK", "UNIT_TEST_FAILED"}
    assert planner.former_diff is not None
    assert "+red" in planner.former_diff()
    assert {"hello.txt", "other.txt", "world.txt"} <= set(bench.files(third.tip))


@pytest.mark.spec("RUN-6")
def test_a_new_plan_is_told_of_the_one_before_though_nothing_is_continued(bench: Bench) -> None:
    bench.steps = ("S01", "S02")
    bench.configure(**{"limits.role_attempts": 1})
    first = bench.start({"hello.txt": b"hello\n"}, {"half.txt": b"half\n", "red": b"red\n"})
    assert (first.state, first.current_step_id) == (RunState.NEEDS_INPUT, "S02")
    bench.writes, bench.calls[:] = [{"world.txt": b"world\n"}, {}], []
    second = resume_run(bench.engine, first, ResumeWish(Goal(ResumeMode.REPLAN)))
    assert (second.state, second.replaces, second.continues) == (RunState.DONE, first.run_id, None)
    for call in (*bench.of(Role.PLANNER), bench.of(Role.IMPLEMENTER)[0]):
        former = call.former
        assert former is not None
        assert (former.run_id, former.reason_code, call.continues) == (first.run_id, "UNIT_TEST_FAILED", None)
        assert [(step.id, step.title, step.is_done) for step in former.steps] == [
            ("S01", "Do S01", True),
            ("S02", "Do S02", False),
        ]
        assert former.steps[0].summary == "Greeted the world"
        assert former.steps[0].commit == first.steps["S01"].commit
        assert call.former_diff is not None
        assert {"+hello", "+half"} <= set(call.former_diff().splitlines())
    assert [told.reason_code for told in bench.of(Role.PLANNER)[0].feedback] == ["UNIT_TEST_FAILED"]
    assert "hello.txt" not in bench.files(second.tip)


def test_what_is_sent_back_twice_is_continued_twice(bench: Bench) -> None:
    runs = []
    for number in range(3):
        run = bench.start({f"{number}.txt": b"x\n"})
        runs.append(run)
        bench.back(run)
    assert [run.continues.run_id for run in runs if run.continues] == [runs[0].run_id, runs[1].run_id]
    assert {"0.txt", "1.txt", "2.txt"} <= set(bench.files(runs[-1].tip))
    assert runs[-1].feedback == (Feedback("SENT_BACK", WORDS), Feedback("SENT_BACK", WORDS))


def test_a_run_without_a_planner_continues_too(bench: Bench) -> None:
    bench.configure(**{"agent.plan": "never"})
    first = bench.start({"hello.txt": b"hello\n"})
    bench.back(first)
    bench.commit(other_txt=b"other\n")
    second = bench.start({"world.txt": b"world\n"})
    assert second.state is RunState.DONE
    assert [step.id for step in second.plan] == ["S01", "S02"]
    assert {"hello.txt", "other.txt", "world.txt"} <= set(bench.files(second.tip))
