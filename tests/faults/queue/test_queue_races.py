"""Races on a real DynamoDB Local: many at once, one winner, and what is final stays final (QUE-3, QUE-5, QUE-6, QUE-8)."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from aiflow.adapters.dynamo.client import ConditionFailedError, DynamoClient
from aiflow.adapters.dynamo.queue import DynamoQueue, DynamoStore
from aiflow.adapters.dynamo.queue.calls import packed
from aiflow.adapters.dynamo.queue.claim import Attempt
from aiflow.adapters.dynamo.queue.items import item_of, ready_keys
from aiflow.domain.lifecycle import TaskEvent, TaskStatus
from aiflow.domain.queue.task import Checkout, Task, TaskEnd
from aiflow.errors import ConflictError
from aiflow.ports.tasks import Claimant
from forms import rounds
from queue_faults import FaultyClient, watched
from task_builders import COMPLETED, HERE, LOST, ME, NOW, a_prompt, a_task

pytestmark = pytest.mark.faults


@pytest.fixture
def client(prepared: Callable[[str], DynamoClient]) -> DynamoClient:
    """Give a real store; its client has more connections than we have threads."""
    return prepared("local")


def fill(client: DynamoClient, tasks: Iterator[Task]) -> None:
    """Put tasks into the table quickly, past the guards."""
    while batch := list(itertools.islice(tasks, 25)):
        requests = [{"PutRequest": {"Item": packed({**item_of(task), **ready_keys(task)})}} for task in batch]
        client.call("batch_write_item", RequestItems={"pm-runner-queue": requests})


@pytest.mark.spec("QUE-5")
def test_sixteen_race_for_one_task_again_and_again(client: DynamoClient, namespace: str) -> None:
    threads, races = 16, rounds(100, 1000)
    fill(client, (a_task(number, namespace) for number in range(races)))
    barrier = threading.Barrier(threads)

    def go(number: int) -> list[str]:
        queue, claimant = DynamoStore(client).queue(namespace), Claimant(f"runner-{number}", HERE)
        won = []
        for each in range(races):
            attempt = Attempt(f"TASK-{each:04d}", f"{number:04d}-{each:04d}")
            barrier.wait(60)
            task = queue._claiming._try(attempt, claimant, NOW)  # all for the same one, whatever the index shows
            if isinstance(task, Task):
                assert task.claimed_by == claimant.runner_id
                won.append(task.task_id)
        return won

    with ThreadPoolExecutor(threads) as pool:
        won = list(pool.map(go, range(threads)))
    winners = Counter(task_id for each in won for task_id in each)
    assert len(winners) == races
    assert set(winners.values()) == {1}
    assert sum(1 for each in won if each) > 1
    held = {number: queue_of(client, namespace, f"runner-{number}") for number in range(threads)}
    assert {number: sorted(each) for number, each in enumerate(won)} == held


def queue_of(client: DynamoClient, namespace: str, runner_id: str) -> list[str]:
    """Return what the store says a runner has."""
    return sorted(task.task_id for task in DynamoStore(client).queue(namespace).tasks_of(runner_id))


# Cancel against claim, finish and reap

Deed = Callable[[DynamoQueue, Task], object]


def claim(queue: DynamoQueue, task: Task) -> object:
    claimed = queue.claim(ME, NOW)
    assert claimed is None or claimed.task_id == task.task_id
    return claimed


def cancel(queue: DynamoQueue, task: Task) -> object:
    return queue.cancel(task.task_id, "by hand", NOW)


def finish(queue: DynamoQueue, task: Task) -> object:
    return queue.finish(task, COMPLETED, NOW)


def fail(queue: DynamoQueue, task: Task) -> object:
    return queue.finish(task, TaskEnd(TaskEvent.FAILED, "UNIT_TEST_FAILED"), NOW)


def reap(queue: DynamoQueue, task: Task) -> object:
    return queue.end_lost(task, LOST, NOW)


BECOMES: dict[Deed, TaskStatus] = {
    claim: TaskStatus.RUNNING,
    cancel: TaskStatus.CANCELLED,
    finish: TaskStatus.COMPLETE,
    fail: TaskStatus.ERROR,
    reap: TaskStatus.ERROR,
}
RUNNING_DEEDS: list[tuple[Deed, ...]] = list(itertools.permutations((cancel, finish, reap, fail)))


def attempt(deed: Deed, queue: DynamoQueue, task: Task) -> bool:
    """Do a deed; False if it was refused."""
    try:
        return deed(queue, task) is not None
    except ConflictError as error:
        assert error.reason_code in ("LOCK_MISMATCH", "TASK_NOT_ACTIVE")
        return False


@pytest.mark.spec("QUE-3", "QUE-6", "QUE-8")
def test_in_every_order_the_first_wins_and_final_stays_final(client: DynamoClient, namespace: str) -> None:
    queue = DynamoStore(client).queue(namespace)
    for number, deeds in enumerate(RUNNING_DEEDS):
        queue.enqueue(a_task(number, namespace))
        task = queue.claim(ME, NOW)
        assert task is not None
        assert task.task_id == f"TASK-{number:04d}"
        won = [deed for deed in deeds if attempt(deed, queue, task)]
        there = queue.get(task.task_id)
        assert there is not None
        assert (won, there.status) == ([deeds[0]], BECOMES[deeds[0]])
        assert not attempt(claim, queue, task)
    for number, deeds in enumerate(itertools.permutations((claim, cancel)), 100):
        queue.enqueue(a_task(number, namespace))
        task = queue.get(f"TASK-{number:04d}")
        assert task is not None
        won = [deed for deed in deeds if attempt(deed, queue, task)]
        there = queue.get(task.task_id)
        assert there is not None
        assert there.status is TaskStatus.CANCELLED
        assert won == ([claim, cancel] if deeds[0] is claim else [cancel])


@pytest.mark.spec("QUE-3", "QUE-6", "QUE-8")
@pytest.mark.parametrize("deeds", [(cancel, finish, reap, fail), (cancel, finish), (cancel, reap), (finish, reap)])
def test_at_the_same_instant_one_wins(client: DynamoClient, namespace: str, deeds: tuple[Deed, ...]) -> None:
    barrier = threading.Barrier(len(deeds))
    winners: Counter[str] = Counter()

    def go(deed: Deed, task: Task) -> bool:
        queue = DynamoStore(client).queue(namespace)
        barrier.wait(60)
        return attempt(deed, queue, task)

    with ThreadPoolExecutor(len(deeds)) as pool:
        for number in range(rounds(20, 60)):
            queue = DynamoStore(client).queue(namespace)
            queue.enqueue(a_task(number, namespace, request_id="RQ-1"))
            task = queue.claim(ME, NOW)
            assert task is not None
            did = list(pool.map(go, deeds, [task] * len(deeds)))
            [winner] = [deed for deed, has_won in zip(deeds, did, strict=True) if has_won]
            there = queue.get(task.task_id)
            assert there is not None
            assert there.status is BECOMES[winner]
            winners[str(winner)] += 1
    print(winners)


@pytest.mark.spec("QUE-5", "QUE-8")
def test_a_claim_and_a_cancel_at_the_same_instant_end_cancelled(client: DynamoClient, namespace: str) -> None:
    barrier = threading.Barrier(2)

    def go(deed: Deed, task: Task) -> bool:
        queue = DynamoStore(client).queue(namespace)
        barrier.wait(60)
        return attempt(deed, queue, task)

    queue = DynamoStore(client).queue(namespace)
    with ThreadPoolExecutor(2) as pool:
        for number in range(rounds(30, 100)):
            task = queue.enqueue(a_task(number, namespace, request_id="RQ-1"))
            _has_claimed, has_cancelled = pool.map(go, (claim, cancel), (task, task))
            there = queue.get(task.task_id)
            assert has_cancelled
            assert there is not None
            assert there.status is TaskStatus.CANCELLED
            assert not attempt(finish, queue, there)


@pytest.mark.spec("QUE-5")
def test_many_who_enqueue_for_one_request_get_one_task_in(client: DynamoClient, namespace: str) -> None:
    threads, requests = 8, rounds(10, 25)
    barrier = threading.Barrier(threads)

    def go(number: int, request: int) -> bool:
        queue = DynamoStore(client).queue(namespace)
        task = a_task(request * 100 + number, namespace, request_id=f"RQ-{request}")
        barrier.wait(60)
        try:
            queue.enqueue(task)
        except ConflictError as error:
            assert error.reason_code == "REQUEST_QUEUED"
            return False
        return True

    queue = DynamoStore(client).queue(namespace)
    with ThreadPoolExecutor(threads) as pool:
        for request in range(requests):
            assert sum(pool.map(go, range(threads), [request] * threads)) == 1
    live = [task.request_id for page in queue.pages() for task in page.tasks if not task.is_final]
    assert len(live) == len(set(live)) == requests


# Many claimers, many tasks


class CountingClient(FaultyClient):
    """Counts the claims that were lost."""

    def __init__(self, client: DynamoClient) -> None:
        super().__init__(client)
        self.lost = 0

    def call(self, operation: str, **params: Any) -> dict[str, Any]:
        try:
            return self.real.call(operation, **params)
        except ConditionFailedError:
            self.lost += 1  # one per thread: each has a client of its own
            raise


@pytest.mark.spec("QUE-5")
@pytest.mark.parametrize("is_anybodys", [False, True])
def test_eight_claimers_lose_few_races_and_keep_the_order(
    client: DynamoClient, namespace: str, is_anybodys: bool
) -> None:
    claimers, tasks = 8, rounds(200, 500)
    make = a_prompt if is_anybodys else a_task
    fill(client, (make(number, namespace) for number in range(tasks)))
    barrier, lock = threading.Barrier(claimers), threading.Lock()
    order: list[int] = []

    def go(number: int) -> int:
        mine = CountingClient(client)
        queue = DynamoStore(mine).queue(namespace)
        checkout = Checkout(f"host-{number}", "/srv/shop") if is_anybodys else HERE
        claimant = Claimant(f"runner-{number}", checkout)
        barrier.wait(60)
        while (task := queue.claim(claimant, NOW)) is not None:
            with lock:
                order.append(int(task.task_id[-4:]))
        return mine.lost

    with ThreadPoolExecutor(claimers) as pool:
        lost = sum(pool.map(go, range(claimers)))
    assert sorted(order) == list(range(tasks))
    print(f"lost races per claim: {lost / tasks:.3f}")
    assert lost / tasks < 0.5
    assert max(place - number for place, number in enumerate(order)) <= 100


@pytest.mark.spec("QUE-5", "QUE-9")
def test_thousands_of_tasks_elsewhere_change_nothing_of_a_claim(client: DynamoClient, namespace: str) -> None:
    def calls_of_a_claim() -> list[tuple[str, float, int]]:
        queue = DynamoStore(client).queue(namespace)
        queue.enqueue(a_task(1, namespace))
        with watched(client) as calls:
            task = queue.claim(ME, NOW)
        assert task is not None
        queue.finish(task, COMPLETED, NOW)
        return [(call.operation, call.cost, call.answer.get("ScannedCount", 0)) for call in calls]

    before = calls_of_a_claim()
    fill(client, (a_prompt(number, f"{namespace}-b") for number in range(rounds(2_000, 10_000))))
    namespace = f"{namespace}-c"
    assert calls_of_a_claim() == before
