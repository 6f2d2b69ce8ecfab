"""Any program as an agent (AGT-2): one JSON document on its standard input, its answer in the file AIFLOW_RESULT."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from aiflow.adapters.agents.call.fence import MISSING, raise_fence, tmp_of
from aiflow.adapters.agents.call.scratch import scratch_folder
from aiflow.adapters.files.atomic_files import read_regular, translated
from aiflow.adapters.processes.environment import minimal
from aiflow.domain.agents.call import AgentReply
from aiflow.domain.agents.document import document
from aiflow.domain.agents.programs import Sandbox
from aiflow.domain.programs import RUN_MARK, End, Ended, Program
from aiflow.messages.details import Words, words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aiflow.adapters.agents.call.fence import CallFence
    from aiflow.adapters.secrets import Masker
    from aiflow.domain.agents.call import AgentCall
    from aiflow.ports import Processes

MAX_ANSWER_BYTES = 10_000_000
MAX_COMMAND_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Launch:
    """How a role's program is started."""

    argv: tuple[str, ...]
    timeout_seconds: float
    idle_seconds: float
    env_names: tuple[str, ...] = ()
    model: str = ""
    mode: str = ""
    permissions: str = "auto"
    # How long a program may take to go once it has said that it is done.
    linger_seconds: float = 30.0
    sandbox: str = Sandbox.AUTO
    writable: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    max_turns: int = 0

    def seconds_for(self, call: AgentCall) -> float:
        """Return how long a call may take: what the settings allow, or what is left to the run if that is less."""
        left = call.budget.seconds
        return self.timeout_seconds if left is None else min(self.timeout_seconds, left)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What every agent program runs in: the project, folders for answers and for calls, the user's environment."""

    root: str
    results_folder: str
    calls_folder: str
    environ: Mapping[str, str]
    processes: Processes
    masker: Masker
    # Where tools that agents run keep their caches; empty: in their usual places.
    caches_folder: str = ""


class CommandAgent:
    """Starts one program per call, in the run's worktree."""

    def __init__(self, launch: Launch, around: Surroundings) -> None:
        self._launch = launch
        self._around = around

    def call(self, call: AgentCall, output: Callable[[bytes], None], should_stop: Callable[[], bool]) -> AgentReply:
        """Start the program, wait for its end and read its answer; it is confined only where that is required."""
        if self._launch.sandbox == Sandbox.REQUIRED:
            with scratch_folder(self._around.calls_folder) as scratch:
                fence = raise_fence(call, scratch, (), self._launch, self._around)
                if fence.refusal:
                    return AgentReply(reason_code=MISSING, detail=fence.refusal, command=self._shown())
                program = self._program_of(call, os.path.join(tmp_of(scratch), "answer.json"), fence)
                return self._run(call, program, output, should_stop)
        folder = self._around.results_folder
        result = os.path.join(folder, f"{call.run_id}.{os.urandom(6).hex()}.json")
        with translated(folder):
            os.makedirs(folder, mode=0o700, exist_ok=True)
        try:
            return self._run(call, self._program_of(call, result), output, should_stop)
        finally:
            with contextlib.suppress(OSError):
                os.unlink(result)

    def _program_of(self, call: AgentCall, result: str, fence: CallFence | None = None) -> Program:
        variables = {**(fence.variables if fence else {}), **_variables(call, result)}
        return Program(
            argv=(self.program(call.cwd), *self._launch.argv[1:]),
            cwd=call.cwd,
            environ=minimal(self._around.environ, self._launch.env_names, variables),
            run_id=call.run_id,
            timeout_seconds=self._launch.seconds_for(call),
            idle_seconds=self._launch.idle_seconds,
            stdin=json.dumps(document(call), ensure_ascii=False).encode("utf-8", "replace"),
            writable=fence.writable if fence else None,
        )

    def _run(
        self, call: AgentCall, program: Program, output: Callable[[bytes], None], should_stop: Callable[[], bool]
    ) -> AgentReply:
        ended = self._around.processes.run(program, output, should_stop)
        return self._reply(call, ended, program.environ["AIFLOW_RESULT"])

    def program(self, cwd: str) -> str:
        """Return the program; a relative path is the project's own file, else one of the worktree."""
        name = self._launch.argv[0]
        if "/" not in name or os.path.isabs(name):
            return name
        own = os.path.normpath(os.path.join(self._around.root, name))
        return own if os.path.exists(own) else os.path.normpath(os.path.join(cwd, name))

    def _shown(self) -> str:
        return shlex.join(self._launch.argv)[:MAX_COMMAND_SHOWN]

    def _reply(self, call: AgentCall, ended: Ended, result: str) -> AgentReply:
        command = self._shown()
        failure = why_failed(ended, self._launch, call.budget.seconds)
        if failure is not None:
            return AgentReply(None, failure.reason_code, failure.detail, command, ended.exit_code)
        try:
            answer = self._around.masker.mask(read_regular(result, MAX_ANSWER_BYTES))
        except FileNotFoundError:
            answer = None
        except OSError as error:
            detail = words("answer.unreadable", problem=os.strerror(error.errno or 0))
            return AgentReply(None, "JSON_PARSE_ERROR", detail, command, ended.exit_code)
        return AgentReply(answer, command=command, exit_code=ended.exit_code)


class CallFailure(NamedTuple):
    """What went wrong with a program's end."""

    reason_code: str
    detail: Words


def why_failed(ended: Ended, launch: Launch, seconds_left: float | None = None) -> CallFailure | None:
    """Name what went wrong with a program's end, or None if it ended well (AGT-3, AGT-4)."""
    if ended.end is End.EXITED and ended.exit_code == 0:
        return None
    is_used_up = ended.end is End.TIMED_OUT and seconds_left is not None and seconds_left < launch.timeout_seconds
    told = "used_up" if is_used_up else ended.end.value
    limit = launch.idle_seconds if ended.end is End.SILENT else launch.timeout_seconds
    known = {"program": launch.argv[0], "seconds": f"{limit:g}", "code": str(ended.exit_code)}
    return CallFailure(FAILURES[told], words(f"agent_end.{told}", **known))


# How a program can end badly; the words are the texts `agent_end.…`.
FAILURES = {
    "used_up": "RUN_LIMIT_REACHED",
    End.NOT_FOUND.value: "AGENT_NOT_FOUND",
    End.NOT_EXECUTABLE.value: "AGENT_NOT_FOUND",
    End.NOT_CONFINED.value: "AGENT_SANDBOX_MISSING",
    End.TIMED_OUT.value: "AGENT_TIMEOUT",
    End.SILENT.value: "AGENT_TIMEOUT",
    End.STOPPED.value: "CANCELLED",
    End.GUARD_LOST.value: "AGENT_FAILED",
    End.EXITED.value: "AGENT_FAILED",
}


def _variables(call: AgentCall, result: str) -> dict[str, str]:
    return {
        "AIFLOW_ROLE": call.role.value,
        "AIFLOW_REQUEST_ID": call.brief.id,
        RUN_MARK: call.run_id,
        "AIFLOW_STEP_ID": call.step.id if call.step else "",
        "AIFLOW_ATTEMPT": str(call.attempt),
        "AIFLOW_RESULT": result,
    }
