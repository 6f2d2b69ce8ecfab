"""The doctor's look at the agents (DOC-1): is each role's program there, and is it logged in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.agent_programs import Login, advice_facts
from aiflow.domain.answers import Role
from aiflow.domain.health import Finding, Health
from aiflow.settings.agents import choice_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiflow.domain.agent_programs import AgentProgram
    from aiflow.usecases.engine import Engine

LIST = "aiflow agents"
SETTINGS = "aiflow settings agent.env"


def check_agents(engine: Engine, *, asks: bool = False) -> Iterator[Finding]:
    """Check each role's agent; what holds for several roles is told once.

    Without asking, a login that is nowhere to be seen is only a warning: it may be in a place that we do not know.
    """
    used: dict[tuple[object, ...], list[Role]] = {}
    for role in Role:
        choice = choice_of(engine.settings, role)
        used.setdefault((choice, engine.settings.for_role(role, "env")), []).append(role)
    for roles in used.values():
        yield _judge(engine.agents.program_of(roles[0], asks=asks), ", ".join(roles))


def _judge(program: AgentProgram, roles: str) -> Finding:
    told: tuple[tuple[str, str], ...] = (("kind", program.kind), ("program", program.program), ("roles", roles))
    fix = program.mending or LIST
    trouble = program.trouble
    if trouble is not None:
        told += advice_facts(program, trouble.reason_code)
        return Finding("agent", Health.FAIL, trouble.reason_code, f"agent.{trouble}", told, fix=fix)
    if program.login is Login.NONE_SEEN:
        return _without_login(program, told)
    evidence = (f"{program.path} {program.version}",) if program.version else ()
    return Finding("agent", Health.PASS, None, "agent.pass", told, evidence)


def _without_login(program: AgentProgram, told: tuple[tuple[str, str], ...]) -> Finding:
    """Warn of a login that is not to be seen, or of the variable that does instead of one."""
    if variable := program.missing_variable:
        told = (*told, ("variable", variable))
        return Finding("agent", Health.WARN, "AGENT_AUTH_REQUIRED", "agent.no_variable", told, (variable,), SETTINGS)
    fix = program.mending or LIST
    return Finding("agent", Health.WARN, "AGENT_AUTH_REQUIRED", "agent.maybe_logged_out", told, fix=fix)
