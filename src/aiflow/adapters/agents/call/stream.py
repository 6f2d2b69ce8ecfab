"""Agents that report what they do as events, one JSON object a line (AGT-1, AGT-4): claude-code, codex and acp.

What is the same for all of them is here: the program under its guard, its events read as they come into a log a
person can read, its limits, and what its end means. Exit code 0 is no success: only the program's own closing event is.
"""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from aiflow.adapters.agents.call.command import MAX_COMMAND_SHOWN, why_failed
from aiflow.adapters.agents.call.fence import MISSING, raise_fence
from aiflow.adapters.agents.call.scratch import scratch_folder
from aiflow.adapters.processes.environment import minimal
from aiflow.domain.agents.call import AgentReply
from aiflow.domain.agents.usage import Usage
from aiflow.domain.programs import RUN_MARK, End, Program
from aiflow.messages.details import masked, words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from aiflow.adapters.agents.call.command import Launch, Surroundings
    from aiflow.adapters.agents.call.fence import CallFence
    from aiflow.adapters.secrets import Masker
    from aiflow.domain.agents.call import AgentCall
    from aiflow.domain.programs import Ended

MAX_LINE = 10_000_000
LAST_WORDS = 2_000
SESSION_LOST = "AGENT_SESSION_LOST"


@dataclass(frozen=True, slots=True)
class Trouble:
    """What a program's own signals say went wrong: a reason code, and in its words what."""

    reason_code: str
    detail: str
    retry_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """What a program's events have reported so far; `is_closed` once its closing event came, good or bad."""

    is_closed: bool = False
    answer: bytes | None = None
    trouble: Trouble | None = None
    session_id: str | None = None
    usage: Usage = field(default_factory=Usage)
    choices: tuple[str, ...] = ()


class Events(Protocol):
    """Reads one program's events; pure, takes any bytes, never raises."""

    @property
    def told(self) -> Told:
        """What is known by now."""

    def read(self, line: bytes) -> str | None:
        """Take a line of standard output; return what the log shows of it."""

    def read_error(self, line: bytes) -> str | None:
        """Take a line of standard error; return what the log shows of it."""


@dataclass(frozen=True, slots=True)
class Start:
    """How one call of a program is started.

    `writable` are the folders it keeps for itself (`own_folders.py`); None is not confined by the kernel. `shown` is
    the command as a person knows it, where it is not the one that is started.
    """

    argv: tuple[str, ...]
    stdin: bytes
    variables: Mapping[str, str] = field(default_factory=dict)
    env_names: tuple[str, ...] = ()
    writable: tuple[str, ...] | None = None
    shown: tuple[str, ...] = ()


class Driver(Protocol):
    """One kind of agent for one role: how its program is called, and how its events are read."""

    def start(self, call: AgentCall, scratch: str) -> Start:
        """Say how a call is started; files it only reads go into `scratch`, which is gone afterwards."""

    def events(self, call: AgentCall) -> Events:
        """Give a reader of the call's events."""


class StreamAgent:
    """Calls one program per call and follows its events."""

    def __init__(self, driver: Driver, launch: Launch, around: Surroundings) -> None:
        self._driver = driver
        self._launch = launch
        self._around = around

    def call(self, call: AgentCall, output: Callable[[bytes], None], should_stop: Callable[[], bool]) -> AgentReply:
        """Call the program; if it no longer knows a session, a new one begins within the same attempt."""
        reply = self._call(call, output, should_stop)
        if reply.reason_code != SESSION_LOST:
            return reply
        output(f"[aiflow] {reply.detail}; a new session begins\n".encode())
        again = self._call(replace(call, session_id=None), output, should_stop)
        return replace(again, usage=reply.usage + again.usage, warnings=(*again.warnings, SESSION_LOST))

    def _call(self, call: AgentCall, output: Callable[[bytes], None], should_stop: Callable[[], bool]) -> AgentReply:
        with scratch_folder(self._around.calls_folder) as scratch:
            start = self._driver.start(call, scratch)
            fence = raise_fence(call, scratch, start.writable, self._launch, self._around)
            if fence.refusal:
                return AgentReply(reason_code=MISSING, detail=fence.refusal, command=_shown(start))
            if fence.note:
                output(f"{fence.note}\n".encode())
            events = Masked(self._driver.events(call), self._around.masker)
            watch = Following(events, call, output, should_stop, self._launch.linger_seconds)
            ended = self._around.processes.run(
                self._program(call, start, fence), watch.hear, watch.should_stop, errors=watch.hear_error
            )
            watch.finish()
            return self._reply(call, start, ended, watch)

    def _program(self, call: AgentCall, start: Start, fence: CallFence) -> Program:
        names = (*start.env_names, *self._launch.env_names)
        variables = {**start.variables, **fence.variables, RUN_MARK: call.run_id}
        return Program(
            argv=start.argv,
            cwd=call.cwd,
            environ=minimal(self._around.environ, names, variables),
            run_id=call.run_id,
            timeout_seconds=self._launch.seconds_for(call),
            idle_seconds=self._launch.idle_seconds,
            stdin=start.stdin,
            writable=fence.writable,
        )

    def _reply(self, call: AgentCall, start: Start, ended: Ended, watch: Following) -> AgentReply:
        told = watch.told
        # The settings name no program for a kind that brings its own.
        launch = replace(self._launch, argv=start.argv)
        trouble = watch.excess or trouble_of(ended, told, launch, call, watch.last_words)
        masker = self._around.masker
        return AgentReply(
            answer=None if trouble or told.answer is None else masker.mask(told.answer),
            reason_code=trouble.reason_code if trouble else None,
            detail=masked(trouble.detail, masker.mask_text) if trouble else "",
            command=_shown(start),
            exit_code=ended.exit_code,
            session_id=told.session_id,
            usage=told.usage,
            retry_at=trouble.retry_at if trouble else None,
            choices=tuple(map(masker.mask_text, told.choices)),
        )


