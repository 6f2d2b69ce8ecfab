"""Runners (QUE-7): which are running, judged by their heartbeats, and timed by the observer's clock.

A heartbeat's own time stamp is for people. Whether a runner is lost is decided by how long its count has not changed
by our clock, starting again after our machine slept: clocks need not agree, and a closed lid loses no runner.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from aiflow.domain.process import Process

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from aiflow.domain.queue.task import Checkout

# The runner ends its agent at this part of the heartbeat timeout without the store, before anybody may take over.
GIVE_UP_SHARE = 0.75
# Records of runners at rest are kept for people to look at; every reaper reads them all at every look, so not many.
FORGET_AFTER = timedelta(days=7)
KEPT_AT_REST = 20
FORGET_OTHERS_AFTER = timedelta(hours=1)


class RunnerStatus(StrEnum):
    """What a runner reports about itself (QUEUE)."""

    RUNNING = "running"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Runner:
    """One runner's record.

    `beats` counts its heartbeats. `task_id` is the task it works on, even while a stopped runner still finishes it.
    `held_up` is why it takes nothing just now: a reason code, and what there is to say in one line. The process is
    named so exactly that its machine can tell whether it is running (a pid alone is reused).
    """

    namespace: str
    runner_id: str
    checkout: Checkout
    started_at: datetime
    last_heartbeat: datetime
    status: RunnerStatus = RunnerStatus.RUNNING
    beats: int = 0
    task_id: str | None = None
    pid: int | None = None
    boot_id: str | None = None
    pid_namespace: str | None = None
    machine_id: str | None = None
    process_started_at: float | None = None
    version: str = ""
    held_up: str | None = None

    @property
    def is_at_rest(self) -> bool:
        """Whether it has said that it stopped, and has nothing at work any more."""
        return self.status is RunnerStatus.STOPPED and self.task_id is None

    @property
    def process(self) -> Process:
        """The process that it is."""
        where = (self.boot_id, self.pid_namespace)
        return Process(self.checkout.host, self.pid, *where, self.process_started_at, self.machine_id)


def is_alive(runner: Runner, now: datetime, timeout_seconds: float) -> bool:
    """Return whether a runner shows as running, with a heartbeat younger than the timeout (QUE-7)."""
    return runner.status is RunnerStatus.RUNNING and is_fresh(runner, now, timeout_seconds)


def is_fresh(runner: Runner, now: datetime, timeout_seconds: float) -> bool:
    """Return whether a runner's heartbeat is younger than the timeout, also of one that finishes its last task."""
    return now - runner.last_heartbeat < timedelta(seconds=timeout_seconds)


@dataclass(frozen=True, slots=True)
class RunnerSeen:
    """A runner's count, and when by our clock it was first seen to be that."""

    beats: int
    since_seconds: float


@dataclass(frozen=True, slots=True)
class HeartbeatWatch:
    """What a reaper has seen of the runners of its namespace so far.

    `looked_seconds` is when it last looked. A look that comes much later than it was due means that we slept, or were
    stopped: what others did meanwhile is unknown, so every runner's time starts again.
    """

    seen: Mapping[str, RunnerSeen] = field(default_factory=dict)
    looked_seconds: float | None = None

    def look(self, runners: Iterable[Runner], now_seconds: float, timeout_seconds: float) -> HeartbeatWatch:
        """Take note of everybody's count."""
        has_slept = self.looked_seconds is None or now_seconds - self.looked_seconds > timeout_seconds / 2
        known = {} if has_slept else self.seen
        fresh = {}
        for runner in runners:
            before = known.get(runner.runner_id)
            is_same = before is not None and before.beats == runner.beats
            fresh[runner.runner_id] = before if before and is_same else RunnerSeen(runner.beats, now_seconds)
        return replace(self, seen=fresh, looked_seconds=now_seconds)

    def is_lost(self, runner: Runner, now_seconds: float, timeout_seconds: float) -> bool:
        """Return whether a runner's count has not changed for as long as the timeout."""
        seen = self.seen.get(runner.runner_id)
        return seen is not None and seen.beats == runner.beats and now_seconds - seen.since_seconds >= timeout_seconds


def forgettable(runners: Iterable[Runner], now: datetime) -> tuple[Runner, ...]:
    """Return whose records may go: at rest for long, or not among the last that went to rest."""
    resting = sorted((each for each in runners if each.is_at_rest), key=lambda each: each.last_heartbeat, reverse=True)
    kept = [FORGET_AFTER if place < KEPT_AT_REST else FORGET_OTHERS_AFTER for place in range(len(resting))]
    return tuple(each for each, after in zip(resting, kept, strict=True) if now - each.last_heartbeat > after)


def gives_up_seconds(timeout_seconds: float) -> float:
    """Return how long a runner works on without a heartbeat that the store has taken (QUE-10)."""
    return timeout_seconds * GIVE_UP_SHARE
