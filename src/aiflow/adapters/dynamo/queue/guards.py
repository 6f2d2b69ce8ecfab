"""Guards (QUE-5): one item per request that names its one live task, and counts a fence up each time it is taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from aiflow.adapters.dynamo.client import ConditionFailedError
from aiflow.adapters.dynamo.queue.calls import ItemChange
from aiflow.errors import AiflowError

if TYPE_CHECKING:
    from aiflow.adapters.dynamo.queue.calls import ItemTable


class RequestGuard(NamedTuple):
    """A guard as it was read: the task it names, if any, and its fence."""

    task_id: str | None
    fence: int


@dataclass(frozen=True, slots=True)
class Guards:
    """The guards of one namespace."""

    table: ItemTable
    namespace: str

    def read(self, request_id: str) -> RequestGuard:
        """Return a guard as it is now."""
        item = self.table.get(self.namespace, request_id) or {}
        return RequestGuard(item.get("task_id"), item.get("fence", 0))

    def take(self, request_id: str, task_id: str) -> int | None:
        """Take a guard that is free, or has this task already; return the fence, None if another task has it."""
        condition = "attribute_not_exists(#task_id) OR #task_id = :mine"
        return self._take(request_id, task_id, ItemChange(condition, {"mine": task_id}))

    def take_over(self, request_id: str, task_id: str, seen: RequestGuard) -> int | None:
        """Take a guard from a task that is no longer live; None if the guard has moved since it was seen."""
        condition = "#task_id = :theirs AND #fence = :seen"
        return self._take(request_id, task_id, ItemChange(condition, {"theirs": seen.task_id, "seen": seen.fence}))

    def free(self, request_id: str, task_id: str) -> None:
        """Free a guard that names this task; where that fails, the next enqueue repairs it."""
        try:
            change = ItemChange("#task_id = :mine", {"mine": task_id}, removes=("task_id",), is_silent=True)
            self.table.change(self.namespace, request_id, change)
        except (ConditionFailedError, AiflowError):
            return

    def _take(self, request_id: str, task_id: str, change: ItemChange) -> int | None:
        change = ItemChange(change.condition, change.values, {"task_id": task_id}, adds={"fence": 1})
        try:
            return int(self.table.change(self.namespace, request_id, change)["fence"])
        except ConditionFailedError:
            return None
