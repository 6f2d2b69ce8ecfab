"""See to the tasks of dead runners (QUE-7): ended as RUNNER_LOST, and delivered again to where their run's files are.

Whether a runner is dead is told by its heartbeat alone, timed by our own clock, or by its machine, if that is ours and
its process is provably gone. Every runner does this beside its work, and several at once do no harm: each step is a
conditional write, and what a killed reaper left half done the next one finishes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.activity import Actor, recovered
from aiflow.domain.lifecycle import TaskEvent, TaskStatus
from aiflow.domain.queue.runner import HeartbeatWatch, Runner, forgettable
from aiflow.domain.queue.task import (
    RUNNER_LOST,
    Checkout,
    TaskEnd,
    is_delivered_again,
    message_of,
    successor_id,
)
from aiflow.domain.request import RequestId
from aiflow.errors import AiflowError
from aiflow.usecases.read_backlog import is_known
from aiflow.usecases.runner.desk import TROUBLES, NewsKind, RunnerNews
from aiflow.usecases.runner.finish import deliver_again

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from aiflow.domain.queue.task import Task
    from aiflow.usecases.runner.desk import RunnerDesk

NOWHERE = Checkout("", "")


class Reaper:
    """One runner's look at the others, again and again."""

    def __init__(self, desk: RunnerDesk, seconds: Callable[[], float] | None = None) -> None:
        self._desk = desk
        self._seconds = seconds or desk.engine.time.monotonic
        self._vigil = HeartbeatWatch()
        self._unrecorded: frozenset[str] = frozenset()
        self._turn = desk.engine.time.mutex()

    def suspect(self, runner_ids: frozenset[str]) -> None:
        """Have an eye on those who have tasks and no record: they are given as long to show up as anybody."""
        with self._turn:
            self._unrecorded = runner_ids

    def look(self) -> None:
        """Look at everybody once; whoever is dead is put to rest, behind what becomes of their task."""
        with self._turn:  # asked for by the runner's own work, too
            self._look()

    def _look(self) -> None:
        desk, timeout_seconds = self._desk, self._desk.pace.timeout_seconds
        # A look that took long must not make anybody older: seen from when it was over, judged by when it began.
        began = self._seconds()
        recorded = desk.runners.all()
        self._unrecorded -= {each.runner_id for each in recorded}
        others = [each for each in recorded if each.runner_id != desk.runner.runner_id]
        others += [_without_record(desk, runner_id) for runner_id in sorted(self._unrecorded)]
        self._vigil = self._vigil.look(others, self._seconds(), timeout_seconds)
        trouble: AiflowError | None = None
        for runner in others:
            try:
                self._see_to(runner, began)
            except AiflowError as error:  # what is wrong with one's task keeps nobody from the others
                if error.reason_code in TROUBLES:
                    raise
                trouble = trouble or error
        for runner in forgettable(others, desk.engine.time.now()):
            desk.runners.forget(runner)
        if trouble is not None:
            raise trouble

    def _see_to(self, runner: Runner, began: float) -> None:
        desk = self._desk
        is_silent = self._vigil.is_lost(runner, began, desk.pace.timeout_seconds)
        if not runner.is_at_rest and (is_silent or desk.is_gone(runner)):
            bury(desk, runner)
            self._unrecorded -= {runner.runner_id}


def bury(desk: RunnerDesk, runner: Runner) -> None:
    """End what a dead runner had at work, deliver it again where that may be, then put the runner to rest."""
    for task in _tasks_of(desk, runner):
        _see_to(desk, runner, task)
    desk.runners.put_to_rest(runner)


def end_strays(desk: RunnerDesk) -> frozenset[str]:
    """End what a runner at rest still has: it arrived behind its last word, or behind its burial.

    Returns who has a task and no record: one that was at rest is forgotten after a while. Reads the whole namespace.
    Tasks are read before the records: who rests by then has nothing more to say of them.
    """
    held = [task for page in desk.queue.pages([TaskStatus.RUNNING]) for task in page.tasks]
    records = {each.runner_id: each for each in desk.runners.all()} if held else {}
    for task in held:
        runner = records.get(task.claimed_by or "")
        if runner is not None and runner.is_at_rest:
            _see_to(desk, runner, task)
    return frozenset(name for task in held if (name := task.claimed_by) and name not in records)


def _without_record(desk: RunnerDesk, runner_id: str) -> Runner:
    """Stand in for a runner of which nothing is known but its name."""
    now = desk.engine.time.now()
    return Runner(desk.queue.namespace, runner_id, NOWHERE, now, now)


def _see_to(desk: RunnerDesk, runner: Runner, task: Task) -> None:
    """End a dead runner's task unless it has ended, and deliver it again where that is due."""
    ended = _end(desk, runner, task) if _is_at_work(task, runner) else task
    if ended is not None and ended.successor is not None and desk.queue.get(ended.successor) is None:
        deliver_again(desk, ended, _whereabouts(desk, runner, ended))


def _whereabouts(desk: RunnerDesk, runner: Runner, task: Task) -> Checkout | None:
    """Return where a dead runner worked; if its record is gone or does not say so, here if what it began is here.

    None is anywhere: then nobody knows of anything that was begun.
    """
    if runner.checkout.host:
        return runner.checkout
    request_id = RequestId(task.request_id)
    has_begun = desk.engine.runs.latest([request_id]) or is_known(desk.engine.source, request_id)
    return desk.runner.checkout if has_begun else None


def _tasks_of(desk: RunnerDesk, runner: Runner) -> Iterator[Task]:
    """Give the task that a runner's record names, and where that is past, those that the queue says are its."""
    named = desk.queue.get(runner.task_id) if runner.task_id else None
    if named is not None:
        yield named
    if named is None or not _is_at_work(named, runner):
        yield from desk.queue.tasks_of(runner.runner_id)


def _is_at_work(task: Task, runner: Runner) -> bool:
    return task.status is TaskStatus.RUNNING and task.claimed_by == runner.runner_id


def _end(desk: RunnerDesk, runner: Runner, task: Task) -> Task | None:
    """End a lost task and record it; what somebody else did meanwhile is returned as it is."""
    successor = successor_id(task.task_id) if is_delivered_again(task) else None
    text = runner.runner_id if runner.checkout == NOWHERE else f"{runner.runner_id} ({runner.checkout.id})"
    end = TaskEnd(TaskEvent.FAILED, message_of(RUNNER_LOST, text), task.run_id, successor)
    now = desk.engine.time.now()
    ended = desk.queue.end_lost(task, end, now)
    if ended is None:
        return desk.queue.get(task.task_id)
    data = {"task_id": task.task_id, "runner_id": runner.runner_id, "successor": successor}
    desk.engine.journal.append(recovered(now, Actor.RUNNER, task, RUNNER_LOST, **data))
    desk.tell(RunnerNews(NewsKind.REAPED, ended, RUNNER_LOST, {"lost_runner": runner.runner_id}))
    return ended
