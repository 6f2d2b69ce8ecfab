"""Claude Code as an agent (AGT-1): `claude -p`, given its permissions at every call, one session for all attempts."""

from __future__ import annotations

import os
from datetime import datetime
from typing import TYPE_CHECKING

from aiflow.adapters.agents.call.fence import HIDDEN, SHELL_PREFIX, work_paths, wrapper_of, write_wrapper
from aiflow.adapters.agents.call.means import Means, added_paths, may_command, times_of
from aiflow.adapters.agents.call.own_folders import own_folders
from aiflow.adapters.agents.call.paid_session import session_of
from aiflow.adapters.agents.call.prompts import prompt_for
from aiflow.adapters.agents.call.stream import Start
from aiflow.adapters.agents.claude.arguments import ClaudeTerms, arguments
from aiflow.adapters.agents.claude.environment import VARIABLES, env_names, hidden_names
from aiflow.adapters.agents.claude.events import SESSION_ID, ClaudeEvents
from aiflow.adapters.files.atomic_files import read_regular
from aiflow.domain.agents.programs import Sandbox

if TYPE_CHECKING:
    from aiflow.adapters.agents.call.command import Launch, Surroundings
    from aiflow.domain.agents.call import AgentCall

PROGRAM = "claude"
INSTRUCTIONS = "CLAUDE.md"
# What claude reads in a project besides instructions: programs to start, addresses to send keys to.
PROJECT_SETTINGS = (".claude/settings.json", ".claude/settings.local.json", ".mcp.json")
# Keys of claude's settings whose values are commands that claude itself starts, outside of its tools.
STARTS_PROGRAMS = (b"apiKeyHelper", b"awsAuthRefresh", b"awsCredentialExport", b"gcpAuthRefresh", b"HeadersHelper")
MAX_SETTINGS = 1_000_000


class ClaudeDriver:
    """Drives the `claude` program for one role."""

    def __init__(self, launch: Launch, around: Surroundings) -> None:
        self._launch = launch
        self._around = around

    def start(self, call: AgentCall, scratch: str) -> Start:
        """Say how a call is started: what it is allowed in its arguments, the prompt on standard input."""
        names = env_names(self._around.environ)
        hidden = hidden_names(names, self._launch.env_names)
        shell = write_wrapper(wrapper_of(scratch))
        variables = {**VARIABLES, SHELL_PREFIX: shell, HIDDEN: " ".join(hidden)}
        terms = self._terms(call, scratch, variables)
        prompt = prompt_for(call, self._means(call, terms), goes_on=terms.session_id is not None)
        return Start(
            argv=(PROGRAM, *arguments(terms)),
            stdin=prompt.encode("utf-8", "replace"),
            variables=variables,
            env_names=names,
            writable=own_folders((PROGRAM,), self._around.environ),
        )

    def _means(self, call: AgentCall, terms: ClaudeTerms) -> Means:
        is_confined = terms.is_confined
        return Means(
            has_schema=True,
            reads=(INSTRUCTIONS,) if terms.is_project_trusted else (),
            is_confined=is_confined,
            has_caches=is_confined and bool(self._around.caches_folder),
            has_commands=may_command(call.role, is_confined=is_confined),
            writable=added_paths(self._launch, self._around),
            also="limits.claude",
            times=times_of(call, self._launch),
        )

    def events(self, call: AgentCall) -> ClaudeEvents:
        """Give a reader of the call's events."""
        return ClaudeEvents(call.role, call.cwd, lambda: datetime.now().astimezone(), session_of(call.session_id))

    def _terms(self, call: AgentCall, scratch: str, variables: dict[str, str]) -> ClaudeTerms:
        session = session_of(call.session_id)
        return ClaudeTerms(
            role=call.role,
            model=self._launch.model,
            session_id=session.id if session and SESSION_ID.fullmatch(session.id) else None,
            max_turns=self._launch.max_turns,
            cost_usd=call.budget.cost_usd,
            tools=self._launch.tools,
            writable=work_paths(call, scratch, self._launch, self._around),
            variables=variables,
            is_confined=self._launch.sandbox != Sandbox.OFF and self._around.processes.confinement() is not None,
            is_project_trusted=is_as_in(self._around.root, call.cwd),
        )


def is_as_in(root: str, cwd: str) -> bool:
    """Return whether a worktree's settings for claude are those of the user's checkout: an agent may have written them.

    A file that the worktree has not is no danger; one that names programs is, for those may be the agent's.
    """
    found = ((_content(os.path.join(cwd, name)), os.path.join(root, name)) for name in PROJECT_SETTINGS)
    return all(
        content is None or (content == _content(known) and not any(key in content for key in STARTS_PROGRAMS))
        for content, known in found
    )


def _content(path: str) -> bytes | None:
    """Return what is in a file, None if there is none; one that cannot be read is like no other."""
    try:
        return read_regular(path, MAX_SETTINGS)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return os.urandom(16)
