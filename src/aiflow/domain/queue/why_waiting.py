"""The standing of a task (QUE-9, QUE-11): why a queued one is not taken, and who works on a running one.

Pure: what is known of runners, other tasks and this checkout comes in as one `Scene`. The order of the queue is that of
the claim itself (`place_key`), so that what is shown is what happens.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from aiflow.domain.lifecycle import TaskStatus
from aiflow.domain.next_action import START_RUNNER
from aiflow.domain.queue.runner import RunnerStatus, is_alive, is_fresh
from aiflow.domain.queue.task import TaskAction, place_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from aiflow.domain.lock import Lock
    from aiflow.domain.next_action import NextAction
    from aiflow.domain.queue.next_step import WayAfter
    from aiflow.domain.queue.runner import Runner
    from aiflow.domain.queue.task import Checkout, Task


RUN_IN_PROGRESS = "RUN_IN_PROGRESS"
QUEUE_IN_PROGRESS = "QUEUE_IN_PROGRESS"


class StandingCode(StrEnum):
    """What a live task waits for, or who has it."""

    NO_RUNNER_HERE = "no_runner_here"
    NO_RUNNER_THERE = "no_runner_there"
    NO_RUNNER_ANYWHERE = "no_runner_anywhere"
    HELD_UP = "held_up"
    RUN_ACTIVE = "run_active"
    RUN_ACTIVE_THERE = "run_active_there"
    RUNNER_BUSY = "runner_busy"
    BEHIND_ONE = "behind_one"
    BEHIND = "behind"
    BEHIND_MANY = "behind_many"
    NEXT = "next"
    AT_WORK = "at_work"
    FINISHING = "finishing"
    DEAD = "dead"
    SILENT = "silent"
    RUNNER_UNKNOWN = "runner_unknown"


@dataclass(frozen=True, slots=True)
class TaskStanding:
    """One remark on a task, with the facts that its words need."""

    code: StandingCode
    facts: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Line:
    """The places of queued tasks that runners find, by checkout (None: anybody's), each in the order of the claim.

    What is `cut` continues after what was read: for a task that is farther back, only "at least" is known.
    """

    places: Mapping[str | None, tuple[str, ...]] = field(default_factory=dict)
    cut: frozenset[str | None] = frozenset()

    def ahead(self, task: Task, checkout: Checkout) -> int:
        """Count what a runner of a checkout takes before a task."""
        mine = place_key(task)
        return sum(bisect_left(self.places.get(owner, ()), mine) for owner in (checkout.id, None))

    def is_read_to(self, task: Task, checkout: Checkout) -> bool:
        """Return whether all that a runner of a checkout takes before a task was read."""
        mine = place_key(task)
        return all(mine <= self.places[owner][-1] for owner in (checkout.id, None) if owner in self.cut)


@dataclass(frozen=True, slots=True)
class QueueScene:
    """What is known around a task; `holder` is who runs in the checkout we look from, `start` starts a runner.

    `gone` names the runners whose process is provably gone, whatever their last heartbeat was; `ways` says
    by task id what a person does after those that are over.
    """

    now: datetime
    timeout_seconds: float
    here: Checkout
    runners: tuple[Runner, ...] = ()
    line: Line = field(default_factory=Line)
    holder: Lock | None = None
    start: NextAction = START_RUNNER
    gone: frozenset[str] = frozenset()
    ways: Mapping[str, WayAfter] = field(default_factory=dict)


def standing_of(task: Task, scene: QueueScene) -> TaskStanding | None:
    """Return the standing of a task; None if it is over."""
    if task.is_final:
        return None
    return _of_running(task, scene) if task.status is TaskStatus.RUNNING else _of_queued(task, scene)


def takers_of(task: Task, scene: QueueScene) -> tuple[Runner, ...]:
    """Return the runners that are running and may take a task (QUE-11)."""
    return tuple(
        runner
        for runner in scene.runners
        if runner.runner_id not in scene.gone
        and is_alive(runner, scene.now, scene.timeout_seconds)
        and task.checkout in (None, runner.checkout)
    )


def lines_ahead(tasks: Iterable[Task], scene: QueueScene) -> tuple[Checkout | None, ...]:
    """Return whose lines show what is ahead of tasks: anybody's, and those of the checkouts where they may be taken."""
    waiting = (task for task in tasks if task.status is TaskStatus.QUEUED)
    checkouts = dict.fromkeys(runner.checkout for task in waiting for runner in takers_of(task, scene))
    return (None, *checkouts) if checkouts else ()


def _of_running(task: Task, scene: QueueScene) -> TaskStanding:
    runner = next((each for each in scene.runners if each.runner_id == task.claimed_by), None)
    if runner is None:
        return TaskStanding(StandingCode.RUNNER_UNKNOWN, {"runner": task.claimed_by or "-"})
    facts = {"runner": runner.runner_id, "where": runner.checkout.id, "since": runner.last_heartbeat}
    if runner.runner_id in scene.gone:
        return TaskStanding(StandingCode.DEAD, {**facts, "command": scene.start})
    if not is_fresh(runner, scene.now, scene.timeout_seconds):
        return TaskStanding(StandingCode.SILENT, {**facts, "command": scene.start})
    is_stopping = runner.status is RunnerStatus.STOPPED
    return TaskStanding(StandingCode.FINISHING if is_stopping else StandingCode.AT_WORK, facts)


def _of_queued(task: Task, scene: QueueScene) -> TaskStanding:
    takers = takers_of(task, scene)
    if not takers:
        return _without_taker(task, scene)
    # Of several that may take it, one that takes anything, and of those the one with the least to do first.
    choices = (
        (
            _problem_of(each, task, scene) is not None,
            scene.line.ahead(task, each.checkout),
            each.task_id is not None,
            each,
        )
        for each in takers
    )
    _, ahead, _, runner = min(choices, key=lambda choice: choice[:3])
    problem = _problem_of(runner, task, scene)
    return _in_line(task, scene, runner, ahead) if problem is None else _held_up(runner, problem)


def _about(runner: Runner) -> dict[str, object]:
    return {"runner": runner.runner_id, "where": runner.checkout.id, "task_id": runner.task_id}


def _held_up(runner: Runner, problem: str) -> TaskStanding:
    """Say what keeps the only runners that may take a task from taking any."""
    if _waits_for_run(runner):
        return TaskStanding(StandingCode.RUN_ACTIVE_THERE, {**_about(runner), "holder": problem.partition(": ")[2]})
    return TaskStanding(StandingCode.HELD_UP, {**_about(runner), "problem": problem})


def _in_line(task: Task, scene: QueueScene, runner: Runner, ahead: int) -> TaskStanding:
    """Say what comes before a task at the runner that takes it."""
    about = _about(runner)
    is_idle = runner.task_id is None
    holder = scene.holder if is_idle and runner.checkout == scene.here else None
    # A run of its own request is its own: it was claimed while we looked.
    if holder is not None and holder.request_id != task.request_id:
        run = {"request_id": holder.request_id or "-", "run_id": holder.run_id or "-"}
        return TaskStanding(StandingCode.RUN_ACTIVE, {**about, **run})
    if ahead and not scene.line.is_read_to(task, runner.checkout):
        return TaskStanding(StandingCode.BEHIND_MANY, {**about, "count": ahead})
    if ahead:
        return TaskStanding(StandingCode.BEHIND if ahead > 1 else StandingCode.BEHIND_ONE, {**about, "count": ahead})
    return TaskStanding(StandingCode.NEXT if is_idle else StandingCode.RUNNER_BUSY, about)


def _problem_of(runner: Runner, task: Task, scene: QueueScene) -> str | None:
    """Return why a runner does not take a task; a lock shows whether a run is active here, newer than a record.

    Another auto-run is in the way of an auto-run's task only.
    """
    is_told_by_lock = _waits_for_run(runner) and runner.checkout == scene.here
    is_for_auto = (runner.held_up or "").startswith(QUEUE_IN_PROGRESS) and task.action is not TaskAction.AUTO_RUN
    return None if runner.task_id is not None or is_told_by_lock or is_for_auto else runner.held_up


def _waits_for_run(runner: Runner) -> bool:
    return runner.held_up is not None and runner.held_up.startswith(RUN_IN_PROGRESS)


def _without_taker(task: Task, scene: QueueScene) -> TaskStanding:
    """Say where a runner has to be started: a checkout's task needs that checkout's files."""
    command = {"command": scene.start}
    if task.checkout is None:
        return TaskStanding(StandingCode.NO_RUNNER_ANYWHERE, command)
    if task.checkout == scene.here:
        return TaskStanding(StandingCode.NO_RUNNER_HERE, command)
    return TaskStanding(
        StandingCode.NO_RUNNER_THERE, {**command, "host": task.checkout.host, "root": task.checkout.root}
    )
