"""Ending tasks (QUE-3, QUE-6, QUE-8): each transition is one write under the condition of the state it leaves.

Then the request's guard is freed. A crash between the two leaves a guard that names a final task: the next enqueue
takes it over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aiflow.adapters.dynamo.client import ConditionFailedError
from aiflow.adapters.dynamo.queue.calls import ItemChange
from aiflow.adapters.dynamo.queue.items import is_readable, task_of
from aiflow.domain.lifecycle import TASK_TRANSITIONS, TaskEvent, TaskStatus
from aiflow.domain.queue.task import lock_mismatch, message_of, stamp
from aiflow.errors import ConflictError, NotFoundError

if TYPE_CHECKING:
    from datetime import datetime

    from aiflow.adapters.dynamo.queue.calls import ItemTable
    from aiflow.adapters.dynamo.queue.guards import Guards
    from aiflow.domain.queue.task import Task, TaskEnd

_READY = ("ready_pk", "ready_sk")
_CANCELLABLE = {f"from_{state.lower()}": state for state, event in TASK_TRANSITIONS if event is TaskEvent.CANCELLED}
_RUNNING = TaskStatus.RUNNING


@dataclass(frozen=True, slots=True)
class Finishing:
    """Writes what becomes of claimed tasks."""

    tasks: ItemTable
    guards: Guards

    def note_run(self, task: Task, run_id: str, now: datetime) -> None:
        """Name the run that works on a claimed task."""
        try:
            self._write_claimed(task, {"session_id": run_id, "updated_at": stamp(now)})
        except ConditionFailedError:
            raise lock_mismatch(task, self._read(task.task_id)) from None

    def finish(self, task: Task, end: TaskEnd, now: datetime) -> Task:
        """End a claimed task."""
        ended = self.end(task, end, now)
        if ended is None:
            raise lock_mismatch(task, self._read(task.task_id))
        return ended

    def end(self, task: Task, end: TaskEnd, now: datetime) -> Task | None:
        """End a running task by the very claim that was seen; None if that claim has it no longer."""
        status = TASK_TRANSITIONS[_RUNNING, end.event]
        wanted = {"error_message": end.error_message, "session_id": end.run_id, "successor": end.successor}
        sets = {name: value for name, value in wanted.items() if value is not None}
        try:
            ended = self._write_claimed(task, {"status": status, "updated_at": stamp(now), **sets})
        except ConditionFailedError:
            there = self._read(task.task_id)
            if there is None or not _is_so(there, task, end, status):
                return None
            ended = there
        self.guards.free(task.request_id, task.task_id)
        return ended

    def cancel(self, task_id: str, why: str, now: datetime) -> Task:
        """Cancel a task that is queued or running."""
        sets = {
            "status": TaskStatus.CANCELLED,
            "error_message": message_of("CANCELLED", why),
            "updated_at": stamp(now),
        }
        condition = " OR ".join(f"#status = :{name}" for name in _CANCELLABLE)
        try:
            change = ItemChange(condition, _CANCELLABLE, sets, _READY)
            task = task_of(self.tasks.change(self.guards.namespace, task_id, change))
        except ConditionFailedError:
            there = self._read(task_id)
            if there is None:
                raise NotFoundError(
                    reason_code="TASK_NOT_FOUND", task_id=task_id, namespace=self.guards.namespace
                ) from None
            if there.status is not TaskStatus.CANCELLED:
                raise ConflictError(
                    reason_code="TASK_NOT_ACTIVE", task_id=task_id, status=there.status, namespace=there.namespace
                ) from None
            task = there
        self.guards.free(task.request_id, task_id)
        return task

    def _write_claimed(self, task: Task, sets: dict[str, Any]) -> Task:
        """Write to a task under the condition that this very claim still has it."""
        values: dict[str, Any] = {"from": _RUNNING, "owner": task.claimed_by or ""}
        condition = "#status = :from AND #claimed_by = :owner"
        if task.claim_token is None:  # claimed by another program
            condition += " AND attribute_not_exists(#claim_token)"
        else:
            condition += " AND #claim_token = :token AND #fence = :fence"
            values |= {"token": task.claim_token, "fence": task.fence}
        return task_of(self.tasks.change(task.namespace, task.task_id, ItemChange(condition, values, sets)))

    def _read(self, task_id: str) -> Task | None:
        item = self.tasks.get(self.guards.namespace, task_id) or {}
        return task_of(item) if is_readable(item) else None


def _is_so(there: Task, task: Task, end: TaskEnd, status: TaskStatus) -> bool:
    """Return whether a task is already as this claim wants it: an answer was lost, or another reaper was quicker."""
    is_same_claim = (there.claimed_by, there.claim_token) == (task.claimed_by, task.claim_token)
    is_same_end = (there.status, there.error_message, there.successor) == (status, end.error_message, end.successor)
    return is_same_claim and is_same_end
