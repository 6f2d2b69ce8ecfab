"""Which agents there are (CLI `agents`): those we know, and those that this project's roles use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiflow.domain.agent_programs import with_roles
from aiflow.domain.answers import Role
from aiflow.settings import Source
from aiflow.settings.agents import choice_of

if TYPE_CHECKING:
    from aiflow.domain.agent_programs import AgentProgram
    from aiflow.ports import AgentPrograms
    from aiflow.settings import Settings


def list_agents(programs: AgentPrograms, settings: Settings, *, is_project: bool) -> tuple[AgentProgram, ...]:
    """Look for every agent and let the programs tell about themselves.

    Outside a project the roles use what the settings name, not what they would be without any.
    """
    is_chosen = is_project or settings.sources["agent.kind"] is not Source.DEFAULT
    used = [(role, programs.find(choice_of(settings, role))) for role in Role] if is_chosen else []
    return programs.ask(with_roles(programs.survey(), used))


def program_shape(program: AgentProgram) -> dict[str, Any]:
    """One agent as `agents --json` prints it."""
    known = program.known
    return {
        "kind": program.kind,
        "program": program.program or None,
        "argv": list(program.argv),
        "is_installed": program.is_installed,
        "path": program.path,
        "version": program.version,
        "login": program.login.value,
        "login_by": program.login_by or None,
        "roles": [role.value for role in program.roles],
        "reason_code": program.trouble.reason_code if program.trouble else None,
        "install": known.install if known else None,
        "log_in": known.log_in if known else None,
    }
