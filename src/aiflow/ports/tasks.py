"""The protocols of the queue store (QUE): tasks, runners, the store of this machine, and waking a runner.

Every write is one conditional write of one item, so that two can never both succeed. A call whose answer was lost may
be made again: it finds out what became of the first, by reading back. Where the store does not answer,
STORE_UNREACHABLE or STORE_THROTTLED is raised and nothing is known; who must know asks again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from datetime import datetime

    from aiflow.domain.lifecycle import TaskStatus
    from aiflow.domain.queue.runner import Runner
    from aiflow.domain.queue.store_obstacles import Obstacles
    from aiflow.domain.queue.task import Checkout, Task, TaskEnd


class Claimant(NamedTuple):
    """Who claims: its id, the checkout whose tasks it may take beside those that anybody may."""

    runner_id: str
    checkout: Checkout


class ClaimTerms(NamedTuple):
    """Under what terms a claim is made: whether it is our turn, asked once there is something to claim; what to leave.

    `is_our_turn` may be asked again in the same call.
    """

    is_our_turn: Callable[[], bool] = lambda: True
    left: frozenset[str] = frozenset()


ANY_TERMS = ClaimTerms()


class TaskQueue(Protocol):
    """The tasks of one namespace; no other namespace's are read or changed (QUE-5, QUE-9)."""

    namespace: str

    def enqueue(self, task: Task, prompt: str = "") -> Task:
        """Put a new task into the queue and return it as it is there, with its fence.

        Takes its request's guard first: REQUEST_QUEUED if that names another unfinished task (in the context). The same
        task again is the same task, whatever became of it; another one under its id is TASK_EXISTS.
        """

    def claim(self, claimant: Claimant, now: datetime, terms: ClaimTerms = ANY_TERMS) -> Task | None:
        """Claim the next task: highest priority, then oldest, of what this runner may take; None if there is none.

        Nothing is claimed unless it is our turn, by the terms; that is not even asked while there is nothing.
        """

    def note_run(self, task: Task, run_id: str, now: datetime) -> None:
        """Name the run that works on a claimed task; LOCK_MISMATCH if the task is no longer ours."""

    def finish(self, task: Task, end: TaskEnd, now: datetime) -> Task:
        """End a claimed task and free its request's guard; LOCK_MISMATCH if it is no longer ours (QUE-6)."""

    def cancel(self, task_id: str, why: str, now: datetime) -> Task:
        """Cancel a task that is queued or running; cancelled already is fine, TASK_NOT_ACTIVE if it ended otherwise."""

    def end_lost(self, task: Task, end: TaskEnd, now: datetime) -> Task | None:
        """End a running task whose runner is gone, by the very claim that was seen; None if it has changed (QUE-7)."""

    def get(self, task_id: str) -> Task | None:
        """Return a task as it is now, read consistently."""

    def live_of(self, request_id: str) -> Task | None:
        """Return the one unfinished task of a request, as its guard names it; None if it has none."""

    def has_had(self, request_id: str) -> bool:
        """Return whether a request has, or ever had, a task here."""

    def prompt(self, task: Task) -> str:
        """Return all of a task's prompt."""

    def tasks_of(self, runner_id: str) -> tuple[Task, ...]:
        """Return the tasks that a runner has at work; reads the whole namespace, consistently."""

    def waiting(self, checkout: Checkout | None, most: int) -> tuple[str, ...]:
        """Return the places of what waits for a checkout's runners, or for anybody's: the first, in claim order.

        They are counted as a claim finds them: tasks that no runner finds have none, and ended ones are not read.
        """

    def adopt(self, now: datetime) -> int:
        """Make queued tasks findable that are not: enqueued half, or by another program; return how many."""

    def pages(self, statuses: Collection[TaskStatus] = (), start: str | None = None) -> Iterator[TaskPage]:
        """Give all tasks, newest first, page by page; `start` is a page's `next_start`."""

    def counts(self, progress: Callable[[int], None] = lambda _seen: None) -> Mapping[TaskStatus, int]:
        """Count the tasks by status, through every page."""


class TaskPage(NamedTuple):
    """A part of a listing; `next_start` is None at the end."""

    tasks: tuple[Task, ...]
    next_start: str | None


class RunnerRecords(Protocol):
    """The runners of one namespace (QUE-7)."""

    def save(self, runner: Runner) -> None:
        """Write a runner's own record: its heartbeat, what it works on, that it stops; an older one changes nothing."""

    def all(self) -> tuple[Runner, ...]:
        """Return every runner's record, read consistently."""

    def put_to_rest(self, runner: Runner) -> bool:
        """Mark a runner that is gone as stopped and without a task; False if its record has changed since."""

    def forget(self, runner: Runner) -> None:
        """Remove the record of a runner that has been at rest for long."""


class QueueStore(Protocol):
    """A whole store: tables made if they are missing and checked if they are there (QUE-1)."""

    def prepare(self) -> None:
        """Make or check the tables; STORE_TABLE_MISMATCH if one has other keys."""

    def check(self) -> tuple[str, ...]:
        """Check the tables that are there as `prepare` does and return the names of those that are not; makes none."""

    def queue(self, namespace: str) -> TaskQueue:
        """Give the tasks of a namespace."""

    def runners(self, namespace: str) -> RunnerRecords:
        """Give the runners of a namespace."""

    def namespaces(
        self, progress: Callable[[int], None] = lambda _seen: None
    ) -> Mapping[str, Mapping[TaskStatus, int]]:
        """Return every namespace with its tasks counted; reads everything, asked for only by `--all` (QUE-9)."""

    def all_runners(self) -> tuple[Runner, ...]:
        """Return the runners of every namespace, for `--all`."""


class Wake(Protocol):
    """Notifies the runners of this machine at once that there is something to check (PRF-4)."""

    def wait(self, seconds: float) -> tuple[str, ...]:
        """Wait for news at most this long; returns the ids of tasks that were named, none if the time is over."""

    def poke(self, namespace: str, task_id: str) -> int:
        """Notify every runner of a namespace on this machine of a task, and return how many heard; never raises."""

    def close(self) -> None:
        """Stop to be notified."""


class StoreStatus(NamedTuple):
    """What is known of this machine's own store; `problem` is why it does not answer, where it should.

    `is_stopped`: a person stopped it; `exposed`: which of its files others may read.
    """

    is_running: bool
    endpoint: str | None = None
    pid: int | None = None
    how: str | None = None
    version: str | None = None
    data: str | None = None
    log: str | None = None
    problem: Obstacles | None = None
    is_stopped: bool = False
    exposed: tuple[str, ...] = ()


class LocalStore(Protocol):
    """The DynamoDB Local that aiflow downloads, starts and stops automatically, one per user (QUE-2, QUE-2a)."""

    def start(self, progress: Callable[[str, float | None], None], *, is_key_new: bool = False) -> StoreStatus:
        """Start it if it does not run, fetching it first where it is missing; two at once start one.

        With a new key it is started again if it runs; its tasks are kept.
        """

    def stop(self) -> bool:
        """Stop it; False if it did not run."""

    def status(self) -> StoreStatus:
        """Look at it; changes nothing."""

    def lack(self) -> Obstacles | None:
        """Say what is missing here to run it, None if nothing is; fetches and starts nothing."""

    def log(self, lines: int) -> str:
        """Return the end of its log."""

    def follow(self, lines: int) -> Iterator[str]:
        """Give the end of its log line by line, and what is added, for as long as somebody listens."""
