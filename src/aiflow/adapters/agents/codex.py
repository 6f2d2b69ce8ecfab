"""Codex as an agent (AGT-1): `codex exec --json`, in its own sandbox, one thread for a role's attempts at a step."""

from __future__ import annotations

import json
import os
import tomllib
from datetime import datetime
from typing import TYPE_CHECKING

from aiflow.adapters.agents.codex_arguments import ENV_NAMES, Terms, arguments
from aiflow.adapters.agents.codex_events import CodexEvents
from aiflow.adapters.agents.codex_live import LiveCodexEvents
from aiflow.adapters.agents.codex_session import session_of
from aiflow.adapters.agents.fence import expanded
from aiflow.adapters.agents.own_folders import codex_home
from aiflow.adapters.agents.prompts import prompt_for, read_first
from aiflow.adapters.agents.stream import Start
from aiflow.adapters.secrets import is_secret_name
from aiflow.domain.answer_schema import SCHEMAS
from aiflow.domain.sandbox import Sandbox

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from aiflow.adapters.agents.command import Launch, Surroundings
    from aiflow.domain.agent_call import AgentCall

PROGRAM = "codex"
SYSTEM_CONFIG = "/etc/codex/config.toml"
# Codex reads them by itself only in a project that it trusts, and then starts what the branch's settings name as well.
INSTRUCTIONS = "AGENTS.md"


class CodexDriver:
    """Drives the `codex` program for one role."""

    def __init__(self, launch: Launch, around: Surroundings) -> None:
        self._launch = launch
        self._around = around

    def start(self, call: AgentCall, scratch: str) -> Start:
        """Say how a call is started: the schema of its answer in a file, the prompt on standard input."""
        schema_path = os.path.join(scratch, "answer.schema.json")
        with open(schema_path, "w", encoding="utf-8") as file:
            json.dump(SCHEMAS[call.role], file)
        session = session_of(call.session_id)
        prompt = prompt_for(call, goes_on=session is not None)
        if session is None:
            prompt += read_first(call, INSTRUCTIONS)
        return Start(
            argv=(PROGRAM, *arguments(self._terms(call), schema_path, session)),
            stdin=prompt.encode("utf-8", "replace"),
            env_names=ENV_NAMES,
        )

    def events(self, call: AgentCall) -> LiveCodexEvents:
        """Give a reader of the call's events."""
        events = CodexEvents(session_of(call.session_id), call.cwd, lambda: datetime.now().astimezone())
        return LiveCodexEvents(events, codex_home(self._around.environ))

    def _terms(self, call: AgentCall) -> Terms:
        return Terms(
            role=call.role,
            cwd=os.path.realpath(call.cwd),
            model=self._launch.model,
            is_sandboxed=self._launch.sandbox != Sandbox.OFF,
            writable=tuple(expanded(path, self._around) for path in self._launch.writable),
            tools=self._launch.tools,
            servers=tuple(sorted(set(servers_of(self._around.environ)))),
            hidden=tuple(filter(is_secret_name, self._launch.env_names)),
        )


def servers_of(environ: Mapping[str, str], system_config: str = SYSTEM_CONFIG) -> Iterator[str]:
    """Name the MCP servers of the user's and the machine's settings; what cannot be read codex refuses by itself."""
    for path in (os.path.join(codex_home(environ), "config.toml"), system_config):
        try:
            with open(path, "rb") as file:
                servers = tomllib.load(file).get("mcp_servers")
        except (OSError, ValueError, RecursionError):
            continue
        if isinstance(servers, dict):
            yield from servers
