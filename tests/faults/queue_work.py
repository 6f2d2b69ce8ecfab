"""A working day at a queue store: some put tasks in, some claim and finish them, and every execution is noted."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aiflow.adapters.dynamo.queue import DynamoStore
from aiflow.errors import AiflowError
from aiflow.ports.tasks import Claimant
from faults.queue_scenes import DONE, HERE, NOW, Scene, patiently


@dataclass
class Day:
    """What was done: `executed` is by the workers' own record, in the order of their beginning."""

    scene: Scene
    stores: list[DynamoStore]
    count: int
    pause_seconds: float = 0.0
    executed: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    errors: list[BaseException] = field(default_factory=list)

    def work(self, trouble: Callable[[], None] = lambda: None, seconds: float = 90) -> None:
        """Enqueue and work through all tasks, while the trouble goes on; returns when every task was executed."""
        self.until = time.monotonic() + seconds
        threads = [threading.Thread(target=self._guarded, args=(self._enqueue,))]
        for number, store in enumerate(self.stores):
            threads.append(threading.Thread(target=self._guarded, args=(self._execute, store, f"runner-{number}")))
        for thread in threads:
            thread.start()
        try:
            while any(thread.is_alive() for thread in threads) and not self.errors:
                trouble()
                time.sleep(0.01)
        finally:
            if self.errors:
                self.until = 0
            for thread in threads:
                thread.join()

    def check(self) -> None:
        """Nothing was lost, nothing was done twice, and every end was taken."""
        assert self.errors == []
        names = {f"TASK-{number}" for number in range(1, self.count + 1)}
        assert Counter(self.executed) == dict.fromkeys(names, 1)
        assert self.refused == []
        items = {item["task_id"]["S"]: item for item in self.scene.raw("pm-runner-queue")}
        assert set(items) == names
        assert {item["status"]["S"] for item in items.values()} == {"COMPLETE"}
        assert [guard for guard in self.scene.items()["aiflow-guards"] if "task_id" in guard] == []

    def _guarded(self, work: Callable[..., None], *args: Any) -> None:
        try:
            work(*args)
        except BaseException as error:  # noqa: BLE001 - told by the test, not by a thread
            self.errors.append(error)

    def _enqueue(self) -> None:
        queue = self.stores[0].queue(self.scene.namespace)
        for number in range(1, self.count + 1):
            task = self.scene.task(f"TASK-{number}", f"RQ-{number}")
            patiently(lambda task=task: queue.enqueue(task), 60)  # type: ignore[misc]
            time.sleep(self.pause_seconds)

    def _execute(self, store: DynamoStore, runner_id: str) -> None:
        queue, me = store.queue(self.scene.namespace), Claimant(runner_id, HERE)
        while len(self.executed) < self.count:
            assert time.monotonic() < self.until, "not done in time"
            task = patiently(lambda: queue.claim(me, NOW), 60)
            if task is None:
                time.sleep(0.02)
                continue
            self.executed.append(task.task_id)
            try:
                patiently(lambda task=task: queue.note_run(task, "RUN-20260101-000000-aaaaaa", NOW), 60)  # type: ignore[misc]
                patiently(lambda task=task: queue.finish(task, DONE, NOW), 60)  # type: ignore[misc]
            except AiflowError as error:
                self.refused.append(f"{task.task_id}: {error}")
