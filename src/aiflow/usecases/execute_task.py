"""Carry a claimed task out (QUE-3 to QUE-5, QUE-11): with the same engine and the same locks as in a terminal.

The request is read again: what may no longer run ends as an error with the reason, and nothing else changes. Where
another run is active in this checkout, the task waits for its turn (LCK-7).
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from aiflow.domain.auto_run import StopRequest
from aiflow.domain.delivery import KEEP_CHANGES, UPDATE, WATCH, Way, goal_of, is_cut, is_made_by, is_set, way_of
from aiflow.domain.lifecycle import TaskEvent
from aiflow.domain.reasons import ExitCode, exit_code
from aiflow.domain.request import RequestId, RequestStatus
from aiflow.domain.run_summary import TaskRef
from aiflow.domain.task import TaskAction, TaskEnd, end_for, message_of, successor_id
from aiflow.errors import AiflowError, ConflictError, NotFoundError, as_problem
from aiflow.usecases.auto_run import auto_run, limits_of
from aiflow.usecases.auto_shift import Terms
from aiflow.usecases.file_prompt import file_prompt
from aiflow.usecases.heartbeat import CutOff
from aiflow.usecases.judge_cut import give_up
from aiflow.usecases.recover_runs import reclaim_locks
from aiflow.usecases.resume_run import Wish, resume_run
from aiflow.usecases.runner_desk import EAR_SECONDS, News, NewsKind
from aiflow.usecases.start_run import start_run
from aiflow.usecases.update_run import update_run

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiflow.domain.run import Run
    from aiflow.domain.task import Task
    from aiflow.usecases.engine import Engine
    from aiflow.usecases.heartbeat import Heartbeat, Hold
    from aiflow.usecases.runner_desk import Desk

# Somebody else is at work in this checkout: that passes.
_HELD_UP = frozenset({"RUN_IN_PROGRESS", "QUEUE_IN_PROGRESS"})


def execute_task(desk: Desk, heartbeat: Heartbeat, hold: Hold) -> TaskEnd:
    """Do what a task says, and say how it ends."""
    work = _auto_run if hold.task.action is TaskAction.AUTO_RUN else _run
    try:
        return _in_turn(desk, heartbeat, hold, lambda engine: work(desk, engine, hold))
    except Exception as error:  # noqa: BLE001 - every task ends, and the next one may be better
        return end_for_error(hold, error, desk.engine.mask)


def watched(engine: Engine, heartbeat: Heartbeat, task: Task) -> Engine:
    """Give an engine that ends its run where the heartbeat says so; run and task name each other."""
    before, is_interrupted = engine.observe, engine.interrupted

    def observe(run: Run) -> None:
        heartbeat.note_run(run)
        before(run)

    def stop_code() -> str:
        return heartbeat.why_end() or "CANCELLED"

    return replace(
        engine,
        observe=observe,
        interrupted=lambda: heartbeat.why_end() is not None or is_interrupted(),
        stop_code=stop_code,
        task=TaskRef(task.namespace, task.task_id),
    )


def end_for_error(hold: Hold, error: Exception, mask: Callable[[str], str]) -> TaskEnd:
    """Say how a task ends that went wrong outside a run; everybody of the namespace reads it, so secrets are masked."""
    known = as_problem(error, error.filename or "") if isinstance(error, OSError) else error
    if not isinstance(known, AiflowError):
        return end_with(hold, "INTERNAL_ERROR", mask(f"{type(error).__name__}: {error}"))
    told = (known.context.get(name) for name in ("detail", "problem", "path"))
    return end_with(hold, known.reason_code, mask(str(next((fact for fact in told if fact), ""))))


def end_of_run(hold: Hold, run: Run) -> TaskEnd:
    """Say how a task ends with its run; one that our own end cut off goes on in another delivery."""
    code = run.error.reason_code if run.error else None
    if run.error is not None and is_cut(run):
        return end_with(hold, run.error.reason_code, run.error.summary, run.run_id)
    return end_for(run.outcome, code, run.error.summary if run.error else "", run.run_id)


def end_with(hold: Hold, reason_code: str, text: str = "", run_id: str | None = None) -> TaskEnd:
    """End a task for a reason that is not its run's; where that is our own end, its work goes on in another task."""
    cut_off = hold.cut_off
    code = cut_off.value if cut_off is not None else reason_code
    message = message_of(code, text if cut_off is None else "")
    successor = successor_id(hold.task.task_id) if cut_off is not None and not hold.task.is_private else None
    event = TaskEvent.CANCELLED if code == "CANCELLED" else TaskEvent.FAILED
    return TaskEnd(event, message, run_id or hold.run_id, successor)


