"""What is done to a queue store in the fault tests, operation by operation, and how it looks afterwards."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from aiflow.adapters.dynamo.client import DynamoClient, StoreAddress, connect
from aiflow.adapters.dynamo.queue import DynamoStore
from aiflow.domain.lifecycle import TaskEvent
from aiflow.domain.queue.runner import Runner, RunnerStatus
from aiflow.domain.queue.task import LIVE_STATUSES, Checkout, Task, TaskAction, TaskEnd, excerpt
from aiflow.errors import AiflowError
from aiflow.ports.tasks import Claimant, RunnerRecords, TaskQueue
from dynamo import REGION, Dynamo

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
HERE = Checkout("host", "/work/project")
ME, OTHER = Claimant("runner-me", HERE), Claimant("runner-other", HERE)
BIG = "word " * 2000
UNKNOWN = ("STORE_UNREACHABLE", "STORE_THROTTLED")
# What no two runs have the same: chance, or how often something had to be asked.
_BY_CHANCE = ("claim_token", "fence")

T = TypeVar("T")
Items = dict[str, list[dict[str, Any]]]
_numbers = itertools.count()


@dataclass
class Scene:
    """A namespace of its own in a store: `queue` and `runners` go through faults, `calm` ones do not."""

    bare: Any
    store: DynamoStore
    calm_store: DynamoStore
    namespace: str = field(default_factory=lambda: f"space-{next(_numbers)}")

    def __post_init__(self) -> None:
        self.queue: TaskQueue = self.store.queue(self.namespace)
        self.runners: RunnerRecords = self.store.runners(self.namespace)
        self.calm: TaskQueue = self.calm_store.queue(self.namespace)
        self.calm_runners: RunnerRecords = self.calm_store.runners(self.namespace)

    def task(self, name: str = "TASK-1", request_id: str = "RQ-1", prompt: str = "", **more: Any) -> Task:
        """Make a task that is not in the queue yet; each later than the one before."""
        at = NOW + timedelta(seconds=int(name.rpartition("-")[2]))
        new = Task(self.namespace, name, TaskAction.START, request_id, at, at, at, checkout=HERE)
        return replace(new, prompt=excerpt(prompt), prompt_bytes=len(prompt.encode()), **more)

    def queued(self, *names: str, **more: Any) -> None:
        """Have tasks in the queue, each of a request of its own."""
        for name in names:
            self.calm.enqueue(self.task(name, f"RQ-{name.rpartition('-')[2]}", **more))

    def claimed(self, by: Claimant = ME, **more: Any) -> Task:
        """Have a task that is claimed."""
        self.queued("TASK-1", **more)
        task = self.calm.claim(by, NOW)
        assert task is not None
        assert task.task_id == "TASK-1"
        return task

    def items(self) -> Items:
        """Return everything that the store has of this namespace, without what is there by chance.

        A guard that names a task which has ended is as good as a free one.
        """
        tables = ("pm-runner-queue", "pm-runner-runners", "aiflow-guards", "aiflow-prompts")
        found = {table: [self._plain(item) for item in self.raw(table)] for table in tables}
        ended = {item["task_id"] for item in found["pm-runner-queue"] if item["status"] not in LIVE_STATUSES}
        for guard in found["aiflow-guards"]:
            if guard.get("task_id") in ended:
                del guard["task_id"]
        return found

    def raw(self, table: str) -> list[dict[str, Any]]:
        """Return the items of a table."""
        answer = self.bare.query(
            TableName=table,
            ConsistentRead=True,
            KeyConditionExpression="#n = :n",
            ExpressionAttributeNames={"#n": "namespace"},
            ExpressionAttributeValues={":n": {"S": self.namespace}},
        )
        return list(answer["Items"])

    def _plain(self, item: dict[str, Any]) -> dict[str, Any]:
        item = {name: "…" if name in _BY_CHANCE else next(iter(value.values())) for name, value in item.items()}
        return {
            name: value.replace(self.namespace, "…") if isinstance(value, str) else value
            for name, value in item.items()
        }

    def guard_is_right(self) -> bool:
        """Whether every live task is the one its guard names, with a fence that the guard gave out."""
        guards = {item["request_id"]["S"]: item for item in self.raw("aiflow-guards")}
        live = [item for item in self.raw("pm-runner-queue") if item["status"]["S"] in LIVE_STATUSES]
        return all(
            guards[item["task_group_id"]["S"]].get("task_id") == item["task_id"]
            and int(guards[item["task_group_id"]["S"]]["fence"]["N"]) >= int(item["fence"]["N"]) > 0
            for item in live
        )


def store_at(endpoint: str, dynamo: Dynamo, *, asks_again: bool) -> DynamoStore:
    """Give a store: as the product makes it, or with a client that asks once and leaves the rest to us."""
    address = StoreAddress(endpoint, REGION, dynamo.key, dynamo.key)
    if asks_again:
        return DynamoStore(connect(address))
    once = Dynamo(endpoint, dynamo.key).client(retries={"total_max_attempts": 1}, connect_timeout=2, read_timeout=5)
    return DynamoStore(DynamoClient(address, once))


def patiently(call: Callable[[], T], seconds: float = 60) -> T:
    """Call again until the store has answered, as the port says one may."""
    until, pause = time.monotonic() + seconds, 0.001
    while True:
        try:
            return call()
        except AiflowError as error:
            if error.reason_code not in UNKNOWN or time.monotonic() > until:
                raise
        time.sleep(pause)
        pause = min(0.1, pause * 2)


def told(call: Callable[[], object]) -> object:
    """Return what a call says, an error as its reason, without what is there by chance."""
    try:
        answer = patiently(call)
    except AiflowError as error:
        return error.reason_code
    if isinstance(answer, Task):
        return replace(answer, namespace="", fence=0, claim_token=None)
    return answer


def runner(scene: Scene, claimant: Claimant = ME, **more: Any) -> Runner:
    """Make a runner's record."""
    return Runner(scene.namespace, claimant.runner_id, claimant.checkout, NOW, NOW, **more)


