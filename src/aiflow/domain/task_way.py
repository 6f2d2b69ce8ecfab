"""What a person does behind an ended task: the command that the catalogue names, and where it is to be typed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.explanation import stopped_for
from aiflow.domain.lifecycle import TaskStatus
from aiflow.domain.reasons import CATALOGUE, mending_command
from aiflow.domain.request import RequestStatus
from aiflow.domain.task import TaskAction

if TYPE_CHECKING:
    from aiflow.domain.request import Request
    from aiflow.domain.run_summary import RunSummary
    from aiflow.domain.task import Checkout, Task

RUN_PREFIX = "RUN-"
# The task could not be carried out, for nothing that lies in its request: the same order may go well.
_AGAIN = frozenset({"CANCELLED", "RUNNER_LOST", "RUNNER_STOPPED", "STORE_UNREACHABLE"})


class WayAfter(NamedTuple):
    """The next command, and the checkout to type it in; None if that is the one we look from."""

    command: str
    where: Checkout | None = None


def next_command(task: Task, cause: str | None = None, way: str | None = None) -> str | None:
    """Return the command that goes on from an ended task, by what the task itself tells (and its run, where known).

    None where nothing is to be typed: it lives, another task goes on with it, or a person has to mend something.
    """
    if not has_way(task):
        return None
    # A run of another program's task is none of ours.
    if task.run_id is None or not task.run_id.startswith(RUN_PREFIX):
        is_again = task.action is TaskAction.START and task.reason_code in _AGAIN
        return f"aiflow queue add {task.request_id}" if is_again else None
    code = "AWAITING_ACCEPTANCE" if task.status is TaskStatus.COMPLETE else task.reason_code
    return mending_command(code, task.request_id, cause, way) if code and code in CATALOGUE else None


def next_command_here(task: Task, request: Request, run: RunSummary | None) -> str | None:
    """Return the command by how it stands with the request now: what is accepted or at work again needs none."""
    if not has_way(task) or request.status in (RequestStatus.DONE, RequestStatus.ARCHIVED):
        return None
    if run is None or request.status is RequestStatus.READY:
        return next_command(task) if task.run_id is None else None
    if run.is_active or task.run_id not in (None, run.run_id):
        return None
    code = stopped_for(request, run)
    return mending_command(code, request.id, run.cause, run.way_on) if code else None


def has_way(task: Task) -> bool:
    """Tell whether somebody may have to do something behind a task: it is over, and no other goes on with it."""
    return task.is_final and task.successor is None and task.action is not TaskAction.AUTO_RUN
