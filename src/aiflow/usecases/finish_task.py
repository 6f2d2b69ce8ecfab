"""End a claimed task (QUE-4, QUE-6, QUE-7): its status first, then the task that goes on with its work, if one has to.

A task that is no longer ours is left as it is: what we would have written is dropped and recorded.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from aiflow.domain.activity import Activity, ActivityKind, Actor
from aiflow.domain.auto_run import StopRequest
from aiflow.domain.lifecycle import TaskEvent
from aiflow.domain.task import successor_of
from aiflow.errors import ConflictError
from aiflow.usecases.heartbeat import CutOff
from aiflow.usecases.runner_desk import News, NewsKind

if TYPE_CHECKING:
    from aiflow.domain.runner import Runner
    from aiflow.domain.task import Task, TaskEnd
    from aiflow.usecases.heartbeat import Heartbeat, Hold
    from aiflow.usecases.runner_desk import Desk


def finish_task(desk: Desk, heartbeat: Heartbeat, hold: Hold, end: TaskEnd) -> Task | None:
    """Write a task's end, as patiently as it takes; None if it was no longer ours to end."""
    hold.is_over = True
    if hold.cut_off is CutOff.CANCELLED and end.event is TaskEvent.CANCELLED:
        desk.tell(News(NewsKind.ENDED, hold.found, "CANCELLED"))
        return hold.found
    if hold.cut_off in (CutOff.CANCELLED, CutOff.LOST):
        _drop(desk, hold, end, hold.found)
        return None

    began = time.monotonic()

    def is_enough() -> bool:
        asked = desk.asked()
        is_late = asked is StopRequest.NOW and time.monotonic() - began >= desk.pace.leave_seconds
        is_leaving = hold.task.is_private or asked is not StopRequest.NONE
        return is_late or (is_leaving and heartbeat.is_cut_off)

    try:
        ended = desk.patiently(lambda: desk.queue.finish(hold.task, end, desk.engine.clock()), is_enough)
    except ConflictError as error:
        if error.reason_code != "LOCK_MISMATCH":
            raise
        _drop(desk, hold, end, desk.patiently(lambda: desk.queue.get(hold.task.task_id), is_enough))
        return None
    if ended.successor is not None:
        desk.patiently(lambda: deliver_again(desk, ended, desk.runner), is_enough)
    desk.tell(News(NewsKind.ENDED, ended, ended.reason_code))
    return ended


def deliver_again(desk: Desk, ended: Task, runner: Runner) -> None:
    """Enqueue the task that goes on with an ended one, unless somebody did; it keeps its place in the queue."""
    following = successor_of(ended, desk.engine.clock(), runner.checkout)
    try:
        desk.queue.enqueue(following, desk.queue.prompt(ended))
    except ConflictError as error:  # the request has a live task: what was to be done is done by that one
        if error.reason_code not in ("REQUEST_QUEUED", "TASK_EXISTS"):
            raise
        return
    desk.wake.poke(desk.queue.namespace, following.task_id)


def _drop(desk: Desk, hold: Hold, end: TaskEnd, found: Task | None) -> None:
    """Record what was not written, and who has the task now."""
    task = hold.task
    data = {
        "task_id": task.task_id,
        "runner_id": desk.runner.runner_id,
        "fence": task.fence,
        "dropped": end.event.value,
        "status": found.status.value if found else None,
        "claimed_by": found.claimed_by if found else None,
    }
    run_id = end.run_id or hold.run_id
    journal, now = desk.engine.journal, desk.engine.clock()
    kind, who = ActivityKind.REFUSAL, Actor.RUNNER
    journal.append(Activity(now, kind, who, task.request_id, run_id, "LOCK_MISMATCH", data))
    desk.tell(News(NewsKind.LOST, replace(task, run_id=run_id), "LOCK_MISMATCH"))
