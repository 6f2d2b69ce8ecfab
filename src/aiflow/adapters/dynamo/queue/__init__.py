"""The queue store on anything that speaks DynamoDB (QUE): single-item conditional writes and queries, nothing else.

`queue` and `runners` give views of one namespace. A queue remembers what its claims have learnt, so a runner keeps one
for as long as it runs; all the rest may be used by several threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.adapters.dynamo.queue import listing, tables
from aiflow.adapters.dynamo.queue.calls import ItemTable
from aiflow.adapters.dynamo.queue.claim import Claiming
from aiflow.adapters.dynamo.queue.enqueue import Enqueueing
from aiflow.adapters.dynamo.queue.finish import Finishing
from aiflow.adapters.dynamo.queue.guards import Guards
from aiflow.adapters.dynamo.queue.items import is_readable, task_of
from aiflow.adapters.dynamo.queue.prompts import Prompts
from aiflow.adapters.dynamo.queue.runners import DynamoRunners, all_runners
from aiflow.ports.tasks import ANY_TERMS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from datetime import datetime

    from aiflow.adapters.dynamo.client import DynamoClient
    from aiflow.domain.lifecycle import TaskStatus
    from aiflow.domain.queue.runner import Runner
    from aiflow.domain.queue.task import Checkout, Task, TaskEnd
    from aiflow.ports.tasks import Claimant, ClaimTerms, TaskPage


class DynamoStore:
    """A whole store; its tables are looked at once."""

    def __init__(self, client: DynamoClient, poll_seconds: float = 1.0) -> None:
        self._client = client
        self._poll_seconds = poll_seconds
        self._is_prepared = False
        self._queue, self._runners, self._guards, self._prompts = (
            ItemTable(client, shape.name, shape.range_key) for shape in tables.SHAPES
        )

    def prepare(self) -> None:
        """Make or check the tables; STORE_TABLE_MISMATCH if one has other keys."""
        if not self._is_prepared:
            tables.prepare(self._client)
            self._is_prepared = True

    def check(self) -> tuple[str, ...]:
        """Check the tables that are there and return the names of those that are not; makes nothing."""
        return tables.check(self._client)

    def queue(self, namespace: str) -> DynamoQueue:
        """Give the tasks of a namespace."""
        guards, prompts = Guards(self._guards, namespace), Prompts(self._prompts, namespace)
        return DynamoQueue(self._queue, guards, prompts, self._poll_seconds)

    def runners(self, namespace: str) -> DynamoRunners:
        """Give the runners of a namespace."""
        return DynamoRunners(self._runners, namespace)

    def namespaces(
        self, progress: Callable[[int], None] = lambda _seen: None
    ) -> Mapping[str, Mapping[TaskStatus, int]]:
        """Return every namespace with its tasks counted; reads everything."""
        return listing.namespaces(self._queue, progress)

    def all_runners(self) -> tuple[Runner, ...]:
        """Return the runners of every namespace."""
        return all_runners(self._runners)


class DynamoQueue:
    """The tasks of one namespace; the port describes what each method promises."""

    def __init__(self, table: ItemTable, guards: Guards, prompts: Prompts, poll_seconds: float) -> None:
        self.namespace = guards.namespace
        self._table, self._guards, self._prompts = table, guards, prompts
        self._enqueueing = Enqueueing(table, guards, prompts)
        self._claiming = Claiming(table, guards.namespace, poll_seconds)
        self._finishing = Finishing(table, guards)

    def enqueue(self, task: Task, prompt: str = "") -> Task:
        """Put a new task into the queue and return it as it is there, with its fence."""
        return self._enqueueing.enqueue(task, prompt)

    def claim(self, claimant: Claimant, now: datetime, terms: ClaimTerms = ANY_TERMS) -> Task | None:
        """Claim the next task: highest priority, then oldest, of what this runner may take; None if there is none."""
        return self._claiming.claim(claimant, now, terms)

    def note_run(self, task: Task, run_id: str, now: datetime) -> None:
        """Name the run that works on a claimed task; LOCK_MISMATCH if the task is no longer ours."""
        self._finishing.note_run(task, run_id, now)

    def finish(self, task: Task, end: TaskEnd, now: datetime) -> Task:
        """End a claimed task and free its request's guard; LOCK_MISMATCH if it is no longer ours."""
        return self._finishing.finish(task, end, now)

    def cancel(self, task_id: str, why: str, now: datetime) -> Task:
        """Cancel a task that is queued or running; cancelled already is fine, TASK_NOT_ACTIVE if it ended otherwise."""
        return self._finishing.cancel(task_id, why, now)

    def end_lost(self, task: Task, end: TaskEnd, now: datetime) -> Task | None:
        """End a running task whose runner is gone, by the claim that was seen; None if that is past."""
        return self._finishing.end(task, end, now)

    def get(self, task_id: str) -> Task | None:
        """Return a task as it is now, read consistently."""
        item = self._table.get(self.namespace, task_id) or {}
        return task_of(item) if is_readable(item) else None

    def live_of(self, request_id: str) -> Task | None:
        """Return the one live task of a request, as its guard names it; None if it has none."""
        named = self._guards.read(request_id).task_id
        task = self.get(named) if named else None
        return task if task is not None and not task.is_final else None

    def has_had(self, request_id: str) -> bool:
        """Return whether a request has, or ever had, a task here: each one counts its guard's fence up."""
        return self._guards.read(request_id).fence > 0

    def prompt(self, task: Task) -> str:
        """Return all of a task's prompt."""
        if task.is_prompt_whole:
            return task.prompt
        return self._prompts.get(self._table.get(self.namespace, task.task_id) or {})

    def tasks_of(self, runner_id: str) -> tuple[Task, ...]:
        """Return the tasks that a runner has at work."""
        return listing.tasks_of(self._table, self.namespace, runner_id)

    def waiting(self, checkout: Checkout | None, most: int) -> tuple[str, ...]:
        """Return the places of what waits for a checkout's runners, or for anybody's: the first, in claim order."""
        return listing.waiting(self._table, self.namespace, checkout, most)

    def adopt(self, now: datetime) -> int:
        """Make queued tasks findable that are not: enqueued half, or by another program; return how many."""
        return self._enqueueing.adopt(now)

    def pages(self, statuses: Collection[TaskStatus] = (), start: str | None = None) -> Iterator[TaskPage]:
        """Give all tasks, newest first, page by page; `start` is a page's `next_start`."""
        return listing.pages(self._table, self.namespace, statuses, start)

    def counts(self, progress: Callable[[int], None] = lambda _seen: None) -> Mapping[TaskStatus, int]:
        """Count the tasks by status, through every page."""
        return listing.counts(self._table, self.namespace, progress)
