"""Runners' records (QUE-7): each is written by its own runner; others only mark one that is gone as stopped."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aiflow.adapters.dynamo.client import ConditionFailedError
from aiflow.adapters.dynamo.queue.calls import ItemChange
from aiflow.adapters.dynamo.queue.items import item_of_runner, runner_of
from aiflow.domain.queue.runner import RunnerStatus

if TYPE_CHECKING:
    from aiflow.adapters.dynamo.queue.calls import Item, ItemTable
    from aiflow.domain.queue.runner import Runner


@dataclass(frozen=True, slots=True)
class DynamoRunners:
    """The runners of one namespace."""

    table: ItemTable
    namespace: str

    def save(self, runner: Runner) -> None:
        """Write a runner's own record: its heartbeat, what it works on, that it stops."""
        # A beat that a store took long over must not undo the runner's last word.
        condition = "attribute_not_exists(#beats) OR #beats <= :beats"
        with contextlib.suppress(ConditionFailedError):
            self.table.put(item_of_runner(runner), condition, {"beats": runner.beats})

    def all(self) -> tuple[Runner, ...]:
        """Return every runner's record, read consistently."""
        found = self.table.pages(
            {"namespace": self.namespace}, KeyConditionExpression="#namespace = :namespace", ConsistentRead=True
        )
        return tuple(runner_of(item) for page in found for item in page.items)

    def put_to_rest(self, runner: Runner) -> bool:
        """Mark a runner that is gone as stopped and without a task; False if it has moved since it was seen."""
        item = self._unmoved(runner)
        if item is None:
            return False
        if runner_of(item).is_at_rest:
            return True
        condition, values = _as_it_is(item)
        change = ItemChange(condition, values, {"status": RunnerStatus.STOPPED}, ("task_id",))
        try:
            self.table.change(self.namespace, runner.runner_id, change)
        except ConditionFailedError:
            # The client asks again automatically if an answer is lost: its own first write may have refused it.
            item = self._unmoved(runner)
            return item is not None and runner_of(item).is_at_rest
        return True

    def forget(self, runner: Runner) -> None:
        """Remove the record of a runner that has been at rest for long."""
        item = self._unmoved(runner)
        if item is None or not runner_of(item).is_at_rest:
            return
        try:
            self.table.delete(self.namespace, runner.runner_id, *_as_it_is(item))
        except ConditionFailedError:
            return

    def _unmoved(self, runner: Runner) -> Item | None:
        """Return a runner's item if no heartbeat came since it was seen."""
        item = self.table.get(self.namespace, runner.runner_id)
        return item if item is not None and runner_of(item).beats == runner.beats else None


def all_runners(table: ItemTable) -> tuple[Runner, ...]:
    """Return the runners of every namespace."""
    return tuple(runner_of(item) for page in table.scan() for item in page.items)


def _as_it_is(item: Item) -> tuple[str, dict[str, Any]]:
    """Return the condition that a record has not moved; another program's has no count, but a time."""
    names = [name for name in ("last_heartbeat", "beats", "status") if name in item]
    condition = " AND ".join(f"#{name} = :{name}" for name in names)
    return condition or "attribute_exists(#runner_id)", {name: item[name] for name in names}
