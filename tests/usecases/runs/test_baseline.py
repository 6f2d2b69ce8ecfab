"""The tests of the base (RUN-17): before the first agent call, once per commit and commands, off where somebody says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from aiflow.adapters.memory.repository import HEADS, MAIN
from aiflow.adapters.memory.time import PlayedTime
from aiflow.domain.agents.call import AgentCall, AgentReply
from aiflow.domain.lifecycle import RunState
from aiflow.domain.programs import End, Ended
from aiflow.domain.reasons import ExitCode
from aiflow.domain.request import RequestId
from aiflow.domain.runs.log_names import BASELINE_LOG
from aiflow.domain.runs.resume import Goal, ResumeMode
from aiflow.domain.runs.run import Run
from aiflow.domain.runs.timeline import timeline
from aiflow.domain.runs.worktree import Place
from aiflow.settings import Source, settle
from aiflow.usecases.engine import Engine
from aiflow.usecases.runs.logs import last_line, log_number, read_log, read_logs
from aiflow.usecases.runs.recover import recover_run
from aiflow.usecases.runs.resume import ResumeWish, resume_run
from aiflow.usecases.runs.start import start_run
from aiflow.usecases.shapes.runs import exit_code_of
from memory_engine import MemoryCheckout, MemoryProcess, obliging

pytestmark = pytest.mark.spec("RUN-17")

ONE, TWO = RequestId("RQ-1"), RequestId("RQ-2")
RED = b"red\n"


@dataclass
class Bench:
    """A checkout whose tests fail while there is a file `red`; `calls` is who was called, in order, and where."""

    checkout: MemoryCheckout = field(default_factory=MemoryCheckout)
    calls: list[str] = field(default_factory=list)
    meanwhile: Callable[[], object] = lambda: None

    def __post_init__(self) -> None:
        self.configure()
        self.checkout.workshop.run_shell = self._shell
        self.checkout.add(ONE)
        self.checkout.add(TWO)

    def configure(self, flags: Any = None, **more: Any) -> None:
        """Set the tests, and what else a file or a flag says."""
        layers = {Source.FILE: {"tests.unit": "make test", **more}, Source.FLAG: flags or {}}
        self.checkout.settings = settle(layers)

    @property
    def engine(self) -> Engine:
        """The engine of a new process."""
        return MemoryProcess(self.checkout, 7, PlayedTime(), self._script).engine()

    def start(self, request_id: RequestId = ONE) -> Run:
        """Run a request."""
        return start_run(self.engine, request_id)

    def resume(self, run: Run, **how: Any) -> Run:
        """Resume a run."""
        return resume_run(self.engine, run, ResumeWish(**how))

    def commit(self, **files: bytes | None) -> str:
        """Commit to the base branch."""
        repository = self.checkout.repository
        base = self.checkout.base
        tree = {**repository.files_of(base), **{name: data for name, data in files.items() if data is not None}}
        kept = repository.keep_tree({name: data for name, data in tree.items() if files.get(name, b"") is not None})
        repository.refs[f"{HEADS}{MAIN}"] = repository.make_commit(kept, (base,), "A person's\n")
        return self.checkout.base

    def _shell(
        self, command: str, place: Place, output: Callable[[bytes], None], should_stop: Callable[[], bool]
    ) -> Ended:
        self.calls.append(command)
        self.meanwhile()
        if should_stop():
            return Ended(End.STOPPED)
        files = self.checkout.repository.worktrees[place.path].files
        output(b"tested\n")
        files["left"] = b"by the tests\n"
        return Ended(End.EXITED, 1 if "red" in files else 0)

    def _script(self, call: AgentCall, *more: Any) -> AgentReply:
        self.calls.append(call.role.value)
        assert "left" not in self.checkout.repository.worktrees[call.cwd].files
        return obliging(self.checkout)(call, *more)


WORK = ["planner", "implementer", "make test", "qa"]


def events(run: Run) -> list[str]:
    return [line.event for line in run.history]


def test_the_tests_run_on_the_base_before_the_first_agent_is_called_and_have_a_log_of_their_own() -> None:
    bench = Bench()
    run = bench.start()
    assert run.state is RunState.DONE
    assert bench.calls == ["make test", *WORK]
    assert events(run)[:4] == ["PLANNING_STARTED", "BASELINE", "TESTED", "PLANNED"]
    assert [(stage.name, stage.mark) for stage in timeline(run)][:2] == [("baseline", "done"), ("plan", "done")]
    assert log_number(run, "baseline") == BASELINE_LOG
    [log] = read_logs(bench.engine, run, BASELINE_LOG)
    assert log.path.endswith("/logs/baseline.log")
    assert log.text.startswith("=== unit tests: make test\n[aiflow] on main at ")
    assert "\ntested\n" in log.text
    assert "put back what the tests changed: left" in log.text
    assert [part.number for part in read_logs(bench.engine, run)] == [BASELINE_LOG, 0, 1]
    assert "tested" not in last_line(bench.engine, run)  # the step's log is the newest


def test_they_run_once_for_a_commit_and_commands() -> None:
    bench = Bench()
    bench.start()
    bench.calls.clear()
    run = bench.start(TWO)
    assert bench.calls == WORK
    assert (events(run)[1], run.history[1].note) == ("TESTED", "known")
    assert read_log(bench.engine, run, BASELINE_LOG).text == ""
    assert next((stage.name, stage.mark, stage.seconds) for stage in timeline(run)) == ("baseline", "done", 0)
    bench.calls.clear()
    bench.checkout.add("RQ-3")
    bench.configure(**{"tests.e2e": "make e2e"})
    bench.start(RequestId("RQ-3"))
    assert bench.calls[:3] == ["make test", "make e2e", "planner"]
    bench.calls.clear()
    bench.checkout.add("RQ-4")
    bench.commit(more=b"1\n")
    bench.start(RequestId("RQ-4"))
    assert bench.calls[:3] == ["make test", "make e2e", "planner"]


def test_a_commit_of_request_files_alone_needs_no_more_tests() -> None:
    bench = Bench()
    bench.start()
    bench.commit(**{"requests/RQ-2.md": b"status: ready\n"})
    bench.calls.clear()
    bench.start(TWO)
    assert bench.calls == WORK
    bench.checkout.add("RQ-3")
    bench.commit(**{"requests/RQ-3.md": b"status: ready\n", "requests.py": b"1\n"})
    bench.calls.clear()
    bench.start(RequestId("RQ-3"))
    assert bench.calls == ["make test", *WORK]


def test_a_merge_that_was_tested_when_it_was_accepted_needs_no_more_tests() -> None:
    bench = Bench()
    bench.configure(accept="auto")
    assert bench.start().accepted_as == bench.checkout.base
    bench.calls.clear()
    assert bench.start(TWO).accepted_as
    assert bench.calls == [*WORK, "make test"]  # the second is the merge's


def test_red_tests_stop_the_run_before_any_agent_is_called_and_count_for_nothing() -> None:
    bench = Bench()
    base = bench.commit(red=RED)
    run = bench.start()
    assert bench.calls == ["make test"]
    assert (run.state, run.planning_calls, run.usage.calls, run.is_active) == (RunState.NEEDS_INPUT, 0, 0, False)
    assert run.error is not None
    assert (run.error.reason_code, run.error.evidence.command) == ("BASE_TESTS_FAILED", "make test")
    assert (run.error.evidence.exit_code, run.error.evidence.stderr_snippet) == (1, "tested")
    assert run.error.evidence.log_paths == (f"runs/{ONE}/{run.run_id}/logs/baseline.log",)
    assert exit_code_of(run) == ExitCode.TESTS
    assert [(stage.name, stage.mark) for stage in timeline(run)][:2] == [("baseline", "stopped"), ("plan", "todo")]
    errors = bench.engine.runs.errors(run)
    assert errors is not None
    assert errors["suggested_next"] == {"way_on": "resume", "command": "aiflow resume RQ-1"}
    assert f"[aiflow] on main at {base[:12]}" in read_log(bench.engine, run, BASELINE_LOG).text
    for _ in range(bench.engine.limits.step_retries + 2):
        run = bench.resume(run)
        assert (run.error.reason_code if run.error else "", run.planning_retries) == ("BASE_TESTS_FAILED", 0)
    assert set(bench.calls) == {"make test"}


def test_a_resume_tests_the_base_again_as_it_is_by_then() -> None:
    bench = Bench()
    bench.commit(red=RED)
    run = bench.start()
    mended = bench.commit(red=None)
    bench.calls.clear()
    run = bench.resume(run)
    assert bench.calls == ["make test", *WORK]
    assert (run.state, run.place.base_commit) == (RunState.DONE, mended)
    assert "red" not in bench.checkout.repository.files_of(run.tip)
    assert run.visit.feedback == ()
    marks = [(stage.name, stage.mark, len(stage.attempts)) for stage in timeline(run)]
    assert marks[:2] == [("baseline", "done", 2), ("plan", "done", 1)]


def test_a_resume_stays_where_a_person_committed_on_the_runs_branch() -> None:
    bench = Bench()
    bench.commit(red=RED)
    run = bench.start()
    repository = bench.checkout.repository
    mended = repository.make_commit(repository.keep_tree({"README": b"hello\n"}), (run.tip,), "Mend\n")
    repository.refs[f"{HEADS}{run.place.branch}"] = mended
    repository.worktrees[run.place.path].files.pop("red")
    bench.commit(other=b"1\n")
    run = bench.resume(run)
    assert (run.state, run.place.base_commit) == (RunState.DONE, mended)


def test_a_new_run_in_its_place_tests_again_and_its_planner_is_told_nothing_of_it() -> None:
    bench = Bench()
    bench.commit(red=RED)
    run = bench.start()
    bench.commit(red=None)
    new = bench.resume(run, goal=Goal(ResumeMode.REPLAN))
    assert (new.state, new.replaces, new.feedback) == (RunState.DONE, run.run_id, ())
    assert bench.calls == ["make test", "make test", *WORK]


@pytest.mark.parametrize("said", ["setting", "request", "flag", "flag_over_request", "no_tests"])
def test_it_is_left_out_where_somebody_says_so(said: str) -> None:
    bench = Bench()
    bench.commit(red=RED)
    off = {"tests.baseline": False}
    if said == "setting":
        bench.configure(**off)
    elif said == "request":
        bench.checkout.add(ONE, baseline="no")
    elif said == "no_tests":
        bench.configure(**{"tests.unit": " "})
    else:
        bench.checkout.add(ONE, **({"baseline": "yes"} if said == "flag_over_request" else {}))
        bench.configure(off)
    run = bench.start()
    assert bench.calls[0] == "planner"
    assert "BASELINE" not in events(run)
    assert next(stage.name for stage in timeline(run)) == "plan"


def test_a_request_wants_it_whatever_the_settings_say() -> None:
    bench = Bench()
    bench.configure(**{"tests.baseline": False})
    bench.checkout.add(ONE, baseline="yes")
    bench.start()
    assert bench.calls[:2] == ["make test", "planner"]


@pytest.mark.parametrize("said", ["request", "flag"])
def test_a_run_that_stopped_for_it_goes_on_without_it(said: str) -> None:
    bench = Bench()
    bench.commit(red=RED)
    run = bench.start()
    bench.calls.clear()
    if said == "request":
        text = bench.checkout.requests.texts[ONE]
        bench.checkout.requests.texts[ONE] = text.replace("---\n", "---\nbaseline: no\n", 1)
    else:
        bench.configure({"tests.baseline": False})
    run = bench.resume(run)
    assert bench.calls[0] == "planner"
    assert run.course.has_baseline is False
    assert [(stage.name, stage.mark) for stage in timeline(run)][:2] == [("baseline", "fail"), ("plan", "done")]


def test_a_recovery_keeps_to_what_was_settled_when_the_run_began() -> None:
    class DiedError(BaseException):
        pass

    def die() -> None:
        raise DiedError

    bench = Bench()
    bench.meanwhile = die
    with pytest.raises(DiedError):
        bench.start()
    bench.meanwhile = lambda: None
    bench.configure({"tests.baseline": False})
    run = recover_run(bench.engine, ONE)
    assert run is not None
    assert (run.state, bench.calls) == (RunState.DONE, ["make test", "make test", *WORK])


def test_a_recovery_begins_on_the_base_as_it_is_by_then() -> None:
    class DiedError(BaseException):
        pass

    def die() -> None:
        raise DiedError

    bench = Bench()
    bench.commit(red=RED)
    bench.meanwhile = die
    with pytest.raises(DiedError):
        bench.start()
    bench.meanwhile = lambda: None
    fixed = bench.commit(red=None)
    run = recover_run(bench.engine, ONE)
    assert run is not None
    assert (run.state, run.place.base_commit) == (RunState.DONE, fixed)


@pytest.mark.spec("RUN-17", "RUN-18")
@pytest.mark.parametrize("said", ["flag", "request"])
def test_a_resume_keeps_to_the_plan_and_reviews_that_were_settled_when_the_run_began(said: str) -> None:
    bench = Bench()
    bench.commit(red=RED)
    if said == "flag":
        bench.configure({"agent.plan": "never", "agent.review": "never"})
    run = bench.start()
    bench.configure()
    if said == "request":
        bench.checkout.add(ONE, plan="no", review="no")
    bench.commit(red=None)
    bench.calls.clear()
    assert bench.resume(run).state is RunState.DONE
    assert bench.calls == (["make test", "implementer", "make test"] if said == "flag" else ["make test", *WORK])


def test_a_person_who_cancels_does_not_wait_for_it() -> None:
    bench = Bench()
    engine = bench.engine
    bench.meanwhile = lambda: engine.control.ask_cancel(next(iter(bench.checkout.runs.runs))[1])
    run = bench.start()
    assert run.error is not None
    assert run.error.reason_code == "CANCELLED"
    assert bench.calls == ["make test"]
