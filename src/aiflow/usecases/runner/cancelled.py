"""A cancelled task's run does not continue, even if no runner was there to stop it (RUN-12, QUE-6, QUE-8).

What every recovery looks at is the mark of `.aiflow/control/` that `aiflow cancel` leaves; this module leaves it for
tasks. Who cancels a task in the checkout of its run leaves it first: a kill before the store has heard of it leaves a
run that stops as cancelled, and its task ends so when it is delivered again. A runner asks the store as
well before it recovers: the cancel may have come from another machine. A run that somebody works on is left to its
owner, who watches the task; otherwise an auto-run would continue with the next request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.lifecycle import TaskStatus
from aiflow.domain.queue.delivery import called_off, is_about, is_cut
from aiflow.domain.queue.task import TaskAction
from aiflow.domain.request import RequestId
from aiflow.usecases.runs.cancel import judge_cut
from aiflow.usecases.runs.locks import reclaim_locks
from aiflow.usecases.runs.recover import find_crashed, mark_crashed

if TYPE_CHECKING:
    from aiflow.domain.queue.task import Checkout, Task
    from aiflow.domain.runs.run import Run
    from aiflow.usecases.engine import Engine
    from aiflow.usecases.runner.desk import RunnerDesk


def mark_interrupted(engine: Engine, task: Task, here: Checkout) -> tuple[Run, ...]:
    """Leave a mark in each interrupted run of this checkout that a task is about, and return those."""
    if task.checkout not in (None, here):
        return ()
    reclaim_locks(engine)
    wanted = _wanted(task)
    found = [find_crashed(engine, request_id) for request_id in (wanted or engine.runs.latest())]
    marked = tuple(run for run in found if run is not None and is_about(task, run, here))
    for run in marked:
        engine.control.ask_cancel(run.run_id)
    return marked


def stop_runs_of(engine: Engine, task: Task, here: Checkout) -> tuple[Run, ...]:
    """Stop the interrupted runs of a cancelled task at once, and return those; what cannot be now has its mark.

    So are runs that a runner had stopped and that the task was to continue.
    """
    stopped = [mark_crashed(engine, RequestId(run.request_id)) for run in mark_interrupted(engine, task, here)]
    stopped += [judge_cut(engine, run, called_off) for run in _cut_runs(engine, task, here)]
    return tuple(run for run in stopped if run is not None)


def _cut_runs(engine: Engine, task: Task, here: Checkout) -> list[Run]:
    latest = engine.runs.latest(_wanted(task)).items()
    loaded = (engine.runs.load(request_id, run.run_id) for request_id, run in latest if run.is_waiting and run.task)
    return [run for run in loaded if run is not None and is_cut(run) and is_about(task, run, here)]


def _wanted(task: Task) -> list[RequestId] | None:
    """Return whose runs a task may be about; None is everybody's."""
    return None if task.action is TaskAction.AUTO_RUN else [RequestId(task.request_id)]


def obeys_cancel(desk: RunnerDesk, request_id: RequestId) -> bool:
    """Stop a request's interrupted run if its task was cancelled anywhere; returns whether it was."""
    engine = desk.engine
    run = find_crashed(engine, request_id)
    if run is None or not (engine.control.is_cancelled(run.run_id) or _is_cancelled(desk, run)):
        return False
    engine.control.ask_cancel(run.run_id)
    mark_crashed(engine, request_id)
    return True


def _is_cancelled(desk: RunnerDesk, run: Run) -> bool:
    """Ask the store whether the task of an interrupted run, or its successor, was cancelled."""
    cancelled = (task for page in desk.queue.pages([TaskStatus.CANCELLED]) for task in page.tasks)
    return any(is_about(task, run, desk.runner.checkout) for task in cancelled)
