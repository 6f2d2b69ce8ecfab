"""The fence around one call of an agent (AGT-4, SEC): where it may write, and a temporary folder of its own.

The implementer may write in the worktree, planner and qa only read; besides, each has a temporary folder for this call,
the folders of the program itself, the project's caches, and what `agent.writable` adds. The kernel holds that, where it
can.
"""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiflow.adapters.agents.call.caches import cache_variables, made_caches
from aiflow.adapters.agents.call.own_folders import home_of
from aiflow.adapters.processes import compiled
from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.programs import Sandbox
from aiflow.messages.details import words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiflow.adapters.agents.call.command import Launch, Surroundings
    from aiflow.domain.agents.call import AgentCall

MISSING = "AGENT_SANDBOX_MISSING"
SHELL_PREFIX = "CLAUDE_CODE_SHELL_PREFIX"
HIDDEN = "AIFLOW_HIDDEN"
_CONFINE = os.path.join(os.path.dirname(compiled.__file__), "confine.py")
_NOTE = "[aiflow] no sandbox on this machine: the agent can write wherever you can"


@dataclass(frozen=True, slots=True)
class CallFence:
    """What holds for a call; `writable` None is not confined. A `note` belongs in the log; a `refusal` is the end."""

    variables: Mapping[str, str]
    writable: tuple[str, ...] | None = None
    note: str = ""
    refusal: str = ""


def raise_fence(
    call: AgentCall, scratch: str, own: tuple[str, ...] | None, launch: Launch, around: Surroundings
) -> CallFence:
    """Say where a call may write; `own` are the program's own folders, None if it is not to be confined.

    `scratch` is this call's folder: what is in it is ours, the program may only write in the folder `tmp` below it.
    """
    tmp = tmp_of(scratch)
    os.makedirs(tmp, mode=0o700, exist_ok=True)
    variables = dict.fromkeys(("TMPDIR", "TMP", "TEMP", "CLAUDE_CODE_TMPDIR"), tmp)
    if own is None or launch.sandbox == Sandbox.OFF:
        return CallFence(variables)
    if around.processes.confinement() is None:
        is_required = launch.sandbox == Sandbox.REQUIRED
        return (
            CallFence(variables, refusal=words("agent.no_landlock"))
            if is_required
            else CallFence(variables, note=_NOTE)
        )
    for_work = (*work_paths(call, scratch, launch, around), *made_caches(around))
    variables |= cache_variables(launch, around)
    # Claude's own folder holds hooks and commands too: what it runs for the model must not write there.
    variables[SHELL_PREFIX] = write_wrapper(wrapper_of(scratch), for_work)
    return CallFence(variables, (*for_work, *own))


def work_paths(call: AgentCall, scratch: str, launch: Launch, around: Surroundings) -> tuple[str, ...]:
    """Return what a call may write for its work: all but the program's own folders."""
    worktree = (call.cwd,) if call.role is Role.IMPLEMENTER else ()
    return (*worktree, tmp_of(scratch), *(expanded(path, around) for path in launch.writable))


def tmp_of(scratch: str) -> str:
    """Return the temporary folder of a call, below its scratch folder."""
    return os.path.join(scratch, "tmp")


def wrapper_of(scratch: str) -> str:
    """Return the program of a call that runs the agent's shell commands."""
    return os.path.join(scratch, "shell")


def write_wrapper(path: str, writable: tuple[str, ...] | None = None) -> str:
    """Write a program that runs a shell command, its one argument, where only these paths can be written.

    The variables that `AIFLOW_HIDDEN` names are the agent's alone: the command does not see them.
    """
    confine = [] if writable is None else [sys.executable, "-I", "-S", compiled.ready_to_run(_CONFINE), *writable, "--"]
    lines = [
        "#!/bin/sh",
        "# A command of the agent's, with nothing to write but what it works on, and none of the agent's keys.",
        f"unset ${{{HIDDEN}-}} {HIDDEN}",
        "case ${SHELL-} in */bash | */zsh) ;; *) SHELL=bash ;; esac",
        f'exec {shlex.join(confine)} "$SHELL" -c "$1"',
    ]
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write("\n".join([*lines, ""]))
    os.chmod(path, 0o700)
    return path


def expanded(path: str, around: Surroundings) -> str:
    """Return a path of the settings: `~` is the user's home, anything relative is below the project."""
    if path == "~" or path.startswith("~/"):
        path = home_of(around.environ) + path[1:]
    return os.path.normpath(os.path.join(around.root, path))
