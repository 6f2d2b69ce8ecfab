"""A runner's heartbeat (QUE-7, QUE-8, QUE-10): kept up beside its work, with an eye on the task it has at work.

The record is saved at every poll and all through a task. Each time the task is looked at as well: one that was
cancelled, or that is no longer ours, is reported to its worker, and so is that the store has been away for too
long: before anybody may take over, the agent has ended.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING

from aiflow.domain.auto.stopping import StopRequest
from aiflow.domain.lifecycle import TaskStatus
from aiflow.domain.queue.runner import RunnerStatus
from aiflow.errors import AiflowError, ConflictError
from aiflow.usecases.runner.desk import FIRST_PAUSE_SECONDS, NewsKind, RunnerNews

if TYPE_CHECKING:
    from aiflow.domain.queue.task import Task
    from aiflow.domain.runs.run import Run
    from aiflow.ports import Lease
    from aiflow.usecases.runner.desk import RunnerDesk

# A cancel is seen within this time, however long the poll is (QUE-8).
WATCH_SECONDS = 1.0


class CutOff(StrEnum):
    """Why the work on a task has to end; the run stops with this code."""

    CANCELLED = "CANCELLED"
    LOST = "RUNNER_LOST"
    STORE_AWAY = "STORE_UNREACHABLE"
    STOPPED = "RUNNER_STOPPED"


class TaskHold:
    """A claimed task at work: the run that works on it, and why that has to end, if it has to.

    `turn` is the checkout's, with which it was claimed. The heartbeat's thread and the worker's share it. `run_id` and
    `is_over` are the worker's to set, `noted` and `found` the heartbeat's. Both set `cut_off`: the worker that the
    store is away or a stop is asked for, the heartbeat what became of the task, which counts more and has `found` set
    before it.
    """

    def __init__(self, task: Task, turn: Lease | None = None) -> None:
        self.task = task
        self.turn = turn
        self.run_id: str | None = None
        self.noted: str | None = None
        self.cut_off: CutOff | None = None
        self.found: Task | None = None
        self.is_over = False


class Heartbeat:
    """Keeps one runner's record up to date."""

    def __init__(self, desk: RunnerDesk) -> None:
        self._desk = desk
        self._time = desk.engine.time
        self._runner = desk.runner
        self._status = RunnerStatus.RUNNING
        self._hold: TaskHold | None = None
        self._held_up: str | None = None
        self._saved_seconds = self._time.monotonic()
        self._missed = 0
        self._beside = self._time.beside("heartbeat", self._turn)

    def start(self) -> None:
        """Make the runner known, and beat from then on."""
        self._save()
        self._beside.start(self._desk.pace.beat_seconds)

    def take(self, task: Task, turn: Lease | None = None) -> TaskHold:
        """Have a task at work: its name goes into the record at once, and it is watched."""
        self._hold = TaskHold(task, turn)
        self._beside.poke()
        return self._hold

    def put_down(self) -> None:
        """Have no task at work any more."""
        self._hold = None
        self._beside.poke()

    def hold_up(self, why: str | None) -> None:
        """Say in the record why this runner takes nothing, and that it does again (None); at once, if that is news."""
        if why != self._held_up:
            self._held_up = why
            self._beside.poke()

    def note_run(self, run: Run) -> None:
        """Name the run that works on the task; the store is updated at once, without waiting for it."""
        hold = self._hold
        if hold is not None and hold.run_id != run.run_id:
            hold.run_id = run.run_id
            self._beside.poke()

    def beat_now(self) -> None:
        """Let the next beat be now."""
        self._beside.poke()

    def say_stopped(self) -> None:
        """Say at once that this runner takes nothing more."""
        if self._status is not RunnerStatus.STOPPED:
            self._status = RunnerStatus.STOPPED
            self._beside.poke()

    def close(self) -> None:
        """Say the last word: stopped, and at rest unless its task could not be ended."""
        self._beside.close()
        self._status = RunnerStatus.STOPPED
        with contextlib.suppress(AiflowError):
            self._save()

    @property
    def is_cut_off(self) -> bool:
        """Whether the store has taken no heartbeat for so long that somebody may soon take over (QUE-10)."""
        return self._time.monotonic() - self._saved_seconds >= self._desk.pace.gives_up_seconds

    def why_end(self) -> CutOff | None:
        """Return why the work on the task has to end, if so; the worker asks several times a second."""
        hold = self._hold
        if hold is None:
            return CutOff.STOPPED if self._desk.asked() is StopRequest.NOW else None
        if hold.cut_off is None:
            if self.is_cut_off:
                hold.cut_off = CutOff.STORE_AWAY
                facts = {"seconds": f"{self._time.monotonic() - self._saved_seconds:.0f}"}
                self._desk.tell(RunnerNews(NewsKind.CUT_OFF, hold.task, hold.cut_off.value, facts))
            elif self._desk.asked() is StopRequest.NOW:
                hold.cut_off = CutOff.STOPPED
        if self._desk.asked() is not StopRequest.NONE:
            self.say_stopped()
        return hold.cut_off

    def _turn(self) -> float:
        """Beat once; returns the seconds to the next beat, fewer while the store does not answer."""
        try:
            self._save()
            hold = self._hold
            if hold is not None and not hold.is_over:
                self._watch(hold)
        except Exception as error:  # noqa: BLE001 - whatever it is, the beat was missed, and the next may not be
            if isinstance(error, AiflowError):
                self._desk.say_away("heartbeat", error)
            self._missed += 1
            return min(self._desk.pace.beat_seconds, FIRST_PAUSE_SECONDS * self._missed)
        self._desk.say_back("heartbeat")
        self._missed = 0
        return min(self._desk.pace.beat_seconds, WATCH_SECONDS) if self._hold else self._desk.pace.beat_seconds

    def _save(self) -> None:
        began, hold = self._time.monotonic(), self._hold
        self._runner = replace(
            self._runner,
            status=self._status,
            beats=self._runner.beats + 1,
            last_heartbeat=self._desk.engine.time.now(),
            task_id=hold.task.task_id if hold else None,
            held_up=self._held_up if self._status is RunnerStatus.RUNNING else None,
        )
        self._desk.runners.save(self._runner)
        self._saved_seconds = began

    def _watch(self, hold: TaskHold) -> None:
        """Look what became of the task; whose it is decides the store."""
        queue, task = self._desk.queue, hold.task
        if hold.run_id is not None and hold.run_id != hold.noted:
            with contextlib.suppress(ConflictError):  # what it is instead shows below
                queue.note_run(task, hold.run_id, self._desk.engine.time.now())
            hold.noted = hold.run_id
        found = queue.get(task.task_id)
        if hold.is_over or (found is not None and is_same_claim(found, task) and found.status is TaskStatus.RUNNING):
            return
        hold.found = found
        is_cancelled = found is not None and found.status is TaskStatus.CANCELLED
        hold.cut_off = CutOff.CANCELLED if is_cancelled else CutOff.LOST


def is_same_claim(found: Task, task: Task) -> bool:
    """Return whether a task is still the one that was claimed."""
    return (found.claimed_by, found.claim_token) == (task.claimed_by, task.claim_token)
