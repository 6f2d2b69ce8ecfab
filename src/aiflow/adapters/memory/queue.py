"""The queue store in memory: every promise of the port in the plainest way, for tests of use cases and as a yardstick.

One lock makes every call one step. Callers who need a failing or slow store wrap it.
"""

from __future__ import annotations

import secrets
import threading
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from aiflow.domain.lifecycle import TASK_TRANSITIONS, TaskEvent, TaskStatus
from aiflow.domain.queue.runner import Runner, RunnerStatus
from aiflow.domain.queue.task import check_prompt, excerpt, lock_mismatch, may_claim, message_of, place_key
from aiflow.errors import ConflictError, NotFoundError
from aiflow.ports.tasks import ANY_TERMS, TaskPage

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from datetime import datetime

    from aiflow.domain.queue.task import Checkout, Task, TaskEnd
    from aiflow.ports.tasks import Claimant, ClaimTerms


@dataclass
class MemoryStore:
    """A whole store; tasks and runners are found by namespace and id."""

    tasks: dict[tuple[str, str], Task] = field(default_factory=dict)
    prompts: dict[tuple[str, str], str] = field(default_factory=dict)
    fences: Counter[tuple[str, str]] = field(default_factory=Counter)
    records: dict[tuple[str, str], Runner] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def prepare(self) -> None:
        """Make or check the tables: there is nothing to make."""

    def check(self) -> tuple[str, ...]:
        """Check the tables: none is missing."""
        return ()

    def queue(self, namespace: str) -> MemoryQueue:
        """Give the tasks of a namespace."""
        return MemoryQueue(self, namespace)

    def runners(self, namespace: str) -> MemoryRunners:
        """Give the runners of a namespace."""
        return MemoryRunners(self, namespace)

    def namespaces(
        self, progress: Callable[[int], None] = lambda _seen: None
    ) -> Mapping[str, Mapping[TaskStatus, int]]:
        """Return every namespace with its tasks counted."""
        with self.lock:
            names = sorted({namespace for namespace, _task_id in self.tasks})
            progress(len(self.tasks))
            return {name: self.queue(name).counts() for name in names}

    def all_runners(self) -> tuple[Runner, ...]:
        """Return the runners of every namespace."""
        with self.lock:
            return tuple(self.records.values())


