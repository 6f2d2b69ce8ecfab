"""How an agent that speaks the Agent Client Protocol is called (AGT-1): through our client, under the guard."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from aiflow.adapters.agents.acp.events import AcpEvents
from aiflow.adapters.agents.acp.programs import known
from aiflow.adapters.agents.call.command import CommandAgent
from aiflow.adapters.agents.call.fence import work_paths
from aiflow.adapters.agents.call.means import Means, added_paths, may_command, times_of
from aiflow.adapters.agents.call.own_folders import own_folders
from aiflow.adapters.agents.call.paid_session import session_of
from aiflow.adapters.agents.call.prompts import prompt_for
from aiflow.adapters.agents.call.stream import Start
from aiflow.domain.agents.programs import Sandbox
from aiflow.messages import LANGUAGES, Texts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiflow.adapters.agents.call.command import Launch, Surroundings
    from aiflow.adapters.agents.call.stream import Events
    from aiflow.domain.agents.call import AgentCall

CLIENT = "aiflow.adapters.agents.acp.client"
# How long an agent that met a limit may stay silent before aiflow waits in its place, and shows it (RUN-13).
PATIENCE_SECONDS = 60.0


class AcpDriver:
    """Calls one role's agent."""

    def __init__(self, launch: Launch, around: Surroundings, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._launch = launch
        self._around = around
        self._command = CommandAgent(launch, around)
        self._patience_seconds = patience_seconds

    def start(self, call: AgentCall, scratch: str) -> Start:
        """Start the client, which starts the agent."""
        program = known(self._launch.argv)
        session = session_of(call.session_id)
        own = own_folders(self._launch.argv, self._around.environ)
        is_open = own is None or self._launch.sandbox == Sandbox.OFF
        is_confined = not is_open and self._around.processes.confinement() is not None
        document = {
            "argv": [self._command.program(call.cwd), *self._launch.argv[1:]],
            "cwd": call.cwd,
            "role": call.role.value,
            "prompt": prompt_for(call, self._means(call, is_confined=is_confined), goes_on=call.session_id is not None),
            "session_id": session.id if session else None,
            "model": self._launch.model,
            "mode": self._launch.mode,
            "permissions": self._launch.permissions,
            "answers": list(_answered(call.answers)),
            "folders": work_paths(call, scratch, self._launch, self._around),
            "own": own or (),
            "is_confined": is_confined,
            "may_run": may_command(call.role, is_confined=is_confined),
            "patience_seconds": self._patience_seconds,
        }
        return Start(
            # Without the current folder on its path: that is the worktree, which is the agent's.
            (sys.executable, "-P", "-m", CLIENT),
            json.dumps(document).encode(),
            variables=program.variables_for(self._around.environ),
            env_names=program.env_names,
            writable=own,
            shown=self._launch.argv,
        )

    def _means(self, call: AgentCall, *, is_confined: bool) -> Means:
        return Means(
            is_confined=is_confined,
            has_caches=is_confined and bool(self._around.caches_folder),
            has_commands=may_command(call.role, is_confined=is_confined),
            writable=added_paths(self._launch, self._around),
            times=times_of(call, self._launch),
        )

    def events(self, call: AgentCall) -> Events:
        """Give a reader of the client's events."""
        return AcpEvents(call.role, lambda: datetime.now(UTC).astimezone(), call.cwd, session_of(call.session_id))


def _answered(answers: tuple[tuple[str, str], ...]) -> Iterator[tuple[str, str]]:
    """Give what a person answered to permission requests, in whichever language they were asked."""
    frames = [Texts(language)("run.may_agent", what="\0").split("\0") for language in LANGUAGES]
    for question, answer in answers:
        for before, behind in frames:
            if question.startswith(before) and question.endswith(behind):
                yield question[len(before) : len(question) - len(behind) or None], answer
