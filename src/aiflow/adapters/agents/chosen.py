"""The agents as the settings choose them, one per role (AGT-1)."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from aiflow.adapters.agents.acp.driver import AcpDriver
from aiflow.adapters.agents.call.command import CommandAgent, Launch
from aiflow.adapters.agents.call.stream import StreamAgent
from aiflow.adapters.agents.claude.agent import ClaudeDriver
from aiflow.adapters.agents.codex.agent import CodexDriver
from aiflow.adapters.agents.finding.installed import InstalledAgents
from aiflow.settings.agents import choice_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aiflow.adapters.agents.call.command import Surroundings
    from aiflow.adapters.agents.call.stream import Driver
    from aiflow.domain.agents.answers import Role
    from aiflow.domain.agents.call import AgentCall, AgentReply
    from aiflow.domain.agents.programs import AgentProgram
    from aiflow.settings import Settings

# The kinds that report what they do as events; each driver is made for one role.
DRIVERS: Mapping[str, Callable[[Launch, Surroundings], Driver]] = {
    "acp": AcpDriver,
    "claude-code": ClaudeDriver,
    "codex": CodexDriver,
}
_DEMO = os.path.join(os.path.dirname(__file__), "demo.py")


class ChosenAgents:
    """Calls for each role the agent that the settings name."""

    def __init__(self, settings: Settings, around: Surroundings) -> None:
        self._settings = settings
        self._around = around

    def call(self, call: AgentCall, output: Callable[[bytes], None], should_stop: Callable[[], bool]) -> AgentReply:
        """Call a role's agent."""
        launch = self._launch(call.role)
        driver = self._driver(call.role, launch)
        agent = CommandAgent(launch, self._around) if driver is None else StreamAgent(driver, launch, self._around)
        return agent.call(call, output, should_stop)

    def program_of(self, role: Role, *, asks: bool = False) -> AgentProgram:
        """Say what is known of a role's agent; `asks` starts its program for a moment."""
        launch = self._launch(role)
        installed = InstalledAgents(self._around.environ, self._around.root, launch.env_names)
        return installed.find(choice_of(self._settings, role), asks=asks)

    def limit_seconds(self, role: Role) -> float:
        """Return how long a call may take."""
        return self._launch(role).timeout_seconds

    def _driver(self, role: Role, launch: Launch) -> Driver | None:
        """Return the driver of a role's kind; None is a program that speaks the protocol of AGT-2."""
        make = DRIVERS.get(str(self._settings.for_role(role, "kind")))
        return make(launch, self._around) if make else None

    def _launch(self, role: Role) -> Launch:
        def texts(key: str) -> tuple[str, ...]:
            value = self._settings.for_role(role, key)
            return value if isinstance(value, tuple) else ()

        def number(key: str) -> float:
            value = self._settings.for_role(role, key)
            return float(value) if isinstance(value, (int, float)) else 0.0

        is_demo = self._settings.for_role(role, "kind") == "demo"
        argv = (sys.executable, "-I", "-S", _DEMO) if is_demo else texts("argv")
        return Launch(
            argv,
            number("timeout_seconds"),
            number("idle_seconds"),
            texts("env"),
            model=str(self._settings.for_role(role, "model")),
            mode=str(self._settings.for_role(role, "mode")),
            permissions=str(self._settings.for_role(role, "permissions")),
            linger_seconds=number("linger_seconds"),
            sandbox=str(self._settings.for_role(role, "sandbox")),
            writable=texts("writable"),
            tools=texts("tools"),
            max_turns=int(number("max_turns")),
        )
