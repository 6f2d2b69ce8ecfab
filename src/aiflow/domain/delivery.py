"""How a task is carried out (QUE-7, QUE-11): what its options say, and where another delivery of its work goes on."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from aiflow.domain.resume import Goal, ResumeMode
from aiflow.domain.retry import RUNNER_STOPS
from aiflow.domain.task import TaskAction, first_delivery

if TYPE_CHECKING:
    from aiflow.domain.run import Run
    from aiflow.domain.task import Task

# The names of a task's options; a flag is there with this value, or not at all.
STEP_ID = "step_id"
FORCE = "force"
KEEP_CHANGES = "keep_changes"
UPDATE = "update"
WATCH = "watch"
SET = "1"

MODES = {
    TaskAction.RESUME: ResumeMode.RESUME,
    TaskAction.RETRY_STEP: ResumeMode.RETRY_STEP,
    TaskAction.REPLAN: ResumeMode.REPLAN,
}


class Way(StrEnum):
    """What a runner does about a task it has claimed."""

    BEGIN = "begin"
    RECOVER = "recover"
    RESUME = "resume"
    OVER = "over"


def goal_of(task: Task) -> Goal:
    """Return how a task wants a stopped run to go on."""
    return Goal(MODES[task.action], task.options.get(STEP_ID), is_forced=is_set(task, FORCE))


def is_set(task: Task, option: str) -> bool:
    """Tell whether a flag of a task's options is set."""
    return task.options.get(option) == SET


def way_of(task: Task, run: Run | None, *, is_ready: bool) -> Way:
    """Decide where a delivery begins, from the run that speaks for its request and whether that could start now.

    The first delivery does what the task says. A later one goes on with what an earlier one left: a run that was
    interrupted, or that its runner stopped; a run that came to its end is the end of the task as well.
    """
    if task.predecessor is None or run is None or not is_made_by(task, run):
        return Way.BEGIN
    if run.is_active:
        return Way.RECOVER
    if is_cut(run):
        return Way.RESUME
    return Way.BEGIN if is_ready else Way.OVER


def is_cut(run: Run) -> bool:
    """Tell whether a run stopped because its runner did."""
    return run.error is not None and run.error.reason_code in RUNNER_STOPS


def is_made_by(task: Task, run: Run) -> bool:
    """Tell whether a delivery of this work had its hands on a run: nobody else may have, while a task is live.

    The run says whose it was. One that does not is told by the time, which clocks that disagree may get wrong.
    """
    is_named = task.action is TaskAction.START and run.run_id == task.run_id
    if task.action is TaskAction.PROMPT or is_named:
        return True
    return _is_same_work(task.task_id, run.task_id) if run.task_id else run.changed_at >= task.place_at


def is_called_off(run: Run, cancelled: Task, own: Task | None) -> bool:
    """Tell whether an interrupted run is not to go on: the task in whose hands it was, or one that came for it since,
    was cancelled. `own` is that task, as far as the queue still has it.
    """
    if run.task_id and _is_same_work(cancelled.task_id, run.task_id):
        return True
    # One whose runner died at once has not named its run yet.
    is_named = cancelled.run_id == run.run_id or (cancelled.run_id is None and cancelled.request_id == run.request_id)
    had_it = cancelled.claimed_by or cancelled.predecessor or cancelled.action is TaskAction.START
    if not is_named or not had_it:
        return False
    if own is not None and own.request_id == cancelled.request_id:
        return cancelled.fence > own.fence  # in the order of their request's guard, whatever the clocks said
    return cancelled.updated_at >= run.changed_at


def _is_same_work(task_id: str, other_id: str) -> bool:
    return first_delivery(task_id) == first_delivery(other_id)
