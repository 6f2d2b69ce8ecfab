"""Cancel a task (QUE-8): a queued one at once; a running one is taken from its runner, which ends the agent."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from aiflow.domain.lifecycle import TaskStatus
from aiflow.domain.queue.runner import is_fresh
from aiflow.errors import AiflowError, ConflictError, NotFoundError
from aiflow.usecases.queue.enqueue import asked_for
from aiflow.usecases.queue.look import find_place, find_task, not_found
from aiflow.usecases.runner.cancelled import mark_interrupted, stop_runs_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiflow.domain.queue.runner import Runner
    from aiflow.domain.queue.task import Task
    from aiflow.domain.runs.run import Run
    from aiflow.usecases.engine import Engine
    from aiflow.usecases.queue.desk import Desk

REASON = "CANCELLED"


def cancel_task(desk: Desk, engine: Engine, task_id: str, who: str) -> Task:
    """Cancel a task or its successor, and notify the runners of this machine; its interrupted runs are marked.

    Cancelled already is fine, TASK_NOT_ACTIVE if it ended otherwise and its work is not in the queue any more.
    """
    task = _cancel(desk, engine, find_task(desk.queue, task_id), who)
    desk.journal.append(asked_for(task, desk.time.now(), "cancel", REASON))
    desk.wake.poke(task.namespace, task.task_id)
    return task


def cancel_at_once(
    desk: Desk, task_id: str, who: str, here: Callable[[], Engine], engine_at: Callable[[str], Engine]
) -> tuple[Task, bool]:
    """Cancel a task without waiting for its runner; returns whether the runner has released it already."""
    before = live_delivery(desk, find_task(desk.queue, task_id))
    desk, engine = at_the_runs(desk, before, here, engine_at)
    task = cancel_task(desk, engine, task_id, who)
    is_released = before.status is not TaskStatus.RUNNING or holder_of(desk, task) is None
    if is_released:
        stop_runs(desk, engine, task)
    return task, is_released


def at_the_runs(
    desk: Desk, task: Task, here: Callable[[], Engine], engine_at: Callable[[str], Engine]
) -> tuple[Desk, Engine]:
    """Stand in the checkout that has a task's runs, if that is another one of this machine and can be worked in."""
    place = find_place(desk, task)
    if place is None or place == desk.checkout or place.host != desk.checkout.host:
        return desk, here()
    try:
        return replace(desk, checkout=place), engine_at(place.root)
    except AiflowError:  # it is gone, or somebody else's
        return desk, here()


def stop_runs(desk: Desk, engine: Engine, task: Task) -> tuple[Run, ...]:
    """Stop runs without a process; a failure of this is reported, and does not undo the cancel."""
    try:
        return stop_runs_of(engine, task, desk.checkout)
    except AiflowError as error:
        message = engine.voice.texts.message(error.reason_code, dict(error.context))
        engine.voice.warn(f"{error.reason_code}: {message.title}")
        return ()


def live_delivery(desk: Desk, task: Task) -> Task:
    """Return the last successor of a task that is in the queue; the task itself if it has none."""
    seen = {task.task_id}
    while task.successor is not None and task.successor not in seen:
        following = desk.queue.get(task.successor)
        if following is None:  # its runner crashed before queuing it: the next one delivers it
            break
        seen.add(following.task_id)
        task = following
    return task


def _cancel(desk: Desk, engine: Engine, named: Task, who: str) -> Task:
    """Cancel the delivery that is at work or queued; if it gets a successor at this moment, cancel that."""
    while True:
        task = live_delivery(desk, named)
        is_over = task.is_final and task.status is not TaskStatus.CANCELLED
        marked = () if is_over else _mark(desk, engine, task)
        try:
            return desk.queue.cancel(task.task_id, who, desk.time.now())
        except NotFoundError as error:
            raise not_found(desk.queue, task.task_id) from error
        except ConflictError:
            for run in marked:
                engine.control.clear(run.run_id)
            named = find_task(desk.queue, task.task_id)
            if live_delivery(desk, named).task_id == task.task_id:
                raise


def _mark(desk: Desk, engine: Engine, task: Task) -> tuple[Run, ...]:
    """Mark the interrupted runs of a task; that this cannot be done must not keep the task from being cancelled."""
    try:
        return mark_interrupted(engine, task, desk.checkout)
    except AiflowError:  # a full disk, or somebody else's checkout
        return ()


def holder_of(desk: Desk, task: Task) -> Runner | None:
    """Return the runner that still works on a cancelled task and whose heartbeat shows that it is running."""
    for runner in desk.runners.all():
        if runner.runner_id == task.claimed_by and runner.task_id == task.task_id:
            lives = is_fresh(runner, desk.time.now(), desk.timeout_seconds) and not desk.is_gone(runner)
            return runner if lives else None
    return None
