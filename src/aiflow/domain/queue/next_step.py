"""What a person does after a task has ended: what the catalogue names, and in which checkout."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.backlog.explanation import stopped_for
from aiflow.domain.lifecycle import TaskStatus
from aiflow.domain.next_action import ActionKind, NextAction
from aiflow.domain.queue.task import TaskAction
from aiflow.domain.reasons import CATALOGUE, way_to_mend
from aiflow.domain.request import RequestStatus

if TYPE_CHECKING:
    from aiflow.domain.queue.task import Checkout, Task
    from aiflow.domain.request import Request
    from aiflow.domain.run_summary import RunSummary

RUN_PREFIX = "RUN-"
# The task could not be carried out, for nothing that lies in its request: the same order may go well.
_AGAIN = frozenset({"CANCELLED", "RUNNER_LOST", "RUNNER_STOPPED", "STORE_UNREACHABLE"})


class WayAfter(NamedTuple):
    """What to do next, and the checkout to do it in; None if that is the one we look from."""

    action: NextAction
    where: Checkout | None = None


def next_step(task: Task, cause: str | None = None, way: str | None = None) -> NextAction | None:
    """Return how to continue after an ended task, from the task itself (and its run, if known).

    None if there is nothing to type: it has not ended, another task continues it, or a person has to fix something.
    """
    if not has_way(task):
        return None
    # The run of another program's task is not one of ours.
    if task.run_id is None or not task.run_id.startswith(RUN_PREFIX):
        is_again = task.action is TaskAction.START and task.reason_code in _AGAIN
        return NextAction(ActionKind.QUEUE_ADD, task.request_id) if is_again else None
    code = "AWAITING_ACCEPTANCE" if task.status is TaskStatus.COMPLETE else task.reason_code
    return way_to_mend(code, task.request_id, cause, way) if code and code in CATALOGUE else None


def next_step_here(task: Task, request: Request, run: RunSummary | None) -> NextAction | None:
    """Return what to do by the request's state now: one that is accepted or at work again needs nothing."""
    if not has_way(task) or request.status in (RequestStatus.DONE, RequestStatus.ARCHIVED):
        return None
    if run is None or request.status is RequestStatus.READY:
        return next_step(task) if task.run_id is None else None
    if run.is_active or task.run_id not in (None, run.run_id):
        return None
    code = stopped_for(request, run)
    return way_to_mend(code, request.id, run.cause, run.way_on) if code else None


def has_way(task: Task) -> bool:
    """Return whether a person may have to do something after a task: it is over, and no other continues it."""
    return task.is_final and task.successor is None and task.action is not TaskAction.AUTO_RUN
