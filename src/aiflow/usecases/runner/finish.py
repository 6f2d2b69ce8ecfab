"""End a claimed task (QUE-4, QUE-6, QUE-7): its status first, then the task that continues its work, if needed.

A task that is no longer ours is left as it is: what we would have written is dropped and recorded.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from aiflow.domain.activity import Actor, refused
from aiflow.domain.auto.stopping import StopRequest
from aiflow.domain.lifecycle import TaskEvent
from aiflow.domain.queue.task import successor_of
from aiflow.errors import ConflictError
from aiflow.usecases.runner.desk import NewsKind, RunnerNews
from aiflow.usecases.runner.heartbeat import CutOff

if TYPE_CHECKING:
    from aiflow.domain.queue.task import Checkout, Task, TaskEnd
    from aiflow.usecases.runner.desk import RunnerDesk
    from aiflow.usecases.runner.heartbeat import Heartbeat, TaskHold


def finish_task(desk: RunnerDesk, heartbeat: Heartbeat, hold: TaskHold, end: TaskEnd) -> Task | None:
    """Write a task's end, as patiently as it takes; None if it was no longer ours to end."""
    hold.is_over = True
    if hold.cut_off is CutOff.CANCELLED and end.event is TaskEvent.CANCELLED:
        desk.tell(RunnerNews(NewsKind.ENDED, hold.found, "CANCELLED"))
        return hold.found
    if hold.cut_off in (CutOff.CANCELLED, CutOff.LOST):
        _drop(desk, hold, end, hold.found)
        return None

    began = desk.engine.time.monotonic()

    def is_enough() -> bool:
        asked = desk.asked()
        is_late = asked is StopRequest.NOW and desk.engine.time.monotonic() - began >= desk.pace.leave_seconds
        return is_late or (asked is not StopRequest.NONE and heartbeat.is_cut_off)

    try:
        ended = desk.patiently(lambda: desk.queue.finish(hold.task, end, desk.engine.time.now()), is_enough)
    except ConflictError as error:
        if error.reason_code != "LOCK_MISMATCH":
            raise
        _drop(desk, hold, end, desk.patiently(lambda: desk.queue.get(hold.task.task_id), is_enough))
        return None
    if ended.successor is not None:
        desk.patiently(lambda: deliver_again(desk, ended, desk.runner.checkout), is_enough)
    desk.tell(RunnerNews(NewsKind.ENDED, ended, ended.reason_code))
    return ended


def deliver_again(desk: RunnerDesk, ended: Task, checkout: Checkout | None) -> None:
    """Queue the task that continues an ended one, unless that was done; it keeps its place in the queue.

    `checkout` is where a bare prompt was begun.
    """
    following = successor_of(ended, desk.engine.time.now(), checkout)
    try:
        desk.queue.enqueue(following, desk.queue.prompt(ended))
    except ConflictError as error:  # the request has another unfinished task, which does the work
        if error.reason_code not in ("REQUEST_QUEUED", "TASK_EXISTS"):
            raise
        return
    desk.wake.poke(desk.queue.namespace, following.task_id)


def _drop(desk: RunnerDesk, hold: TaskHold, end: TaskEnd, found: Task | None) -> None:
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
    lost = replace(task, run_id=end.run_id or hold.run_id)
    desk.engine.journal.append(refused(desk.engine.time.now(), Actor.RUNNER, lost, "LOCK_MISMATCH", **data))
    desk.tell(RunnerNews(NewsKind.LOST, lost, "LOCK_MISMATCH"))
