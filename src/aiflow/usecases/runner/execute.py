"""Carry a claimed task out (QUE-3 to QUE-5, QUE-11): with the same engine and the same locks as in a terminal.

The request is read again: what may no longer run ends as an error with the reason, and nothing else changes. It was
claimed with the checkout's turn, so no other run is active here (QUE-5); what is in its way anyway, such as an
acceptance of the very request, is waited for without keeping the turn from others (LCK-7).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from aiflow.domain.auto.stopping import StopRequest
from aiflow.domain.queue.delivery import (
    KEEP_CHANGES,
    UPDATE,
    WATCH,
    DeliveryWay,
    goal_of,
    is_cut,
    is_made_by,
    is_set,
    way_of,
)
from aiflow.domain.queue.task import TaskAction, TaskEnd
from aiflow.domain.request import RequestId, RequestStatus
from aiflow.domain.run_summary import TaskRef
from aiflow.errors import ConflictError, NotFoundError
from aiflow.messages.details import as_text
from aiflow.settings.table import STANDS_FOR
from aiflow.usecases.auto.run import auto_run, limits_of
from aiflow.usecases.auto.shift import AutoTerms
from aiflow.usecases.backlog.create import file_prompt
from aiflow.usecases.runner.desk import NewsKind, RunnerNews
from aiflow.usecases.runner.heartbeat import CutOff
from aiflow.usecases.runner.task_end import end_for_error, end_of_auto, end_of_run
from aiflow.usecases.runs.cancel import give_up
from aiflow.usecases.runs.locks import release_turn
from aiflow.usecases.runs.resume import ResumeWish, resume_run
from aiflow.usecases.runs.start import start_run
from aiflow.usecases.runs.turn import Patience, in_turn
from aiflow.usecases.runs.update import update_run

if TYPE_CHECKING:
    from aiflow.domain.queue.task import Task
    from aiflow.domain.runs.run import Run
    from aiflow.usecases.engine import Engine
    from aiflow.usecases.runner.desk import RunnerDesk
    from aiflow.usecases.runner.heartbeat import Heartbeat, TaskHold

# Somebody else is at work in this checkout: that passes.
_HELD_UP = frozenset({"RUN_IN_PROGRESS", "QUEUE_IN_PROGRESS"})


def execute_task(desk: RunnerDesk, heartbeat: Heartbeat, hold: TaskHold) -> TaskEnd:
    """Do what a task says, and say how it ends."""
    work = _auto_run if hold.task.action is TaskAction.AUTO_RUN else _run
    try:
        engine = _as_told(watched(desk.engine, heartbeat, hold.task), hold.task).charged_with(turn=hold.turn)
        return in_turn(engine, lambda begun: work(desk, begun, hold), _patience(desk, heartbeat, hold))
    except Exception as error:  # noqa: BLE001 - every task ends, and the next one may be better
        return end_for_error(hold, error, desk.engine.mask)


def _as_told(engine: Engine, task: Task) -> Engine:
    """Give an engine for which a task's options count as those of a terminal do (RUN-17, RUN-18)."""
    flags = {name: value for option, said in STANDS_FOR.items() if is_set(task, option) for name, value in said.items()}
    return replace(engine, settings=engine.settings.with_flags(flags)) if flags else engine


def watched(engine: Engine, heartbeat: Heartbeat, task: Task) -> Engine:
    """Give an engine that ends its run where the heartbeat says so; run and task name each other."""
    before, is_interrupted = engine.voice.observe, engine.voice.interrupted

    def observe(run: Run) -> None:
        heartbeat.note_run(run)
        before(run)

    def stop_code() -> str:
        return heartbeat.why_end() or "CANCELLED"

    heard = engine.heard_by(observe=observe, interrupted=lambda: heartbeat.why_end() is not None or is_interrupted())
    return heard.charged_with(stop_code=stop_code, task=TaskRef(task.namespace, task.task_id))


