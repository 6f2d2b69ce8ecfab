"""What a person finds when auto-run has ended (AUT-3), as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.auto.stopping import StopRequest

if TYPE_CHECKING:
    from datetime import datetime

    from aiflow.domain.auto.session import AutoSession, Upcoming
    from aiflow.domain.health import Finding
    from aiflow.domain.lock import Lock
    from aiflow.domain.next_action import NextAction


@dataclass(frozen=True, slots=True)
class Waiting:
    """A request that waits for a person: why (a question with its choices, or the reason), and how to continue."""

    request_id: str
    title: str
    reason_code: str
    text: str
    action: NextAction | None = None
    is_question: bool = False
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unreached:
    """A request that was ready and never ran, and why."""

    request_id: str
    title: str
    reason_code: str
    text: str


@dataclass(frozen=True, slots=True)
class Summary:
    """What a person finds in the morning; `findings` are the doctor's if it stopped auto-run, `facts` its trouble's."""

    session: AutoSession
    done: tuple[Upcoming, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    unreached: tuple[Unreached, ...] = ()
    interrupted: tuple[Upcoming, ...] = ()
    findings: tuple[Finding, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    follow_ups: tuple[Upcoming, ...] = ()


class Beginning(NamedTuple):
    """An auto-run that waits for its time (`auto --at`), and the process that waits."""

    at: datetime
    pid: int


@dataclass(frozen=True, slots=True)
class AutoReport:
    """The state of a checkout's auto-run, for other processes.

    `holder` is the lock of the process that is at work, `at_work` that of its current run. `session` is what was
    recorded last: what it did so far, or how the one before it ended. `summary` is that for a person to read. `begins`
    are those that wait for their time.
    """

    holder: Lock | None = None
    at_work: Lock | None = None
    session: AutoSession | None = None
    stop_request: StopRequest = StopRequest.NONE
    summary: Summary | None = None
    begins: tuple[Beginning, ...] = ()

    @property
    def is_on(self) -> bool:
        """Whether an auto-run is at work."""
        return self.holder is not None

    @property
    def is_current(self) -> bool:
        """Whether the session is that of the process at work; one that has only just begun has not recorded its own."""
        return self.holder is not None and self.session is not None and self.session.is_interrupted

    @property
    def was_cut(self) -> bool:
        """Whether the last session's process crashed, and no other has continued it."""
        return self.holder is None and self.session is not None and self.session.was_cut
