"""Listing and counting (QUE-9): through every page of one namespace; of all of them only when asked for."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING

from aiflow.adapters.dynamo.queue.items import is_readable, ready_partition, task_of
from aiflow.adapters.dynamo.queue.tables import READY_INDEX
from aiflow.domain.lifecycle import TaskStatus
from aiflow.ports.tasks import TaskPage

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from aiflow.adapters.dynamo.queue.calls import ItemTable
    from aiflow.domain.queue.task import Checkout, Task

_OF_NAMESPACE = "#namespace = :namespace"


def pages(tasks: ItemTable, namespace: str, statuses: Collection[TaskStatus], start: str | None) -> Iterator[TaskPage]:
    """Give a namespace's tasks, newest first."""
    wanted = {f"status_{number}": status for number, status in enumerate(statuses)}
    params = {"FilterExpression": " OR ".join(f"#status = :{name}" for name in wanted)} if wanted else {}
    found = tasks.pages(
        {"namespace": namespace, **wanted},
        tasks.start_at(namespace, start) if start is not None else None,
        KeyConditionExpression=_OF_NAMESPACE,
        ScanIndexForward=False,
        ConsistentRead=True,
        **params,
    )
    for page in found:
        next_start = page.last_key["task_id"]["S"] if page.last_key else None
        yield TaskPage(tuple(task_of(item) for item in page.items if is_readable(item)), next_start)


def counts(tasks: ItemTable, namespace: str, progress: Callable[[int], None]) -> Mapping[TaskStatus, int]:
    """Count a namespace's tasks by status."""
    counted: Counter[TaskStatus] = Counter()
    found = tasks.pages(
        {"namespace": namespace}, KeyConditionExpression=_OF_NAMESPACE, ProjectionExpression="#status, #action"
    )
    for page in found:
        counted.update(TaskStatus(item["status"]) for item in page.items if is_readable(item))
        progress(counted.total())
    return {status: counted[status] for status in TaskStatus}


def tasks_of(tasks: ItemTable, namespace: str, runner_id: str) -> tuple[Task, ...]:
    """Find the tasks that a runner has at work."""
    found = tasks.pages(
        {"namespace": namespace, "runner": runner_id, "running": TaskStatus.RUNNING},
        KeyConditionExpression=_OF_NAMESPACE,
        FilterExpression="#claimed_by = :runner AND #status = :running",
        ConsistentRead=True,
    )
    return tuple(task_of(item) for page in found for item in page.items if is_readable(item))


def waiting(tasks: ItemTable, namespace: str, checkout: Checkout | None, most: int) -> tuple[str, ...]:
    """Read the first places of one partition of the ready-index; no more pages than they take."""
    found = tasks.pages(
        {"partition": ready_partition(namespace, checkout)},
        IndexName=READY_INDEX,
        KeyConditionExpression="#ready_pk = :partition",
        ProjectionExpression="#ready_sk",
        Limit=most,
    )
    return tuple(islice((item["ready_sk"] for page in found for item in page.items), most))


def namespaces(tasks: ItemTable, progress: Callable[[int], None]) -> Mapping[str, Mapping[TaskStatus, int]]:
    """Count the tasks of every namespace."""
    counted: dict[str, Counter[TaskStatus]] = {}
    seen = 0
    for page in tasks.scan(ProjectionExpression="#namespace, #status, #action"):
        for item in page.items:
            if is_readable(item):
                counted.setdefault(item["namespace"], Counter())[TaskStatus(item["status"])] += 1
        seen += len(page.items)
        progress(seen)
    return {name: {status: counted[name][status] for status in TaskStatus} for name in sorted(counted)}