def _patience(desk: RunnerDesk, heartbeat: Heartbeat, hold: TaskHold) -> Patience:
    """Wait as a runner does: report the process in the way when it changes, and notice a cancel or a stop."""
    named: list[str] = []

    def tell(error: ConflictError) -> None:
        release_turn(hold.turn)
        holder = as_text(error.context.get("run_id") or error.context.get("detail") or "")
        if named[-1:] != [holder]:
            named.append(holder)
            desk.tell(RunnerNews(NewsKind.HELD_UP, hold.task, error.reason_code, {"holder": holder}))

    return Patience(tell, lambda: heartbeat.why_end() is not None, _HELD_UP)


def _run(desk: RunnerDesk, engine: Engine, hold: TaskHold) -> TaskEnd:
    """Let one run come to its end."""
    task = hold.task
    prompt = desk.patiently(lambda: desk.queue.prompt(task), engine.voice.interrupted)
    request_id = RequestId(task.request_id)
    if task.action is TaskAction.PROMPT:
        request_id = file_prompt(engine, task, prompt)
    run = _latest(engine, request_id, None)
    way = way_of(task, run, engine.limits, is_ready=_is_ready(engine, request_id))
    if run is not None and way is DeliveryWay.OVER:
        return end_of_run(hold, run)
    if run is not None and way is DeliveryWay.GIVE_UP:
        return end_of_run(hold, give_up(engine, run))
    if run is not None and way is DeliveryWay.RESUME:
        return end_of_run(hold, resume_run(engine, run, ResumeWish(is_delivery=True)))
    if way is DeliveryWay.RECOVER or task.action in (TaskAction.START, TaskAction.PROMPT):
        return end_of_run(hold, start_run(engine, request_id))
    return end_of_run(hold, _go_on(engine, task, request_id, prompt))


def _go_on(engine: Engine, task: Task, request_id: RequestId, prompt: str) -> Run:
    """Continue a stopped run as a person asked for it."""
    run = _latest(engine, request_id, task.run_id)
    if run is None:
        raise NotFoundError(reason_code="RUN_NOT_FOUND", request_id=request_id, name=task.run_id or request_id)
    wish = ResumeWish(goal_of(task), prompt or None, keeps_changes=is_set(task, KEEP_CHANGES))
    return (update_run if is_set(task, UPDATE) else resume_run)(engine, run, wish)


def _latest(engine: Engine, request_id: RequestId, run_id: str | None) -> Run | None:
    """Return the run that is named, or the one that speaks for a request."""
    latest = engine.runs.latest([request_id]).get(request_id)
    name = run_id or (latest.run_id if latest else None)
    return engine.runs.load(request_id, name) if name else None


def _is_ready(engine: Engine, request_id: RequestId) -> bool:
    return engine.source.status(request_id) is RequestStatus.READY


def _auto_run(desk: RunnerDesk, engine: Engine, hold: TaskHold) -> TaskEnd:
    """Work through the backlog; first continue what an earlier delivery had to stop."""
    task = hold.task
    terms = AutoTerms(
        desk.auto_records,
        limits_of(engine.settings),
        engine.voice.texts,
        is_watching=is_set(task, WATCH),
        asked=lambda: StopRequest.NOW if engine.voice.interrupted() else desk.asked(),
        observe=desk.tell_auto,
        left=lambda: _left_behind(engine, task),
        care=desk.care,
    )
    code = auto_run(engine, terms).session.reason_code
    if code == "AUTO_STOPPED_BY_PERSON" and desk.asked() is not StopRequest.NONE:
        hold.cut_off = hold.cut_off or CutOff.STOPPED  # the rest of the backlog is for the next runner
    return end_of_auto(hold, code)


def _left_behind(engine: Engine, task: Task) -> list[Run]:
    """Return the runs that an earlier delivery of an auto-run was at when its runner stopped."""
    if task.predecessor is None:
        return []
    latest = engine.runs.latest().items()
    loaded = (engine.runs.load(request_id, run.run_id) for request_id, run in latest if run.is_waiting)
    return [run for run in loaded if run is not None and is_cut(run) and is_made_by(task, run)]