def _shown(start: Start) -> str:
    return shlex.join(start.shown or start.argv)[:MAX_COMMAND_SHOWN]


class Following:
    """One call being followed: lines to the reader, its words to the log, its limits watched as it goes."""

    def __init__(
        self,
        events: Events,
        call: AgentCall,
        output: Callable[[bytes], None],
        is_to_stop: Callable[[], bool],
        linger_seconds: float,
    ) -> None:
        self._events = events
        self._budget = call.budget
        self._output = output
        self._is_to_stop = is_to_stop
        self._linger_seconds = linger_seconds
        self._lines = Lines(events.read, self._say)
        self._error_lines = Lines(events.read_error, self._say_error)
        self._closed_at: float | None = None
        self.excess: Trouble | None = None
        self.last_words = ""

    @property
    def told(self) -> Told:
        """What the program has reported."""
        return self._events.told

    def hear(self, data: bytes) -> None:
        """Take standard output as it comes."""
        self._lines.add(data)

    def hear_error(self, data: bytes) -> None:
        """Take standard error as it comes."""
        self._error_lines.add(data)

    def finish(self) -> None:
        """Take what came without a line's end."""
        self._lines.finish()
        self._error_lines.finish()

    def should_stop(self) -> bool:
        """Return whether the program has to end: it is asked to, it hangs after its end, or it used up its budget."""
        if self._is_to_stop():
            return True
        if self.told.is_closed and self._closed_at is None:
            self._closed_at = time.monotonic()
        if self._closed_at is not None:
            return time.monotonic() - self._closed_at >= self._linger_seconds
        self.excess = self.excess or _excess(self.told.usage, self._budget.tokens, self._budget.cost_usd)
        return self.excess is not None

    def _say(self, text: str) -> None:
        self._output(f"{text}\n".encode("utf-8", "backslashreplace"))

    def _say_error(self, text: str) -> None:
        self.last_words = f"{self.last_words}\n{text}"[-LAST_WORDS:].strip()
        self._say(text)


class Masked:
    """Events whose lines are masked before they are read: readers cut texts, and half a secret is not recognized."""

    def __init__(self, events: Events, masker: Masker) -> None:
        self._events = events
        self._masker = masker

    @property
    def told(self) -> Told:
        """What is known by now."""
        return self._events.told

    def read(self, line: bytes) -> str | None:
        """Take a line of standard output."""
        return self._events.read(self._masker.mask(line))

    def read_error(self, line: bytes) -> str | None:
        """Take a line of standard error."""
        return self._events.read_error(self._masker.mask(line))


class Lines:
    """Cuts a stream into lines; one without an end is given over in pieces, none of which is an event."""

    def __init__(self, read: Callable[[bytes], str | None], say: Callable[[str], None]) -> None:
        self._read = read
        self._say = say
        self._partial = bytearray()

    def add(self, data: bytes) -> None:
        """Take more of the stream."""
        first, *rest = data.split(b"\n")
        self._partial += first
        for line in rest:
            self.finish()
            self._partial += line
        if len(self._partial) > MAX_LINE:
            self.finish()

    def finish(self) -> None:
        """Take what came without an end."""
        rest, self._partial = bytes(self._partial), bytearray()
        self._take(rest)

    def _take(self, line: bytes) -> None:
        if line.strip() and (text := self._read(line.rstrip(b"\r"))):
            self._say(text)


def trouble_of(ended: Ended, told: Told, launch: Launch, call: AgentCall, last_words: str) -> Trouble | None:
    """Say what is wrong with a call's end, or None: it closed well, and nothing else contradicts that."""
    if told.trouble is not None and told.is_closed:
        return told.trouble
    if told.is_closed and ended.end in (End.STOPPED, End.TIMED_OUT, End.SILENT):
        return None  # it had said that it was done, and only would not go
    failure = why_failed(ended, launch, call.budget.seconds)
    if told.trouble is not None and (failure is None or failure.reason_code == "AGENT_FAILED"):
        return told.trouble
    if failure is not None:
        has_more = failure.reason_code == "AGENT_FAILED" and bool(last_words)
        detail = words("agent.said", how=failure.detail, said=last_words) if has_more else failure.detail
        return Trouble(failure.reason_code, detail)
    return None if told.is_closed else Trouble("AGENT_FAILED", words("agent.not_closed"))


def _excess(usage: Usage, tokens: int | None, cost_usd: float | None) -> Trouble | None:
    if cost_usd is not None and usage.cost_usd > cost_usd:
        return Trouble("COST_LIMIT_REACHED", words("agent.has_cost", cost=f"{usage.cost_usd:.2f}"))
    if tokens is not None and usage.tokens > tokens:
        return Trouble("RUN_LIMIT_REACHED", words("agent.has_used", tokens=usage.tokens))
    return None
