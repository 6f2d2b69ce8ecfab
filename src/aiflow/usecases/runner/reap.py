"""Handle the tasks of runners that are gone (QUE-7): end them as RUNNER_LOST, and deliver them to their run's checkout.

A runner counts as gone if its heartbeat stops, timed by our own clock, or if it runs on our machine and its process is
provably gone. Every runner checks this while it works. Several at once do no harm: each step is a conditional write,
and the next reaper finishes what a killed one left half done.
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
    """Lets one runner check the others, again and again."""

    def __init__(self, desk: RunnerDesk, seconds: Callable[[], float] | None = None) -> None:
        self._desk = desk
        self._seconds = seconds or desk.engine.time.monotonic
        self._vigil = HeartbeatWatch()
        self._unrecorded: frozenset[str] = frozenset()
        self._turn = desk.engine.time.mutex()

    def suspect(self, runner_ids: frozenset[str]) -> None:
        """Watch runners that have tasks but no record: they get the usual time to show a heartbeat."""
        with self._turn:
            self._unrecorded = runner_ids

    def look(self) -> None:
        """Check all runners once; handle the task of each that is gone, then mark the runner as stopped."""
        with self._turn:  # the runner's own work calls this, too
            self._look()

    def _look(self) -> None:
        desk, timeout_seconds = self._desk, self._desk.pace.timeout_seconds
        # A slow check must not make a runner look silent for longer: seen when it ended, judged by when it began.
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
            except AiflowError as error:  # a problem with one runner's task must not keep us from the others
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
    """End the task of a runner that is gone, deliver it again if allowed, then mark the runner as stopped."""
    for task in _tasks_of(desk, runner):
        _see_to(desk, runner, task)
    desk.runners.put_to_rest(runner)


def end_strays(desk: RunnerDesk) -> frozenset[str]:
    """End tasks that a stopped runner still has: their claim arrived after it had stopped, or was marked as stopped.

    Returns the runners that have a task but no record: records of stopped runners are removed after a while. Reads the
    whole namespace, and the tasks before the records: a runner that has stopped by then no longer writes to its tasks.
    """
    held = [task for page in desk.queue.pages([TaskStatus.RUNNING]) for task in page.tasks]
    records = {each.runner_id: each for each in desk.runners.all()} if held else {}
    for task in held:
        runner = records.get(task.claimed_by or "")
        if runner is not None and runner.is_at_rest:
            _see_to(desk, runner, task)
    return frozenset(name for task in held if (name := task.claimed_by) and name not in records)


def _without_record(desk: RunnerDesk, runner_id: str) -> Runner:
    """Stand in for a runner of which only the name is known."""
    now = desk.engine.time.now()
    return Runner(desk.queue.namespace, runner_id, NOWHERE, now, now)


def _see_to(desk: RunnerDesk, runner: Runner, task: Task) -> None:
    """End the task of a runner that is gone unless it has ended, and deliver it again if that is due."""
    ended = _end(desk, runner, task) if _is_at_work(task, runner) else task
    if ended is not None and ended.successor is not None and desk.queue.get(ended.successor) is None:
        deliver_again(desk, ended, _whereabouts(desk, runner, ended))


def _whereabouts(desk: RunnerDesk, runner: Runner, task: Task) -> Checkout | None:
    """Return where a runner that is gone worked; if its record doesn't say so, here if the work it began is here.

    None means anywhere: then no started work is known.
    """
    if runner.checkout.host:
        return runner.checkout
    request_id = RequestId(task.request_id)
    has_begun = desk.engine.runs.latest([request_id]) or is_known(desk.engine.source, request_id)
    return desk.runner.checkout if has_begun else None


def _tasks_of(desk: RunnerDesk, runner: Runner) -> Iterator[Task]:
    """Yield the task that a runner's record names; if that one has ended, the tasks that the queue says it claimed."""
    named = desk.queue.get(runner.task_id) if runner.task_id else None
    if named is not None:
        yield named
    if named is None or not _is_at_work(named, runner):
        yield from desk.queue.tasks_of(runner.runner_id)


def _is_at_work(task: Task, runner: Runner) -> bool:
    return task.status is TaskStatus.RUNNING and task.claimed_by == runner.runner_id


def _end(desk: RunnerDesk, runner: Runner, task: Task) -> Task | None:
    """End a lost task and record that; if another process changed it meanwhile, return it as it is."""
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