@dataclass
class MemoryQueue:
    """The tasks of one namespace."""

    store: MemoryStore
    namespace: str

    def enqueue(self, task: Task, prompt: str = "") -> Task:
        """Put a new task into the queue and return it as it is there, with its fence."""
        with self.store.lock:
            whole = prompt or self._inherited(task)
            if whole:
                check_prompt(whole)
            task = replace(
                task, status=TaskStatus.QUEUED, prompt=excerpt(whole), prompt_bytes=len(whole.encode()), fence=0
            )
            there = self.get(task.task_id)
            if there is not None and _work(there, self.prompt(there)) == _work(task, whole):
                return there
            self._refuse_second(task)
            if there is not None:
                raise ConflictError(reason_code="TASK_EXISTS", task_id=task.task_id, namespace=self.namespace)
            self.store.fences[self.namespace, task.request_id] += 1
            self.store.prompts[self.namespace, task.task_id] = whole
            return self._save(replace(task, fence=self.store.fences[self.namespace, task.request_id]))

    def claim(self, claimant: Claimant, now: datetime, terms: ClaimTerms = ANY_TERMS) -> Task | None:
        """Claim the next task: highest priority, then oldest, of what this runner may take; None if there is none."""
        if self._first(claimant, terms) is None or not terms.is_our_turn():
            return None
        with self.store.lock:
            task = self._first(claimant, terms)
            return task and self._claimed(task, claimant, now)

    def note_run(self, task: Task, run_id: str, now: datetime) -> None:
        """Name the run that works on a claimed task; LOCK_MISMATCH if the task is no longer ours."""
        with self.store.lock:
            there = self.get(task.task_id)
            if there is None or there.status is not TaskStatus.RUNNING or not _is_same_claim(there, task):
                raise lock_mismatch(task, there)
            self._save(replace(there, run_id=run_id, updated_at=now))

    def finish(self, task: Task, end: TaskEnd, now: datetime) -> Task:
        """End a claimed task and free its request's guard; LOCK_MISMATCH if it is no longer ours."""
        with self.store.lock:
            ended = self.end_lost(task, end, now)
            if ended is None:
                raise lock_mismatch(task, self.get(task.task_id))
            return ended

    def cancel(self, task_id: str, why: str, now: datetime) -> Task:
        """Cancel a task that is queued or running; cancelled already is fine, TASK_NOT_ACTIVE if it ended otherwise."""
        with self.store.lock:
            task = self.get(task_id)
            if task is None:
                raise NotFoundError(reason_code="TASK_NOT_FOUND", task_id=task_id, namespace=self.namespace)
            if task.status is TaskStatus.CANCELLED:
                return task
            status = TASK_TRANSITIONS.get((task.status, TaskEvent.CANCELLED))
            if status is None:
                raise ConflictError(
                    reason_code="TASK_NOT_ACTIVE", task_id=task_id, status=task.status, namespace=self.namespace
                )
            return self._save(replace(task, status=status, error_message=message_of("CANCELLED", why), updated_at=now))

    def end_lost(self, task: Task, end: TaskEnd, now: datetime) -> Task | None:
        """End a running task whose runner is gone, by the claim that was seen; None if that is past."""
        with self.store.lock:
            there = self.get(task.task_id)
            if there is None or not _is_same_claim(there, task):
                return None
            status = TASK_TRANSITIONS[TaskStatus.RUNNING, end.event]
            if there.status is not TaskStatus.RUNNING:
                is_so = (there.status, there.error_message, there.successor)
                return there if is_so == (status, end.error_message, end.successor) else None
            return self._save(
                replace(
                    there,
                    status=status,
                    error_message=end.error_message,
                    run_id=end.run_id or there.run_id,
                    successor=end.successor,
                    updated_at=now,
                )
            )

    def get(self, task_id: str) -> Task | None:
        """Return a task as it is now."""
        with self.store.lock:
            return self.store.tasks.get((self.namespace, task_id))

    def live_of(self, request_id: str) -> Task | None:
        """Return the one live task of a request; None if it has none."""
        with self.store.lock:
            return next((each for each in self._all() if each.request_id == request_id and not each.is_final), None)

    def has_had(self, request_id: str) -> bool:
        """Return whether a request has, or ever had, a task here."""
        with self.store.lock:
            return any(each.request_id == request_id for each in self._all())

    def prompt(self, task: Task) -> str:
        """Return all of a task's prompt."""
        with self.store.lock:
            return self.store.prompts.get((self.namespace, task.task_id), task.prompt)

    def tasks_of(self, runner_id: str) -> tuple[Task, ...]:
        """Return the tasks that a runner has at work."""
        with self.store.lock:
            held = (each for each in self._all() if each.claimed_by == runner_id)
            return tuple(each for each in held if each.status is TaskStatus.RUNNING)

    def waiting(self, checkout: Checkout | None, most: int) -> tuple[str, ...]:
        """Return the places of what waits for a checkout's runners, or for anybody's."""
        with self.store.lock:
            queued = (each for each in self._all() if each.status is TaskStatus.QUEUED)
            return tuple(sorted(place_key(each) for each in queued if each.checkout == checkout)[:most])

    def adopt(self, now: datetime) -> int:  # noqa: ARG002 - the port's
        """Make queued tasks findable that are not: here all are."""
        return 0

    def pages(self, statuses: Collection[TaskStatus] = (), start: str | None = None) -> Iterator[TaskPage]:
        """Give all tasks, newest first, in one page."""
        with self.store.lock:
            tasks = [each for each in self._all() if start is None or each.task_id < start]
        tasks.sort(key=lambda task: task.task_id, reverse=True)
        yield TaskPage(tuple(each for each in tasks if not statuses or each.status in statuses), None)

    def counts(self, progress: Callable[[int], None] = lambda _seen: None) -> Mapping[TaskStatus, int]:
        """Count the tasks by status."""
        with self.store.lock:
            counted = Counter(each.status for each in self._all())
        progress(counted.total())
        return {status: counted[status] for status in TaskStatus}

    def _all(self) -> list[Task]:
        return [task for (namespace, _task_id), task in self.store.tasks.items() if namespace == self.namespace]

    def _save(self, task: Task) -> Task:
        self.store.tasks[self.namespace, task.task_id] = task
        return task

    def _first(self, claimant: Claimant, terms: ClaimTerms) -> Task | None:
        with self.store.lock:
            waiting = (each for each in self._all() if may_claim(each, claimant.checkout))
            return min((each for each in waiting if each.task_id not in terms.left), key=place_key, default=None)

    def _inherited(self, task: Task) -> str:
        """Return the prompt of a successor that was made from a task with a large one."""
        if task.is_prompt_whole or task.predecessor is None:
            return task.prompt
        return self.store.prompts.get((self.namespace, task.predecessor), task.prompt)

    def _refuse_second(self, task: Task) -> None:
        """Raise REQUEST_QUEUED if another task of the request is live."""
        live = self.live_of(task.request_id)
        if live is not None and live.task_id != task.task_id:
            raise ConflictError(
                reason_code="REQUEST_QUEUED",
                task_id=live.task_id,
                status=live.status,
                request_id=task.request_id,
                namespace=self.namespace,
            )

    def _claimed(self, task: Task, claimant: Claimant, now: datetime) -> Task:
        status = TASK_TRANSITIONS[task.status, TaskEvent.CLAIMED]
        token = secrets.token_hex(8)
        return self._save(
            replace(task, status=status, claimed_by=claimant.runner_id, claim_token=token, updated_at=now)
        )


