"""What a runner works with (QUE-7), and the news it reports."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

from aiflow.domain.auto.stopping import StopRequest
from aiflow.domain.next_action import ActionKind, NextAction
from aiflow.domain.queue.runner import gives_up_seconds
from aiflow.errors import AiflowError, EnvironmentProblemError
from aiflow.ports.tasks import Claimant
from aiflow.usecases.queue.desk import Desk

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from aiflow.domain.auto.session import AutoStatus
    from aiflow.domain.queue.runner import Runner
    from aiflow.domain.queue.task import Task
    from aiflow.ports import AutoRecords
    from aiflow.ports.issues import IssueCare
    from aiflow.settings import Settings
    from aiflow.usecases.engine import Engine

Answer = TypeVar("Answer")

# The store may answer again, or write again: what it was asked is asked again.
TROUBLES = frozenset({"STORE_UNREACHABLE", "STORE_THROTTLED", "DISK_FULL"})
FIRST_PAUSE_SECONDS = 0.1
# A stop is heard within this time, however long the poll is.
EAR_SECONDS = 0.25


class NewsKind(StrEnum):
    """The kinds of news that a runner reports."""

    STARTED = "started"
    WAITING = "waiting"
    CLAIMED = "claimed"
    HELD_UP = "held_up"
    ENDED = "ended"
    LOST = "lost"
    RECOVERING = "recovering"
    REAPED = "reaped"
    STORE_AWAY = "store_away"
    STORE_BACK = "store_back"
    CUT_OFF = "cut_off"
    UNWRITTEN = "unwritten"
    STOPPING = "stopping"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class RunnerNews:
    """One thing that happened to a runner; `facts` are for its words."""

    kind: NewsKind
    task: Task | None = None
    reason_code: str | None = None
    facts: Mapping[str, object] = field(default_factory=dict)


class Outage:
    """Whom the store does not answer just now: reported once when it begins and once when it is over for all."""

    def __init__(self, lock: AbstractContextManager[object]) -> None:
        self._lock = lock
        self._missed: set[str] = set()

    def begins(self, who: str) -> bool:
        """Note that one of a runner's parts got no answer; True if that is news."""
        with self._lock:
            is_news = not self._missed
            self._missed.add(who)
            return is_news

    def ends(self, who: str) -> bool:
        """Note that one of them was answered; True if that was the last to wait."""
        with self._lock:
            was_missed = who in self._missed
            self._missed.discard(who)
            return was_missed and not self._missed


@dataclass(frozen=True, slots=True)
class Pace:
    """How often a runner looks, and how long its heartbeat may be missed."""

    poll_seconds: float
    timeout_seconds: float
    # How long a runner that has to exit now tries to record its task's end: a harder kill may follow soon.
    leave_seconds: float = 10.0

    @property
    def beat_seconds(self) -> float:
        """How often it beats: at every poll, and so that a few missed beats do no harm."""
        return min(self.poll_seconds, self.timeout_seconds / 6)

    @property
    def gives_up_seconds(self) -> float:
        """How long it works on without the store (QUE-10)."""
        return gives_up_seconds(self.timeout_seconds)


def pace_of(settings: Settings) -> Pace:
    """Return a runner's pace, from the settings."""
    return Pace(settings.number("queue.poll_ms") / 1000, settings.number("queue.heartbeat_timeout_seconds"))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerDesk(Desk):
    """A desk with a runner at it.

    `asked` is what signals ask for: to end after the task, or now. `care` looks after the issues, for an auto-run.
    """

    engine: Engine
    runner: Runner
    pace: Pace
    auto_records: AutoRecords
    asked: Callable[[], StopRequest] = lambda: StopRequest.NONE
    tell: Callable[[RunnerNews], None] = lambda _news: None
    tell_auto: Callable[[AutoStatus], None] = lambda _status: None
    care: IssueCare | None = None
    outage: Outage = field(init=False)

    def __post_init__(self) -> None:
        """Be able to report that the store is unreachable, from the work and from the threads beside it."""
        object.__setattr__(self, "outage", Outage(self.engine.time.mutex()))

    @property
    def claimant(self) -> Claimant:
        """Who claims."""
        return Claimant(self.runner.runner_id, self.runner.checkout)

    def wait(self, seconds: float) -> bool:
        """Wait for news at most this long; True if there is some, and a stop ends it early."""
        time = self.engine.time
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and self.asked() is StopRequest.NONE:
            if self.wake.wait(min(left, EAR_SECONDS)):
                return True
        return False

    def patiently(self, call: Callable[[], Answer], is_enough: Callable[[], bool]) -> Answer:
        """Call the store until it answers, with pauses up to the poll; `is_enough` ends that with its error."""
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                answer = call()
            except AiflowError as error:
                if error.reason_code not in TROUBLES or is_enough():
                    raise
                self.say_away("work", error)
                self.engine.time.sleep(pause)
                pause = min(pause * 2, max(self.pace.poll_seconds, FIRST_PAUSE_SECONDS))
            else:
                self.say_back("work")
                return answer

    def say_away(self, who: str, error: AiflowError) -> None:
        """Report that the store does not answer, and what a person can do, unless that was reported already."""
        if isinstance(error, EnvironmentProblemError) and self.outage.begins(who):
            command = error.context.get("start", NextAction(ActionKind.DOCTOR, options=(("full", ""),)))
            facts = {"problem": error.context.get("problem", ""), "command": command}
            self.tell(RunnerNews(NewsKind.STORE_AWAY, None, error.reason_code, facts))

    def say_back(self, who: str) -> None:
        """Report that the store answers again, if it did not."""
        if self.outage.ends(who):
            self.tell(RunnerNews(NewsKind.STORE_BACK))


def sit_down(engine: Engine, runner: Runner, pace: Pace, **parts: Any) -> RunnerDesk:
    """Put a runner's desk together: what an engine and a runner know already need not be given again."""
    return RunnerDesk(
        engine=engine,
        runner=runner,
        pace=pace,
        checkout=runner.checkout,
        locks=engine.locks,
        journal=engine.journal,
        time=engine.time,
        timeout_seconds=pace.timeout_seconds,
        **parts,
    )
