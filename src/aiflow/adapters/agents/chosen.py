"""The agents as the settings choose them, one per role (AGT-1)."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from aiflow.adapters.agents.command import CommandAgent, Launch

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiflow.adapters.agents.command import Surroundings
    from aiflow.domain.agent_call import AgentCall, AgentReply
    from aiflow.domain.answers import Role
    from aiflow.settings import Settings

_DEMO = os.path.join(os.path.dirname(__file__), "demo.py")


class ChosenAgents:
    """Calls for each role the agent that the settings name."""

    def __init__(self, settings: Settings, around: Surroundings) -> None:
        self._settings = settings
        self._around = around

    def call(self, call: AgentCall, output: Callable[[bytes], None], should_stop: Callable[[], bool]) -> AgentReply:
        """Call a role's agent."""
        return CommandAgent(self._launch(call.role), self._around).call(call, output, should_stop)

    def problem_of(self, role: Role) -> str | None:
        """Say why a role's agent cannot be started, or None if it can."""
        kind = self._settings.for_role(role, "kind")
        if kind not in ("command", "demo"):
            return f'agent.kind = "{kind}" comes with a later version; this one drives "command" and "demo"'
        return CommandAgent(self._launch(role), self._around).problem()

    def limit_seconds(self, role: Role) -> float:
        """Return how long a call may take."""
        return self._launch(role).timeout_seconds

    def _launch(self, role: Role) -> Launch:
        def texts(key: str) -> tuple[str, ...]:
            value = self._settings.for_role(role, key)
            return value if isinstance(value, tuple) else ()

        def seconds(key: str) -> float:
            value = self._settings.for_role(role, key)
            return float(value) if isinstance(value, (int, float)) else 0.0

        is_demo = self._settings.for_role(role, "kind") == "demo"
        argv = (sys.executable, "-I", "-S", _DEMO) if is_demo else texts("argv")
        return Launch(argv, seconds("timeout_seconds"), seconds("idle_seconds"), texts("env"))
