"""Which agents there are (CLI `agents`): those we know, and those that this project's roles use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.programs import with_roles
from aiflow.settings import Source
from aiflow.settings.agents import choice_of

if TYPE_CHECKING:
    from aiflow.domain.agents.programs import AgentProgram
    from aiflow.ports import AgentPrograms
    from aiflow.settings import Settings


def list_agents(
    programs: AgentPrograms, settings: Settings, *, is_project: bool, kind: str | None = None
) -> tuple[AgentProgram, ...]:
    """Look for every agent, or those of a kind, and ask the programs about themselves.

    Outside a project the roles use what the settings name, not what they would be without any.
    """
    is_chosen = is_project or settings.sources["agent.kind"] is not Source.DEFAULT
    used = [(role, programs.find(choice_of(settings, role))) for role in Role] if is_chosen else []
    found = programs.ask(with_roles(programs.survey(), used))
    return tuple(program for program in found if kind in (None, program.kind))


def choose_to_try(programs: tuple[AgentProgram, ...], kind: str | None) -> list[AgentProgram]:
    """Choose what to call: what the roles use, else the first that is installed; of a kind in any case one."""
    used = [program for program in programs if program.roles]
    installed = [program for program in programs if program.is_installed and (kind or program.known)]
    return used or installed[:1] or list(programs[:1])


def trouble_of(program: AgentProgram) -> str | None:
    """Return why an agent that a role uses cannot be used; what no role uses may be missing."""
    return program.trouble.reason_code if program.trouble and program.roles else None
