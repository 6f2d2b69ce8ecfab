"""The settings of each role's agent (AGT-1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.agents.programs import AgentChoice

if TYPE_CHECKING:
    from aiflow.settings import Settings


def choice_of(settings: Settings, role: str) -> AgentChoice:
    """Return the kind of a role's agent, and the program where the kind leaves that to the settings."""
    argv = settings.for_role(role, "argv")
    return AgentChoice(str(settings.for_role(role, "kind")), argv if isinstance(argv, tuple) else ())