def _in_turn(desk: Desk, heartbeat: Heartbeat, hold: Hold, work: Callable[[Engine], TaskEnd]) -> TaskEnd:
    """Work as soon as nobody else does in this checkout; whoever cancels or stops us is heard meanwhile (LCK-7)."""
    engine = watched(desk.engine, heartbeat, hold.task)
    told: object = None
    # An auto-run lets whoever waits go first; it is told only until the turn is ours.
    with contextlib.ExitStack() as turn:

        def observe(run: Run) -> None:
            turn.close()
            engine.observe(run)

        begun = replace(engine, observe=observe)
        while True:
            try:
                return work(begun)
            except ConflictError as error:
                if error.reason_code not in _HELD_UP or heartbeat.why_end() is not None:
                    raise
                holder = error
            facts = {"holder": str(holder.context.get("run_id") or holder.context.get("detail") or "")}
            if told is None and holder.reason_code == "RUN_IN_PROGRESS":
                turn.enter_context(engine.control.waiting_for_turn())
            if facts != told:
                desk.tell(News(NewsKind.HELD_UP, hold.task, holder.reason_code, facts))
            told = facts
            time.sleep(EAR_SECONDS)
            reclaim_locks(engine)


def _run(desk: Desk, engine: Engine, hold: Hold) -> TaskEnd:
    """Let one run come to its end."""
    task = hold.task
    prompt = desk.patiently(lambda: desk.queue.prompt(task), engine.interrupted)
    request_id = RequestId(task.request_id)
    if task.action is TaskAction.PROMPT:
        request_id = file_prompt(engine, task, prompt)
    run = _latest(engine, request_id, None)
    way = way_of(task, run, engine.limits, is_ready=_is_ready(engine, request_id))
    if run is not None and way is Way.OVER:
        return end_of_run(hold, run)
    if run is not None and way is Way.GIVE_UP:
        return end_of_run(hold, give_up(engine, run))
    if run is not None and way is Way.RESUME:
        return end_of_run(hold, resume_run(engine, run, Wish(is_delivery=True)))
    if way is Way.RECOVER or task.action in (TaskAction.START, TaskAction.PROMPT):
        return end_of_run(hold, start_run(engine, request_id))
    return end_of_run(hold, _go_on(engine, task, request_id, prompt))


def _go_on(engine: Engine, task: Task, request_id: RequestId, prompt: str) -> Run:
    """Let a stopped run go on as a person asked for it."""
    run = _latest(engine, request_id, task.run_id)
    if run is None:
        raise NotFoundError(reason_code="RUN_NOT_FOUND", request_id=request_id, name=task.run_id or request_id)
    wish = Wish(goal_of(task), prompt or None, keeps_changes=is_set(task, KEEP_CHANGES))
    return (update_run if is_set(task, UPDATE) else resume_run)(engine, run, wish)


def _latest(engine: Engine, request_id: RequestId, run_id: str | None) -> Run | None:
    """Return the run that is named, or the one that speaks for a request."""
    latest = engine.runs.latest([request_id]).get(request_id)
    name = run_id or (latest.run_id if latest else None)
    return engine.runs.load(request_id, name) if name else None


def _is_ready(engine: Engine, request_id: RequestId) -> bool:
    try:
        return engine.source.load(request_id).status is RequestStatus.READY
    except AiflowError:
        return False


def _auto_run(desk: Desk, engine: Engine, hold: Hold) -> TaskEnd:
    """Work through the backlog; what an earlier delivery had to leave goes on first."""
    task = hold.task
    terms = Terms(
        desk.auto_records,
        limits_of(engine.settings),
        engine.texts,
        is_watching=is_set(task, WATCH),
        asked=lambda: StopRequest.NOW if engine.interrupted() else desk.asked(),
        observe=desk.tell_auto,
        left=lambda: _left_behind(engine, task),
    )
    code = auto_run(engine, terms).session.reason_code
    if code == "AUTO_STOPPED_BY_PERSON" and desk.asked() is not StopRequest.NONE:
        hold.cut_off = hold.cut_off or CutOff.STOPPED  # the rest of the backlog is for whoever comes next
    return end_of_auto(hold, code)


def end_of_auto(hold: Hold, reason_code: str | None) -> TaskEnd:
    """Say how a task ends with its auto-run: complete, unless the reason it stopped for is trouble."""
    if hold.cut_off is not None or (reason_code and exit_code(reason_code) is not ExitCode.OK):
        return end_with(hold, reason_code or "")
    return TaskEnd(TaskEvent.COMPLETED)


def _left_behind(engine: Engine, task: Task) -> list[Run]:
    """Return the runs that an earlier delivery of an auto-run was at when its runner stopped."""
    if task.predecessor is None:
        return []
    latest = engine.runs.latest().items()
    loaded = (engine.runs.load(request_id, run.run_id) for request_id, run in latest if run.is_waiting)
    return [run for run in loaded if run is not None and is_cut(run) and is_made_by(task, run)]
