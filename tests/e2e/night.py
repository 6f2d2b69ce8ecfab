"""An auto-run inside the test's own process: everything is real but the agents, which answer at once."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from aiflow.adapters.run_folders.auto_files import AutoFile
from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.call import AgentCall, AgentReply
from aiflow.domain.agents.programs import AgentProgram
from aiflow.domain.auto.session import AutoSession, AutoStatus
from aiflow.domain.auto.summary import Summary
from aiflow.messages import Texts
from aiflow.ports import RequestSource
from aiflow.usecases.auto.run import auto_run, limits_of
from aiflow.usecases.auto.shift import AutoTerms
from aiflow.usecases.engine import Engine, Voice
from aiflow.wiring import build_engine, project_at, read_settings
from e2e.bench import Bench
from e2e.scripted_agents import plan_of

Answer = Callable[[AgentCall, Callable[[], bool]], AgentReply]


def reply(value: object) -> AgentReply:
    return AgentReply(json.dumps(value).encode())


def done(call: AgentCall, _should_stop: Callable[[], bool]) -> AgentReply:
    Path(call.cwd, f"{call.brief.id}.txt").write_text(call.run_id)
    return reply({"status": "done"})


def ask(call: AgentCall, _should_stop: Callable[[], bool]) -> AgentReply:
    return reply({"status": "needs_input", "question": f"What about {call.brief.id}?"})


def broken(call: AgentCall, _should_stop: Callable[[], bool]) -> AgentReply:
    raise RuntimeError(f"a defect in {call.brief.id}")


def until_stopped(_call: AgentCall, should_stop: Callable[[], bool]) -> AgentReply:
    while not should_stop():
        pass
    return AgentReply(reason_code="CANCELLED")


@dataclass
class Night:
    """A backlog, what the implementer does with each request, and the night in which auto-run works through it."""

    bench: Bench
    answers: dict[str, Answer] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)
    seen: list[AutoStatus] = field(default_factory=list)
    watch: Callable[[AutoStatus], None] = lambda _status: None
    finish: Callable[[Summary], None] = lambda _summary: None
    language: str = "en"
    program: AgentProgram = field(default_factory=lambda: AgentProgram("demo", ""))
    more_sources: tuple[RequestSource, ...] = ()

    def call(self, call: AgentCall, _output: Callable[[bytes], None], should_stop: Callable[[], bool]) -> AgentReply:
        """Be the agents."""
        if call.role is Role.PLANNER:
            self.ran.append(call.brief.id)
            return reply(plan_of("S01"))
        if call.role is Role.QA:
            return reply({"verdict": "pass", "findings": []})
        return self.answers.get(call.brief.id, done)(call, should_stop)

    def program_of(self, _role: Role, *, asks: bool = False) -> AgentProgram:
        return self.program

    def limit_seconds(self, _role: Role) -> float:
        return 60.0

    def engine(self, *flags: str, **ports: Any) -> Engine:
        """The real engine of the repository, with our agents, these settings and these ports."""
        root = str(self.bench.root)
        project = project_at(root, self.more_sources)
        engine = build_engine(project, read_settings(root, flags), project.journal, Voice(Texts(self.language)))
        return replace(engine, agents=self, **ports)

    def auto(self, engine: Engine | None = None, *, is_watching: bool = False, **limits: Any) -> Summary:
        """Let auto-run work to its end."""
        engine = engine or self.engine()
        terms = AutoTerms(
            AutoFile(self.bench.root),
            replace(limits_of(engine.settings), **limits),
            engine.voice.texts,
            is_watching=is_watching,
            observe=self._observe,
            finish=self.finish,
        )
        return auto_run(engine, terms)

    def _observe(self, status: AutoStatus) -> None:
        self.seen.append(status)
        self.watch(status)

    @property
    def states(self) -> list[str]:
        """The states it went through, each named once in a row."""
        states = [status.session.state.value for status in self.seen]
        return [state for before, state in zip(["", *states], states, strict=False) if state != before]

    @property
    def record(self) -> AutoSession:
        """What is kept of it."""
        session = AutoFile(self.bench.root).load()
        assert session is not None
        return session

    def decisions(self) -> list[tuple[str | None, str | None]]:
        """What the journal says auto-run decided, each with a digest of what it saw."""
        entries = [e for e in self.bench.journal() if (e["kind"], e["actor"]) == ("decision", "auto_run")]
        assert all(len(entry["data"]["digest"]) == 16 for entry in entries)
        return [(entry.get("request_id"), entry.get("reason_code")) for entry in entries]
