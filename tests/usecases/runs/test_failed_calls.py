"""What a failed agent call left counts for whether the plan must change (RUN-5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from aiflow.adapters.memory.time import PlayedTime
from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.call import AgentCall, AgentReply
from aiflow.domain.details import detail
from aiflow.domain.request import RequestId
from aiflow.domain.runs.run import Run
from aiflow.errors import ConflictError
from aiflow.usecases.engine import Engine
from aiflow.usecases.runs.resume import ResumeWish, resume_run
from aiflow.usecases.runs.start import start_run
from memory_engine import MemoryCheckout, MemoryProcess, plan

Visit = tuple[str, dict[str, int]]


class Bench:
    """A run whose implementer fails in every visit: for what reason, and how many lines of which files it leaves."""

    def __init__(self, *visits: Visit) -> None:
        self.checkout = MemoryCheckout()
        self.request_id = self.checkout.add("RQ-1")
        self._visits = iter(visits)
        self._reason, self._files = next(self._visits)
        self.engine: Engine = MemoryProcess(self.checkout, 7, PlayedTime(), self._script()).engine()

    def _script(self) -> Callable[..., AgentReply]:
        def script(call: AgentCall, *_more: Any) -> AgentReply:
            if call.role is Role.PLANNER:
                return plan("S01")
            files = self.checkout.repository.worktrees[call.cwd].files
            files.update({name: b"line\n" * lines for name, lines in self._files.items()})
            if self._reason == "AGENT_OUTPUT_INVALID":
                return AgentReply(b"no answer")
            return AgentReply(reason_code=self._reason, detail="it fell over", exit_code=1)

        return script

    def work(self) -> Run:
        run = start_run(self.engine, RequestId(self.request_id))
        for visit in self._visits:
            self._reason, self._files = visit
            run = resume_run(self.engine, run, ResumeWish())
        return run

    def refusal(self, run: Run) -> ConflictError:
        with pytest.raises(ConflictError) as refused:
            resume_run(self.engine, run, ResumeWish())
        return refused.value


@pytest.mark.spec("RUN-5")
@pytest.mark.parametrize("first", ["AGENT_TIMEOUT", "AGENT_OUTPUT_INVALID"])
def test_a_diff_that_explodes_in_failed_calls_needs_a_new_plan(first: str) -> None:
    bench = Bench((first, {"a.txt": 10}), ("AGENT_FAILED", {"a.txt": 30}))
    run = bench.work()
    assert [stop.changed_lines for stop in run.work.stops] == [10, 30]
    refused = bench.refusal(run)
    assert refused.reason_code == "REPLAN_REQUIRED"
    assert refused.context["detail"] == detail("replan.diff_explodes")


@pytest.mark.spec("RUN-5")
def test_a_mixed_step_that_does_not_converge_in_failed_calls_needs_a_new_plan() -> None:
    mixed = {"ui/a.txt": 1, "server/b.txt": 1}
    bench = Bench(("AGENT_FAILED", mixed), ("AGENT_TIMEOUT", mixed), ("AGENT_FAILED", mixed))
    refused = bench.refusal(bench.work())
    assert refused.reason_code == "REPLAN_REQUIRED"
    assert refused.context["detail"] == detail("replan.mixed_step")
