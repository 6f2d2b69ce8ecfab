"""The doctor's look at the agents (DOC-1): is each role's program there, and is it logged in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.programs import BRING_THEIR_OWN, Login, Sandbox, advice_facts, is_confined
from aiflow.domain.health import Finding, Health
from aiflow.domain.next_action import ActionKind, NextAction, shell
from aiflow.settings.agents import choice_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiflow.domain.agents.programs import AgentProgram
    from aiflow.usecases.engine import Engine


LIST, SETTINGS = NextAction(ActionKind.AGENTS), NextAction(ActionKind.SETTINGS)
AGENT_ENV = SETTINGS.having(key="agent.env")


def check_agents(engine: Engine, *, asks: bool = False) -> Iterator[Finding]:
    """Check each role's agent; what holds for several roles is reported once.

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
    fix = shell(program.mending) if program.mending else LIST
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
        return Finding("agent", Health.WARN, "AGENT_AUTH_REQUIRED", "agent.no_variable", told, (variable,), AGENT_ENV)
    fix = shell(program.mending) if program.mending else LIST
    return Finding("agent", Health.WARN, "AGENT_AUTH_REQUIRED", "agent.maybe_logged_out", told, fix=fix)


def check_sandbox(engine: Engine) -> Iterator[Finding]:
    """Report which roles' agents the kernel confines, which bring their own sandbox, and which have none."""
    chosen = engine.settings.for_role
    sandboxes = {role: str(chosen(role, "sandbox")) for role in Role}
    kinds = {role: str(chosen(role, "kind")) for role in Role}
    off = [role for role in Role if sandboxes[role] == Sandbox.OFF]
    own = [role for role in Role if kinds[role] in BRING_THEIR_OWN and role not in off]
    confined = [role for role in Role if is_confined(kinds[role], sandboxes[role])]
    if confined:
        yield _by_the_kernel(engine, confined, is_required=Sandbox.REQUIRED in {sandboxes[role] for role in confined})
    if own:
        told = (("roles", ", ".join(own)), ("kind", kinds[own[0]]))
        yield Finding("sandbox", Health.PASS, None, "sandbox.own", told)
    if off:
        yield Finding("sandbox", Health.WARN, None, "sandbox.off", (("roles", ", ".join(off)),), fix=SETTINGS)


def _by_the_kernel(engine: Engine, confined: list[Role], *, is_required: bool) -> Finding:
    how, roles = engine.workshop.confinement(), ("roles", ", ".join(confined))
    if how is not None:
        return Finding("sandbox", Health.PASS, None, "sandbox.pass", (("how", how), roles))
    if is_required:
        return Finding("sandbox", Health.FAIL, "AGENT_SANDBOX_MISSING", "sandbox.fail", (roles,), fix=SETTINGS)
    return Finding("sandbox", Health.WARN, None, "sandbox.none", (roles,))
