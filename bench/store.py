"""A real DynamoDB Local to measure with, and databases of tasks in it; calls and what they cost are counted."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from aiflow.adapters.dynamo.client import ATTEMPTS, ConditionFailedError, DynamoClient, StoreAddress, bare_client
from aiflow.adapters.dynamo.queue import DynamoStore
from aiflow.adapters.dynamo.queue.calls import packed
from aiflow.adapters.dynamo.queue.items import item_of, ready_keys
from aiflow.domain.lifecycle import TaskStatus
from aiflow.domain.queue.task import Checkout, Task, TaskAction, new_task_id
from aiflow.ports.tasks import Claimant

ROOT = Path(__file__).parents[1]
BATCH = 25
REGION = "us-east-1"
OWN, FOREIGN = "own", "foreign"
HERE = Checkout("host", "/home/somebody/project")
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


class Metered(DynamoClient):
    """The product's client, as a runner has it, with its calls, their cost and its lost races counted.

    `is_metering` costs time itself. `bare` is what it makes its calls by, to be called without us.
    """

    def __init__(self, endpoint: str, key: str) -> None:
        address = StoreAddress(endpoint, REGION, key, key)
        super().__init__(address, bare_client(address), ATTEMPTS)
        self.bare = self._client
        self.is_metering = False
        self.costs: list[tuple[str, float]] = []
        self.calls = self.lost = 0

    def call(self, operation: str, **params: Any) -> dict[str, Any]:
        """Call, and take note."""
        self.calls += 1
        more = {"ReturnConsumedCapacity": "TOTAL"} if self.is_metering else {}
        try:
            answer = super().call(operation, **params, **more)
        except ConditionFailedError:
            self.lost += 1
            raise
        if self.is_metering:
            cost = f"{operation} {params['TableName']}"
            self.costs.append((cost, float(answer["ConsumedCapacity"]["CapacityUnits"])))
        return answer


@contextlib.contextmanager
def server() -> Iterator[str]:
    """Have a DynamoDB Local, in memory."""
    sys.path.append(str(ROOT / "tests"))
    import dynamo_keeper

    port = dynamo_keeper.free_port()
    with tempfile.TemporaryDirectory(prefix="aiflow-bench-") as scratch:
        command, cwd = dynamo_keeper.java_command(port, Path(scratch), "-inMemory")
        command.remove("-XX:TieredStopAtLevel=1")  # quick to start, but slower in the long run
        process = subprocess.Popen(command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            dynamo_keeper.wait_for(port, process)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait()


def task_number(number: int, namespace: str = OWN, **more: Any) -> Task:
    """Make a task of a request of its own."""
    at = BEGIN + timedelta(milliseconds=number)
    task_id = new_task_id(at, f"{number % 0xFFFFFF:06x}")
    return replace(Task(namespace, task_id, TaskAction.START, f"RQ-{number}", at, at, at, checkout=HERE), **more)


class Database:
    """One database of the server, prepared."""

    def __init__(self, endpoint: str, key: str, poll_seconds: float = 1.0) -> None:
        self.endpoint, self.key = endpoint, key
        self.client = Metered(endpoint, key)
        self.store = DynamoStore(self.client, poll_seconds)
        self.store.prepare()
        self.queue = self.store.queue(OWN)
        self.me = Claimant("runner-1", HERE)

    def fill(self, count: int) -> None:
        """Put in finished and queued tasks of ours, and foreign ones, `count` each."""
        ended = {"status": TaskStatus.COMPLETE, "claimed_by": "runner-0", "claim_token": "0" * 32}
        kinds: list[Callable[[int], Task]] = [
            lambda number: task_number(number, **ended),
            lambda number: task_number(count + number),
            lambda number: task_number(number, FOREIGN),
        ]

        def put(job: tuple[Callable[[int], Task], int]) -> None:
            make, first = job
            tasks = [make(number) for number in range(first, min(count, first + BATCH))]
            self._put(tasks)

        jobs = [(kind, first) for kind in kinds for first in range(0, count, BATCH)]
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(put, jobs))

    def enqueue(self, count: int) -> None:
        """Enqueue tasks as the product does."""
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(lambda number: self.queue.enqueue(task_number(number)), range(count)))

    def _put(self, tasks: list[Task]) -> None:
        items = [packed(item_of(task) | ({} if task.is_final else ready_keys(task))) for task in tasks]
        wanted: Any = {"pm-runner-queue": [{"PutRequest": {"Item": item}} for item in items]}
        while wanted:
            wanted = self.client.bare.batch_write_item(RequestItems=wanted)["UnprocessedItems"]

    def claim(self) -> Task:
        """Claim a task that is there."""
        task = self.queue.claim(self.me, datetime.now(UTC))
        assert task is not None
        return task
