"""Codex as an agent (AGT-1): `codex exec --json`, in its own sandbox, one thread for a role's attempts at a step."""

from __future__ import annotations

import json
import os
import tomllib
from datetime import datetime
from typing import TYPE_CHECKING

from aiflow.adapters.agents.call.caches import cache_variables, made_caches
from aiflow.adapters.agents.call.fence import expanded
from aiflow.adapters.agents.call.means import Means, times_of
from aiflow.adapters.agents.call.own_folders import codex_home
from aiflow.adapters.agents.call.prompts import prompt_for
from aiflow.adapters.agents.call.stream import Start
from aiflow.adapters.agents.codex.arguments import ENV_NAMES, NETWORK, CodexTerms, arguments
from aiflow.adapters.agents.codex.events import CodexEvents
from aiflow.adapters.agents.codex.live import LiveCodexEvents
from aiflow.adapters.agents.codex.session import session_of
from aiflow.adapters.secrets import is_secret_name
from aiflow.domain.agents.answer_schema import SCHEMAS
from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.programs import Sandbox

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from aiflow.adapters.agents.call.command import Launch, Surroundings
    from aiflow.domain.agents.call import AgentCall

PROGRAM = "codex"
SYSTEM_CONFIG = "/etc/codex/config.toml"


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
        terms = self._terms(call)
        prompt = prompt_for(call, self._means(call, terms), goes_on=session is not None)
        return Start(
            argv=(PROGRAM, *arguments(terms, schema_path, session)),
            stdin=prompt.encode("utf-8", "replace"),
            variables=cache_variables(self._launch, self._around) if self._has_caches(call) else {},
            env_names=ENV_NAMES,
        )

    def _means(self, call: AgentCall, terms: CodexTerms) -> Means:
        """Say what the call can do; codex reads a project's instructions only where it trusts its settings too."""
        return Means(
            has_schema=True,
            is_confined=terms.is_sandboxed,
            has_caches=self._has_caches(call) and bool(self._around.caches_folder),
            has_scratch=not terms.is_sandboxed,
            has_network=NETWORK in terms.tools or not terms.is_sandboxed,
            writable=tuple(expanded(path, self._around) for path in self._launch.writable),
            times=times_of(call, self._launch),
        )

    def events(self, call: AgentCall) -> LiveCodexEvents:
        """Give a reader of the call's events."""
        events = CodexEvents(session_of(call.session_id), call.cwd, lambda: datetime.now().astimezone())
        return LiveCodexEvents(events, codex_home(self._around.environ))

    def _has_caches(self, call: AgentCall) -> bool:
        """Return whether codex's own sandbox lets the call write caches: in one that only reads, it writes nothing."""
        return call.role is Role.IMPLEMENTER and self._launch.sandbox != Sandbox.OFF

    def _terms(self, call: AgentCall) -> CodexTerms:
        return CodexTerms(
            role=call.role,
            cwd=os.path.realpath(call.cwd),
            model=self._launch.model,
            is_sandboxed=self._launch.sandbox != Sandbox.OFF,
            writable=(
                *(expanded(path, self._around) for path in self._launch.writable),
                *(made_caches(self._around) if self._has_caches(call) else ()),
            ),
            tools=self._launch.tools,
            servers=tuple(sorted(set(servers_of(self._around.environ)))),
            hidden=tuple(filter(is_secret_name, self._launch.env_names)),
        )


def servers_of(environ: Mapping[str, str], system_config: str = SYSTEM_CONFIG) -> Iterator[str]:
    """Name the MCP servers of the user's and the machine's settings; codex itself refuses what cannot be read."""
    for path in (os.path.join(codex_home(environ), "config.toml"), system_config):
        try:
            with open(path, "rb") as file:
                servers = tomllib.load(file).get("mcp_servers")
        except (OSError, ValueError, RecursionError):
            continue
        if isinstance(servers, dict):
            yield from servers
