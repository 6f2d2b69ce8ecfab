"""A smoke test of an agent (CLI `agents --check`): one real call, as a run makes it, with its time and cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from aiflow.domain.agents.answers import Role, Spoiled, read_answer
from aiflow.domain.agents.call import AgentCall, Brief
from aiflow.domain.agents.programs import AgentTrouble, code_of_call
from aiflow.domain.agents.usage import Usage
from aiflow.messages.details import ENGLISH
from aiflow.settings import Settings, Source

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiflow.domain.agents.programs import AgentProgram
    from aiflow.domain.details import Detail
    from aiflow.ports import Agents, Time

MOST_SECONDS = 180
TITLE = "Check that you can be called"
BODY = """This is only a check that you can be called. Look at no file, use no tool, ask nothing. Answer at once with
a plan of a single step: id S01, title "Check", instructions "Nothing is to be done".
"""


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of a call: how long it took, what it used, and the reason if it did not work."""

    program: AgentProgram
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)
    reason_code: str | None = None
    detail: str | Detail = ""

    @property
    def shape(self) -> dict[str, Any]:
        """The check as `agents --check --json` prints it."""
        return {
            "kind": self.program.kind,
            "program": self.program.program or None,
            "result": "FAIL" if self.reason_code else "PASS",
            "reason_code": self.reason_code,
            "detail": ENGLISH.say(self.detail) or None,
            "seconds": round(self.seconds, 3),
            "input_tokens": self.usage.input_tokens,
            "output_tokens": self.usage.output_tokens,
            "cost_usd": self.usage.cost_usd,
        }


def settings_to_try(settings: Settings, program: AgentProgram) -> Settings:
    """Let the planner be this agent, with the model and the other keys of the role that uses it."""
    values, sources = dict(settings.values), dict(settings.sources)
    role = program.roles[0] if program.roles else Role.PLANNER
    prefix = f"agent.roles.{Role.PLANNER}."
    for name in [name for name in values if name.startswith(prefix)]:
        values[name] = settings.for_role(role, name.removeprefix(prefix))
        sources[name] = Source.FLAG
    if not program.roles:
        values[f"{prefix}model"] = ""  # one that the settings name belongs to another agent
    limit = values[f"{prefix}timeout_seconds"]
    assert isinstance(limit, int)
    values[f"{prefix}kind"], values[f"{prefix}argv"] = program.kind, program.argv
    values[f"{prefix}timeout_seconds"] = min(MOST_SECONDS, limit)
    return Settings(values, sources)


class TrialGround(NamedTuple):
    """What an agent is tried with: the agents, a folder of its own to work in under a run's id, and the time."""

    agents: Agents
    folder: str
    run_id: str
    time: Time


def try_agent(
    ground: TrialGround, program: AgentProgram, output: Callable[[bytes], None], should_stop: Callable[[], bool]
) -> Trial:
    """Call an agent once, in a folder of its own under a run's id; one whose program is there is called in any case."""
    time = ground.time
    if program.trouble not in (None, AgentTrouble.LOGGED_OUT, AgentTrouble.BROKEN):
        return Trial(program, reason_code="AGENT_NOT_FOUND")
    call = AgentCall(Role.PLANNER, Brief("CHECK", TITLE, BODY, "P3"), ground.run_id, ground.folder, None, (), 1)
    began = time.monotonic()
    reply = ground.agents.call(call, output, should_stop)
    seconds = time.monotonic() - began
    code = code_of_call(program, reply.reason_code)
    detail: str | Detail = reply.detail
    if code is None:
        answer = read_answer(Role.PLANNER, reply.answer)
        code, detail = (answer.reason_code, answer.detail) if isinstance(answer, Spoiled) else (None, "")
    return Trial(program, seconds, reply.usage, code, detail)
