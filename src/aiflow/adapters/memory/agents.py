"""Agents in memory: they do what a script says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiflow.domain.agents.programs import AgentProgram

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiflow.domain.agents.answers import Role
    from aiflow.domain.agents.call import AgentCall, AgentReply


@dataclass
class ScriptedAgents:
    """Agents that do what a script says."""

    script: Callable[[AgentCall, Callable[[bytes], None], Callable[[], bool]], AgentReply]
    timeout_seconds: float = 600.0

    def call(self, call: AgentCall, output: Callable[[bytes], None], should_stop: Callable[[], bool]) -> AgentReply:
        """Call an agent and wait for its answer."""
        return self.script(call, output, should_stop)

    def program_of(self, _role: Role, *, asks: bool = False) -> AgentProgram:  # noqa: ARG002 - the port's
        """Say what is known of a role's agent."""
        return AgentProgram("demo", "")

    def limit_seconds(self, _role: Role) -> float:
        """Return how long a call may take."""
        return self.timeout_seconds
