"""A queue with real runners: a checkout, the scripted agent, a real store, and the program working on its tasks."""

from __future__ import annotations

import json
import os
import subprocess
from datetime import UTC, datetime
from typing import Any

from aiflow.adapters.dynamo.client import StoreAddress, connect
from aiflow.adapters.dynamo.queue import DynamoStore
from aiflow.adapters.processes.runner_process import checkout_at
from aiflow.domain.queue.runner import Runner
from aiflow.domain.queue.task import Task, TaskAction, auto_run_guard, new_task_id, prompt_request_id
from aiflow.domain.request import Priority
from dynamo import REGION, Dynamo
from e2e.bench import Bench
from waiting import wait_until

NAMESPACE = "yard"
# Where a test is about the heartbeat, it is scaled down: a runner counts as lost after six seconds, gives up at 4.5.
TIMEOUT_SECONDS = 6
SHORT = {"AIFLOW_QUEUE_HEARTBEAT_TIMEOUT_SECONDS": str(TIMEOUT_SECONDS)}


def now() -> datetime:
    return datetime.now(UTC)


class Yard:
    """One checkout and the queue its runners work on."""

    def __init__(self, bench: Bench, dynamo: Dynamo) -> None:
        self.bench = bench
        address = StoreAddress(dynamo.endpoint, REGION, dynamo.key, dynamo.key)
        self.store = DynamoStore(connect(address), 0.1)
        self.store.prepare()
        self.queue = self.store.queue(NAMESPACE)
        self.records = self.store.runners(NAMESPACE)
        self.checkout = checkout_at(str(bench.root))
        self.processes: list[subprocess.Popen[str]] = []
        self.bench.aiflow.environ |= dynamo.environ | {
            "XDG_DATA_HOME": str(bench.state.parent / "data"),
            "AIFLOW_NAMESPACE": NAMESPACE,
            "AIFLOW_QUEUE_POLL_MS": "100",
            "AIFLOW_QUEUE_HEARTBEAT_TIMEOUT_SECONDS": "60",
        }

    def add(self, action: str = "start", request_id: str = "RQ-1", **more: Any) -> str:
        """Put a task of this checkout into the queue."""
        at = now()
        task_id = more.pop("task_id", new_task_id(at, os.urandom(3).hex()))
        task = Task(
            namespace=NAMESPACE,
            task_id=task_id,
            action=TaskAction(action),
            request_id=auto_run_guard(self.checkout) if action == "auto_run" else request_id,
            created_at=at,
            updated_at=at,
            place_at=at,
            priority=more.pop("priority", Priority.P2),
            checkout=more.pop("checkout", self.checkout),
            options=more.pop("options", {}),
        )
        return self.queue.enqueue(task, more.pop("prompt", "")).task_id

    def prompt(self, text: str, **more: Any) -> str:
        """Put a bare prompt into the queue, for whoever takes it."""
        while True:
            task_id = new_task_id(now(), os.urandom(3).hex())
            # As who enqueues it: a short id that another prompt has by chance is drawn again.
            if not self.queue.has_had(prompt_request_id(task_id)):
                break
        return self.add("prompt", prompt_request_id(task_id), task_id=task_id, checkout=None, prompt=text, **more)

    def task(self, task_id: str) -> Task:
        """A task as it is now."""
        found = self.queue.get(task_id)
        assert found is not None, task_id
        return found

    def ended(self, task_id: str) -> Task:
        """Wait until a task has ended; where nobody is left who could end it, that is the end of the wait."""
        wait_until(lambda: self.task(task_id).is_final or not self._is_worked_on)
        found = self.task(task_id)
        assert found.is_final, [each.communicate() for each in self.processes]
        return found

    @property
    def _is_worked_on(self) -> bool:
        """Whether a runner that was started here still runs; one that was started elsewhere may."""
        return not self.processes or any(each.poll() is None for each in self.processes)

    def runner(self, *args: str, **env: str) -> subprocess.Popen[str]:
        """Start a runner."""
        self.processes.append(self.bench.start("runner", "--json", *args, env=env))
        return self.processes[-1]

    def work(self, *args: str, **env: str) -> list[dict[str, Any]]:
        """Let a runner work until the queue is empty; returns what it told."""
        done = self.bench.aiflow("runner", "--once", "--json", *args, env=env)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def runners(self) -> list[Runner]:
        """The records of all runners, oldest first."""
        return sorted(self.records.all(), key=lambda each: each.started_at)