@dataclass
class MemoryRunners:
    """The runners of one namespace."""

    store: MemoryStore
    namespace: str

    def save(self, runner: Runner) -> None:
        """Write a runner's own record."""
        with self.store.lock:
            before = self.store.records.get((self.namespace, runner.runner_id))
            if before is None or before.beats <= runner.beats:
                self.store.records[self.namespace, runner.runner_id] = runner

    def all(self) -> tuple[Runner, ...]:
        """Return every runner's record."""
        with self.store.lock:
            return tuple(each for (name, _id), each in sorted(self.store.records.items()) if name == self.namespace)

    def put_to_rest(self, runner: Runner) -> bool:
        """Mark a runner that is gone as stopped and without a task; False if it has moved since it was seen."""
        with self.store.lock:
            there = self._unmoved(runner)
            if there is not None:
                self.save(replace(there, status=RunnerStatus.STOPPED, task_id=None))
            return there is not None

    def forget(self, runner: Runner) -> None:
        """Remove the record of a runner that has been at rest for long."""
        with self.store.lock:
            there = self._unmoved(runner)
            if there is not None and there.is_at_rest:
                del self.store.records[self.namespace, runner.runner_id]

    def _unmoved(self, runner: Runner) -> Runner | None:
        there = self.store.records.get((self.namespace, runner.runner_id))
        return there if there is not None and there.beats == runner.beats else None


def _work(task: Task, prompt: str) -> tuple[object, ...]:
    """Return what makes two tasks of one id the same."""
    return (task.action, task.request_id, dict(task.options), prompt, task.checkout)


def _is_same_claim(there: Task, task: Task) -> bool:
    is_same = there.claimed_by == task.claimed_by and there.claim_token == task.claim_token
    return is_same and there.fence == task.fence
