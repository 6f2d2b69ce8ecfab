"""A run in memory whose agents remember what they are told, and answer what a test says."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from aiflow.adapters.memory.time import PlayedTime
from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.call import AgentCall, AgentReply
from aiflow.domain.programs import End, Ended
from aiflow.domain.runs.run import Run
from aiflow.settings import Source, settle
from aiflow.usecases.engine import Engine
from aiflow.usecases.runs.start import start_run
from memory_engine import MemoryCheckout, MemoryProcess, plan

PASSED = AgentReply(b'{"verdict":"pass"}')


def judging(call: AgentCall, verdict: AgentReply = PASSED, *skipped: int) -> AgentReply:
    """A verdict that finds every criterion met, but for those that it says nothing of."""
    numbers = [number for number, _ in enumerate(call.criteria, 1) if number not in skipped]
    criteria = [{"number": number, "met": True, "note": "seen"} for number in numbers]
    return AgentReply(json.dumps({**json.loads(verdict.answer or b""), "criteria": criteria}).encode())


class Scene:
    """A run whose agents remember what they are told; each role's answers in order, the last again and again."""

    def __init__(self, settings: Mapping[str, Any] | None = None) -> None:
        self.checkout = MemoryCheckout(settings=settle({Source.FILE: {"tests.baseline": False, **(settings or {})}}))
        self.calls: list[AgentCall] = []
        self.verdicts = [PASSED]
        self.seen: list[tuple[str, str | None]] = []
        self.obeys = self.judges = True
        self.plan: AgentReply | None = None
        self.steps: tuple[str, ...] = ("S01", "S02")
        self.checkout.workshop.run_shell = self.test
        self.exit_codes = [0]

    def test(self, command: str, _place: Any, output: Callable[[bytes], None], _should_stop: Any) -> Ended:
        output(f"{command} says\n".encode() + b"".join(b"line %d\n" % number for number in range(2000)))
        return Ended(End.EXITED, self.exit_codes.pop(0) if len(self.exit_codes) > 1 else self.exit_codes[0])

    def script(self, call: AgentCall, output: Callable[[bytes], None], _should_stop: Any) -> AgentReply:
        self.calls.append(call)
        if call.role is Role.PLANNER:
            return self.plan or plan(*self.steps)
        if call.role is Role.QA:
            self.seen.append((call.changes(), call.whole() if call.whole else None))
            output(b"I look at the change\n")
            verdict = self.verdicts.pop(0) if len(self.verdicts) > 1 else self.verdicts[0]
            return judging(call, verdict) if self.judges and verdict is PASSED else verdict
        assert call.step is not None
        files = self.checkout.repository.worktrees[call.cwd].files
        files[f"{call.step.id}.txt"] = f"{call.attempt}\n".encode()
        if self.obeys and any("CHANGES.md" in told.summary for told in call.feedback):
            files["CHANGES.md"] = b"Written.\n"
        return AgentReply(f'{{"status":"done","summary":"Wrote {call.step.id}.txt"}}'.encode())

    def run(self, body: str = "") -> Run:
        request_id = self.checkout.add("RQ-1")
        if body:
            self.checkout.requests.texts[request_id] += body
        return start_run(self.engine(), request_id)

    def engine(self, **more: Any) -> Engine:
        """The engine of a process in which it runs."""
        return MemoryProcess(self.checkout, 1, PlayedTime(), self.script).engine(**more)

    def of(self, role: Role) -> list[AgentCall]:
        return [call for call in self.calls if call.role is role]