LOST = TaskEnd(TaskEvent.FAILED, "RUNNER_LOST: gone", successor="TASK-1.2")
DONE = TaskEnd(TaskEvent.COMPLETED, run_id="RUN-1")
FAILED = TaskEnd(TaskEvent.FAILED, "UNIT_TEST_FAILED: red", run_id="RUN-1")

Act = Callable[[], object]


def enqueue(scene: Scene) -> Act:
    return lambda: scene.queue.enqueue(scene.task())


def enqueue_a_big_prompt(scene: Scene) -> Act:
    return lambda: scene.queue.enqueue(scene.task(prompt=BIG), BIG)


def enqueue_behind_one_that_ended(scene: Scene) -> Act:
    scene.calm.finish(scene.claimed(), FAILED, NOW)
    return lambda: scene.queue.enqueue(scene.task("TASK-2"))


def enqueue_behind_one_that_ended_with_its_guard_left(scene: Scene) -> Act:
    guard = scene.claimed().fence
    scene.calm.cancel("TASK-1", "why", NOW)
    put_guard(scene, "TASK-1", guard)
    return lambda: scene.queue.enqueue(scene.task("TASK-2"))


def enqueue_behind_one_that_never_came(scene: Scene) -> Act:
    put_guard(scene, "TASK-1", 7)
    return lambda: scene.queue.enqueue(scene.task("TASK-2"))


def enqueue_beside_a_live_one(scene: Scene) -> Act:
    scene.queued("TASK-1")
    return lambda: scene.queue.enqueue(scene.task("TASK-2"))


def enqueue_what_has_ended_and_has_a_follower(scene: Scene) -> Act:
    scene.calm.finish(scene.claimed(), FAILED, NOW)
    scene.calm.enqueue(scene.task("TASK-2"))
    return lambda: scene.queue.enqueue(scene.task())


def claim(scene: Scene) -> Act:
    scene.queued("TASK-1", "TASK-2")
    return lambda: scene.queue.claim(ME, NOW)


def claim_a_prompt(scene: Scene) -> Act:
    scene.queued("TASK-1", checkout=None)
    return lambda: scene.queue.claim(ME, NOW)


def claim_from_an_empty_queue(scene: Scene) -> Act:
    return lambda: scene.queue.claim(ME, NOW)


def claim_what_another_has(scene: Scene) -> Act:
    scene.claimed(OTHER)
    return lambda: scene.queue.claim(ME, NOW)


