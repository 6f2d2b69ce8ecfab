"""Fewer calls (RUN-18): no planner, no reviewer, where the call, the request or the settings say so."""

from __future__ import annotations

from typing import Any

import pytest

from aiflow.adapters.memory.queue import MemoryStore
from aiflow.adapters.memory.time import PlayedTime
from aiflow.adapters.memory.wake import MemoryBells
from aiflow.domain.agents.call import AgentCall, AgentReply
from aiflow.domain.lifecycle import RunState
from aiflow.domain.request import RequestId, normalize_id
from aiflow.domain.runs.resume import Goal, ResumeMode
from aiflow.domain.runs.run import Run
from aiflow.domain.runs.timeline import timeline
from aiflow.settings import Source, settle
from aiflow.usecases.engine import Engine
from aiflow.usecases.queue.enqueue import enqueue_work
from aiflow.usecases.queue.orders import TypedOrder, orders_of
from aiflow.usecases.runner.work_tasks import work_tasks
from aiflow.usecases.runs.recover import recover_run
from aiflow.usecases.runs.resume import ResumeWish, resume_run
from aiflow.usecases.runs.start import start_run
from memory_engine import TEXTS, MemoryCheckout, MemoryProcess, obliging

pytestmark = pytest.mark.spec("RUN-18")

ONE = RequestId("RQ-1")
NO_PLAN, NO_REVIEW = {"agent.plan": "never"}, {"agent.review": "never"}
PLANNER, REVIEWER = ["planner"], ["qa"]
WORK = ["implementer"]


class DiedError(BaseException):
    """The process is killed."""


class Bench:
    """A checkout with one request; `calls` is who was called, `answers` what comes in place of an obliging answer."""

    def __init__(self, said: dict[str, str] | None = None) -> None:
        self.checkout = MemoryCheckout()
        self.checkout.add(ONE, **(said or {}))
        self.calls: list[AgentCall] = []
        self.answers: list[AgentReply | None] = []

    def configure(self, file: dict[str, Any] | None = None, flags: dict[str, Any] | None = None) -> None:
        """Set what a file and a flag say."""
        self.checkout.settings = settle({Source.FILE: file or {}, Source.FLAG: flags or {}})

    @property
    def engine(self) -> Engine:
        """The engine of a new process."""
        return MemoryProcess(self.checkout, 7, PlayedTime(), self.script).engine()

    @property
    def roles(self) -> list[str]:
        """Who was called."""
        return [call.role.value for call in self.calls]

    def script(self, call: AgentCall, *more: Any) -> AgentReply:
        self.calls.append(call)
        answer = self.answers.pop(0) if self.answers else None
        if answer is not None and answer.reason_code == "DIED":
            raise DiedError
        return answer or obliging(self.checkout)(call, *more)


def events(run: Run) -> list[str]:
    return [line.event for line in run.history]


@pytest.mark.parametrize(
    ("file", "said", "flags", "roles"),
    [
        ({}, {}, {}, PLANNER + WORK + REVIEWER),
        (NO_PLAN, {}, {}, WORK + REVIEWER),
        (NO_REVIEW, {}, {}, PLANNER + WORK),
        ({}, {"plan": "no"}, {}, WORK + REVIEWER),
        ({}, {"review": "no"}, {}, PLANNER + WORK),
        ({}, {}, NO_PLAN | NO_REVIEW, WORK),
        (NO_PLAN | NO_REVIEW, {"plan": "yes"}, {}, PLANNER + WORK),
        ({}, {"plan": "yes", "review": "yes"}, NO_PLAN | NO_REVIEW, WORK),
        ({}, {"plan": "no"}, {"agent.plan": "always"}, PLANNER + WORK + REVIEWER),
    ],
)
def test_the_call_counts_before_the_request_and_the_request_before_the_settings(
    file: dict[str, str], said: dict[str, str], flags: dict[str, str], roles: list[str]
) -> None:
    bench = Bench(said)
    bench.configure(file, flags)
    run = start_run(bench.engine, ONE)
    assert (run.state, bench.roles) == (RunState.DONE, roles)


def test_without_a_planner_there_is_one_step_the_request_itself() -> None:
    bench = Bench({"plan": "no", "title": "Greet people"})
    run = start_run(bench.engine, ONE)
    [step] = run.plan
    assert (step.id, step.title, step.target_paths, step.tests) == ("S01", "Greet people", (), None)
    assert bench.calls[0].step == step
    assert "The body." in bench.calls[0].brief.body
    assert (run.planning_calls, run.usage.calls) == (0, 2)
    assert events(run) == ["PLANNING_STARTED", "PLANNED", "IMPLEMENTED", "STEP_DONE", "REPORTED"]
    assert [(stage.name, stage.mark) for stage in timeline(run)][:2] == [("plan", "done"), ("S01", "done")]
    assert bench.checkout.repository.commits[run.tip].message.startswith("Greet people\n")


def test_without_a_reviewer_the_tests_alone_judge() -> None:
    bench = Bench({"review": "no"})
    bench.configure({"tests.unit": "make test", "tests.baseline": False})
    run = start_run(bench.engine, ONE)
    assert run.steps["S01"].calls == {"implementer": 1, "tests": 1}
    assert [phase.name for stage in timeline(run) if stage.name == "S01" for phase in stage.attempts[0].phases] == [
        "implement",
        "tests",
    ]


def test_a_recovery_and_a_resume_keep_to_what_was_settled_when_the_run_began() -> None:
    bench = Bench()
    bench.configure(flags=NO_PLAN | NO_REVIEW)
    failed = AgentReply(reason_code="AGENT_FAILED", detail="it fell over", exit_code=1)
    bench.answers = [AgentReply(reason_code="DIED"), failed]
    with pytest.raises(DiedError):
        start_run(bench.engine, ONE)
    bench.configure()
    run = recover_run(bench.engine, ONE)
    assert run is not None
    assert run.state is RunState.NEEDS_INPUT
    run = resume_run(bench.engine, run, ResumeWish())
    assert (run.state, bench.roles) == (RunState.DONE, WORK * 3)


def test_a_task_of_the_queue_says_it_too() -> None:
    bench = Bench()
    process = MemoryProcess(bench.checkout, 7, PlayedTime(), bench.script)
    desk = process.desk(MemoryStore(), MemoryBells())
    [make] = orders_of(TypedOrder((ONE,), quick=True), desk.engine.backlog, lambda: desk.engine, normalize_id, TEXTS)
    enqueue_work(desk, make(False))
    work_tasks(desk, is_once=True)
    assert (bench.checkout.status(ONE), bench.roles) == ("blocked", WORK)


def test_who_asks_for_a_new_plan_gets_one() -> None:
    bench = Bench({"plan": "no", "review": "no"})
    bench.answers = [AgentReply(reason_code="AGENT_FAILED", detail="it fell over", exit_code=1)] * 2
    run = start_run(bench.engine, ONE)
    assert run.state is RunState.NEEDS_INPUT
    new = resume_run(bench.engine, run, ResumeWish(Goal(ResumeMode.REPLAN)))
    assert (new.state, new.replaces) == (RunState.DONE, run.run_id)
    assert bench.roles == WORK * 2 + PLANNER + WORK
