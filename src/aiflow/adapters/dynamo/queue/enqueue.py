"""Enqueueing (QUE-5, QUE-9): the prompt apart if it is large, then the request's guard, then the task itself.

Each is one conditional write, and a crash between them leaves something that the next enqueue repairs: a guard whose
task never came is taken over only after a tombstone is stored under that task's id, so that it cannot come later.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from aiflow.adapters.dynamo.client import ConditionFailedError
from aiflow.adapters.dynamo.queue.calls import ItemChange
from aiflow.adapters.dynamo.queue.items import LONG_AGO, is_readable, item_of, ready_keys, task_of
from aiflow.adapters.dynamo.queue.left_by_terminals import end_left_by_terminal, is_left_by_terminal
from aiflow.domain.lifecycle import TaskStatus
from aiflow.domain.queue.task import (
    INLINE_PROMPT_BYTES,
    PROMPT_BYTES,
    Task,
    check_prompt,
    check_task_id,
    excerpt,
    message_of,
    stamp,
)
from aiflow.errors import BadInputError, ConflictError, EnvironmentProblemError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from aiflow.adapters.dynamo.queue.calls import Item, ItemTable
    from aiflow.adapters.dynamo.queue.guards import Guards, RequestGuard
    from aiflow.adapters.dynamo.queue.prompts import Prompts

_ABSENT = "attribute_not_exists(#task_id)"


class WantedTask(NamedTuple):
    """A task to enqueue, as its item will be but for the fence."""

    task: Task
    digest: str | None


@dataclass(frozen=True, slots=True)
class Enqueueing:
    """Puts tasks into one namespace's queue."""

    tasks: ItemTable
    guards: Guards
    prompts: Prompts

    def enqueue(self, task: Task, prompt: str) -> Task:
        """Put a task into the queue, or find that it is there already."""
        whole = prompt or self._inherited(task)
        if whole:
            check_prompt(whole)
        size = len(whole.encode())
        task = replace(task, prompt=excerpt(whole), prompt_bytes=size, status=TaskStatus.QUEUED)
        digest = self.prompts.put(task.task_id, whole) if size > INLINE_PROMPT_BYTES else None
        wanted = WantedTask(task, digest)
        try:
            fence = self._take_guard(task)
        except ConflictError:
            # Another task is live: ours may have been before it, and the same task again is the same task.
            if (there := self._same(wanted)) is not None:
                return there
            raise
        return self._put(wanted, fence)

    def adopt(self, now: datetime) -> int:
        """Make queued tasks findable that are not; a name that could not be a request's is left alone."""
        return sum(self._finish_for(item, now) for item in self._unfindable())

    def _inherited(self, task: Task) -> str:
        """Return the prompt of a successor that was made from a task with a large one."""
        if task.is_prompt_whole or task.predecessor is None:
            return task.prompt
        return self.prompts.get(self.tasks.get(task.namespace, task.predecessor) or {})

    def _take_guard(self, task: Task) -> int:
        """Take the request's guard and return its fence; REQUEST_QUEUED if it has another live task."""
        while True:
            fence = self.guards.take(task.request_id, task.task_id)
            if fence is None:
                seen = self.guards.read(task.request_id)
                if seen.task_id in (None, task.task_id) or not self._is_vacant(task, seen):
                    continue
                fence = self.guards.take_over(task.request_id, task.task_id, seen)
            if fence is not None:
                return fence

    def _is_vacant(self, task: Task, seen: RequestGuard) -> bool:
        """Return whether a guard may be taken over; False means look again, a live task raises REQUEST_QUEUED."""
        item = self.tasks.get(task.namespace, seen.task_id or "")
        if item is None:
            return self._bury(task, seen.task_id or "")
        if is_left_by_terminal(item):
            end_left_by_terminal(self.tasks, self.guards, item, task.created_at)
            return False
        self._refuse_second(task, item)
        return True

    def _refuse_second(self, task: Task, item: Item) -> None:
        """Raise REQUEST_QUEUED if the task that a guard names is live, or nothing that we understand."""
        holder = task_of(item) if is_readable(item) else None
        # A task of another request under that id: the one that this guard meant can never come.
        if holder is not None and (holder.is_final or holder.request_id != task.request_id):
            return
        if holder is not None and holder.status is TaskStatus.QUEUED and "ready_pk" not in item:
            self._finish_for(item, task.created_at)
        raise ConflictError(
            reason_code="REQUEST_QUEUED",
            task_id=item["task_id"],
            status=item.get("status"),
            request_id=task.request_id,
            namespace=task.namespace,
        )

    def _bury(self, task: Task, missing_id: str) -> bool:
        """Put a tombstone where a half-enqueued task would come to be; False if it has come after all."""
        tombstone = replace(
            task,
            task_id=missing_id,
            status=TaskStatus.CANCELLED,
            prompt="",
            prompt_bytes=0,
            options={},
            run_id=None,
            claimed_by=None,
            fence=0,
            error_message=message_of("CANCELLED", f"never came into the queue; {task.task_id} took its place"),
            predecessor=None,
            successor=None,
        )
        try:
            self.tasks.put({**item_of(tombstone), "is_tombstone": True, "buried_by": task.task_id}, _ABSENT)
        except ConditionFailedError:
            return False
        return True

    def _put(self, wanted: WantedTask, fence: int) -> Task:
        task = replace(wanted.task, fence=fence)
        digest = {"prompt_digest": wanted.digest} if wanted.digest else {}
        try:
            self.tasks.put({**item_of(task), **digest, **ready_keys(task)}, _ABSENT)
        except ConditionFailedError:
            return self._found(wanted)
        return task

    def _found(self, wanted: WantedTask) -> Task:
        """Answer for a task id that is there already."""
        mine = wanted.task
        item = self.tasks.get(mine.namespace, mine.task_id) or {}
        there = task_of(item) if is_readable(item) else None
        # Never while it is this request's live task, whatever else it is: that one's guard must stay.
        if there is None or there.is_final or there.request_id != mine.request_id:
            self.guards.free(mine.request_id, mine.task_id)
        if there is not None and _is_same(item, wanted):
            return there
        if there is not None and there.request_id == mine.request_id and (other_id := item.get("buried_by")):
            self._refuse_buried(mine, str(other_id))
        seen = self.guards.read(mine.request_id)
        if seen.task_id not in (None, mine.task_id):
            other = self.tasks.get(mine.namespace, seen.task_id or "")
            if other is not None:
                self._refuse_second(mine, other)
        raise ConflictError(reason_code="TASK_EXISTS", task_id=mine.task_id, namespace=mine.namespace)

    def _refuse_buried(self, mine: Task, other_id: str) -> None:
        """Raise REQUEST_QUEUED if another task of the request takes our place this moment, be it not there yet."""
        passed = {mine.task_id}
        while other_id not in passed:
            passed.add(other_id)
            other = self.tasks.get(mine.namespace, other_id)
            if other is None:
                facts = {"request_id": mine.request_id, "namespace": mine.namespace}
                raise ConflictError(reason_code="REQUEST_QUEUED", task_id=other_id, **facts)
            self._refuse_second(mine, other)
            other_id = str(other.get("buried_by") or mine.task_id)  # that one was buried, too

    def _same(self, wanted: WantedTask) -> Task | None:
        item = self.tasks.get(wanted.task.namespace, wanted.task.task_id) or {}
        return task_of(item) if _is_same(item, wanted) else None

    def _unfindable(self) -> Iterator[Item]:
        """Give the tasks that wait where no runner looks."""
        waits = "#status = :queued AND attribute_not_exists(#ready_pk)"
        pages = self.tasks.pages(
            {"namespace": self.guards.namespace, "queued": TaskStatus.QUEUED},
            KeyConditionExpression="#namespace = :namespace",
            FilterExpression=waits,
            ConsistentRead=True,
        )
        return (item for page in pages for item in page.items)

    def _finish_for(self, item: Item, now: datetime) -> bool:
        """Finish the enqueueing of a task that is in the queue where no runner looks."""
        if is_left_by_terminal(item):
            end_left_by_terminal(self.tasks, self.guards, item, now)
            return False
        task = task_of(item) if is_readable(item) else None
        # A larger prompt leaves no room for what we would have to write beside it.
        if task is None or len(task.prompt.encode()) > PROMPT_BYTES:
            return False
        try:
            if "action" not in item:
                check_task_id(task.task_id)
            fence = task.fence or self._take_guard(task)
        except (BadInputError, ConflictError):
            return False
        task = replace(task, place_at=task.place_at if task.place_at > LONG_AGO else now)
        added = {"request_id": task.request_id, "action": task.action, "fence": fence, "updated_at": stamp(now)}
        condition = "#status = :queued AND attribute_not_exists(#ready_pk)"
        sets = {**added, "place_at": stamp(task.place_at), **ready_keys(task)}
        try:
            self.tasks.change(task.namespace, task.task_id, ItemChange(condition, {"queued": TaskStatus.QUEUED}, sets))
        except ConditionFailedError:
            return False
        except EnvironmentProblemError as error:
            # Too large by what else its program keeps there: it must not keep runners from what comes after it.
            if error.reason_code != "STORE_REFUSED":
                raise
            return False
        return True


def _is_same(item: Item, wanted: WantedTask) -> bool:
    """Return whether an item is the task that is wanted, and no tombstone in its place."""
    if not is_readable(item) or "is_tombstone" in item:
        return False
    return _work(task_of(item)) == _work(wanted.task) and item.get("prompt_digest") == wanted.digest


def _work(task: Task) -> tuple[object, ...]:
    """Return what makes two tasks of one id the same."""
    return (task.action, task.request_id, dict(task.options), task.prompt, task.prompt_bytes, task.checkout)
