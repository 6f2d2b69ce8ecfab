"""How a task ends (QUE-4, QUE-6): with its run, with its auto-run, for an error, or because its runner is cut off."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.lifecycle import TaskEvent
from aiflow.domain.queue.delivery import (
    is_cut,
)
from aiflow.domain.queue.task import TaskEnd, end_for, message_of, successor_id
from aiflow.domain.reasons import ExitCode, exit_code
from aiflow.errors import AiflowError, as_problem
from aiflow.messages.details import ENGLISH, as_text
from aiflow.usecases.runs.report import words_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiflow.domain.runs.run import Run
    from aiflow.usecases.runner.heartbeat import TaskHold


def end_for_error(hold: TaskHold, error: Exception, mask: Callable[[str], str]) -> TaskEnd:
    """Say how a task ends that went wrong outside a run; everybody of the namespace reads it, so secrets are masked."""
    known = as_problem(error, error.filename or "") if isinstance(error, OSError) else error
    if not isinstance(known, AiflowError):
        return end_with(hold, "INTERNAL_ERROR", mask(f"{type(error).__name__}: {error}"))
    told = (known.context.get(name) for name in ("detail", "problem", "path"))
    return end_with(hold, known.reason_code, mask(as_text(next((fact for fact in told if fact), ""))))


def end_of_run(hold: TaskHold, run: Run) -> TaskEnd:
    """Return how a task ends with its run; if our own end cut the run off, another delivery continues it."""
    code, summary = (run.error.reason_code, words_of(run.error, ENGLISH)) if run.error else (None, "")
    if code is not None and is_cut(run):
        return end_with(hold, code, summary, run.run_id)
    return end_for(run.outcome, code, summary, run.run_id)


def end_with(hold: TaskHold, reason_code: str, text: str = "", run_id: str | None = None) -> TaskEnd:
    """End a task for a reason that is not its run's; if that is our own end, another task continues its work."""
    cut_off = hold.cut_off
    code = cut_off.value if cut_off is not None else reason_code
    message = message_of(code, text if cut_off is None else "")
    successor = successor_id(hold.task.task_id) if cut_off is not None else None
    event = TaskEvent.CANCELLED if code == "CANCELLED" else TaskEvent.FAILED
    return TaskEnd(event, message, run_id or hold.run_id, successor)


def end_of_auto(hold: TaskHold, reason_code: str | None) -> TaskEnd:
    """Say how a task ends with its auto-run: complete, unless the reason it stopped for is trouble."""
    if hold.cut_off is not None or (reason_code and exit_code(reason_code) is not ExitCode.OK):
        return end_with(hold, reason_code or "")
    return TaskEnd(TaskEvent.COMPLETED)
