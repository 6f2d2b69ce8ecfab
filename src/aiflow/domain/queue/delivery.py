"""How a task is carried out (QUE-7, QUE-11): what its options say, and where another delivery of its work continues."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING

from aiflow.domain.lifecycle import RunEvent
from aiflow.domain.queue.task import TaskAction, first_delivery
from aiflow.domain.runs.events import noted
from aiflow.domain.runs.resume import Goal, ResumeMode
from aiflow.domain.runs.retry import CUT_OFF

if TYPE_CHECKING:
    from datetime import datetime

    from aiflow.domain.queue.task import Checkout, Task
    from aiflow.domain.run_summary import TaskRef
    from aiflow.domain.runs.run import Run
    from aiflow.domain.runs.run_limits import RunLimits

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


class DeliveryWay(StrEnum):
    """What a runner does about a task it has claimed."""

    BEGIN = "begin"
    RECOVER = "recover"
    RESUME = "resume"
    GIVE_UP = "give_up"
    OVER = "over"


def goal_of(task: Task) -> Goal:
    """Return how a task wants a stopped run to continue."""
    return Goal(MODES[task.action], task.options.get(STEP_ID), is_forced=is_set(task, FORCE))


def is_set(task: Task, option: str) -> bool:
    """Return whether a flag of a task's options is set."""
    return task.options.get(option) == SET


def way_of(task: Task, run: Run | None, limits: RunLimits, *, is_ready: bool) -> DeliveryWay:
    """Decide where a delivery begins, from the run that speaks for its request and whether that could start now.

    The first delivery does what the task says. A later one continues what an earlier one left: a run that was
    interrupted, or that its runner stopped as long as it has attempts left (RUN-14); a run that came to its end is the
    end of the task as well.
    """
    if task.predecessor is None or run is None or not is_made_by(task, run):
        return DeliveryWay.BEGIN
    if run.is_active:
        return DeliveryWay.RECOVER
    if is_cut(run):
        return DeliveryWay.RESUME if run.may_call_again(limits) else DeliveryWay.GIVE_UP
    return DeliveryWay.BEGIN if is_ready else DeliveryWay.OVER


def is_cut(run: Run) -> bool:
    """Return whether a run stopped because its runner or its auto-run did, and is continued without a person."""
    return run.error is not None and run.error.reason_code in CUT_OFF


def is_made_by(task: Task, run: Run) -> bool:
    """Return whether a delivery of this work has worked on a run.

    The run names its task. For a run that does not, the time decides, which may be wrong if clocks disagree.
    """
    is_named = task.action is TaskAction.START and run.run_id == task.run_id
    if task.action is TaskAction.PROMPT or is_named:
        return True
    return run.changed_at >= task.place_at if run.task is None else _is_same_work(task, run.task)


def is_about(task: Task, run: Run, here: Checkout) -> bool:
    """Return whether a task had an interrupted run of this checkout in its hands, or was queued to continue it.

    A run names the task it was last worked on for; a delivery that continues it writes its own. Besides, a start
    of its request continues it; one that was over before the run was at work has nothing to do with it.
    """
    if task.checkout not in (None, here):
        return False
    if run.task is not None and _is_same_work(task, run.task):
        return True
    is_past = task.is_final and task.updated_at < run.changed_at
    is_start = task.action is TaskAction.START and task.request_id == run.request_id
    return is_start and task.run_id in (None, run.run_id) and not is_past


def called_off(run: Run, now: datetime) -> Run:
    """A run that its runner stopped no longer continues automatically: its successor task was cancelled."""
    return _judged(run, "CANCELLED", None, now)


def given_up(run: Run, now: datetime) -> Run:
    """A run that its runner stopped no longer continues automatically: every attempt of its role was cut off."""
    return _judged(run, "RETRY_LIMIT_EXCEEDED", run.error.reason_code if run.error else None, now)


def _judged(run: Run, reason_code: str, cause: str | None, now: datetime) -> Run:
    assert run.error is not None, run.run_id
    # What the stop was about is not what the verdict is about.
    facts = tuple((name, fact) for name, fact in run.error.facts if name != "told" and not name.startswith("told."))
    why = replace(run.error, reason_code=reason_code, cause=cause, summary="", facts=facts)
    return replace(noted(run, RunEvent.NEEDS_INPUT, now, reason_code, cause), error=why)


def _is_same_work(task: Task, named: TaskRef) -> bool:
    """Return whether a task is a delivery of the work that a run names."""
    return (task.namespace, first_delivery(task.task_id)) == (named.namespace, first_delivery(named.task_id))