def note_run(scene: Scene) -> Act:
    task = scene.claimed()
    return lambda: scene.queue.note_run(task, "RUN-1", NOW)


def finish(scene: Scene) -> Act:
    task = scene.claimed()
    return lambda: scene.queue.finish(task, DONE, NOW)


def finish_with_an_error(scene: Scene) -> Act:
    task = scene.claimed()
    return lambda: scene.queue.finish(task, FAILED, NOW)


def finish_what_was_cancelled(scene: Scene) -> Act:
    task = scene.claimed()
    scene.calm.cancel("TASK-1", "why", NOW)
    return lambda: scene.queue.finish(task, DONE, NOW)


def cancel_queued(scene: Scene) -> Act:
    scene.queued("TASK-1")
    return lambda: scene.queue.cancel("TASK-1", "why", NOW)


def cancel_running(scene: Scene) -> Act:
    scene.claimed()
    return lambda: scene.queue.cancel("TASK-1", "why", NOW)


def cancel_what_is_done(scene: Scene) -> Act:
    scene.calm.finish(scene.claimed(), DONE, NOW)
    return lambda: scene.queue.cancel("TASK-1", "why", NOW)


def end_lost(scene: Scene) -> Act:
    task = scene.claimed(OTHER)
    return lambda: scene.queue.end_lost(task, LOST, NOW)


def end_lost_that_was_finished(scene: Scene) -> Act:
    task = scene.claimed(OTHER)
    scene.calm.finish(task, DONE, NOW)
    return lambda: scene.queue.end_lost(task, LOST, NOW)


def save(scene: Scene) -> Act:
    scene.calm_runners.save(runner(scene, beats=1))
    return lambda: scene.runners.save(runner(scene, beats=2, task_id="TASK-1"))


def put_to_rest(scene: Scene) -> Act:
    dead = runner(scene, OTHER, beats=3, task_id="TASK-1")
    scene.calm_runners.save(dead)
    return lambda: scene.runners.put_to_rest(dead)


def put_to_rest_one_that_moved(scene: Scene) -> Act:
    seen = runner(scene, OTHER, beats=3)
    scene.calm_runners.save(replace(seen, beats=4))
    return lambda: scene.runners.put_to_rest(seen)


def forget(scene: Scene) -> Act:
    old = runner(scene, OTHER, status=RunnerStatus.STOPPED)
    scene.calm_runners.save(old)
    return lambda: scene.runners.forget(old)


def adopt(scene: Scene) -> Act:
    scene.queued("TASK-1")
    _strip(scene, "TASK-1")

    def act() -> object:
        scene.queue.adopt(NOW)  # asked again, it may find that it has
        return None

    return act


SCENES: tuple[Callable[[Scene], Act], ...] = (
    *(enqueue, enqueue_a_big_prompt, enqueue_behind_one_that_ended),
    *(enqueue_behind_one_that_ended_with_its_guard_left, enqueue_behind_one_that_never_came),
    *(
        enqueue_beside_a_live_one,
        enqueue_what_has_ended_and_has_a_follower,
        claim,
        claim_a_prompt,
        claim_from_an_empty_queue,
        claim_what_another_has,
    ),
    *(note_run, finish, finish_with_an_error, finish_what_was_cancelled, cancel_queued, cancel_running),
    *(cancel_what_is_done, end_lost, end_lost_that_was_finished, save, put_to_rest, put_to_rest_one_that_moved),
    *(forget, adopt),
)


def put_guard(scene: Scene, task_id: str, fence: int) -> None:
    """Leave a guard as one does who dies at the wrong moment."""
    item = {"namespace": {"S": scene.namespace}, "request_id": {"S": "RQ-1"}}
    held = {"task_id": {"S": task_id}, "fence": {"N": str(fence)}}
    scene.bare.put_item(TableName="aiflow-guards", Item=item | held)


def _strip(scene: Scene, task_id: str) -> None:
    """Leave a task that no claim can find."""
    scene.bare.update_item(
        TableName="pm-runner-queue",
        Key={"namespace": {"S": scene.namespace}, "task_id": {"S": task_id}},
        UpdateExpression="REMOVE ready_pk, ready_sk",
    )
