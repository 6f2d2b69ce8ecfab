"""Tasks, runners and checkouts for tests of the queue."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from aiflow.domain.lifecycle import TaskEvent
from aiflow.domain.queue.runner import Runner
from aiflow.domain.queue.task import Checkout, Task, TaskAction, TaskEnd, prompt_request_id
from aiflow.ports.tasks import Claimant

NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
HERE = Checkout("alpha", "/srv/shop")
THERE = Checkout("beta", "/srv/shop")
ME = Claimant("runner-me", HERE)
YOU = Claimant("runner-you", HERE)
ELSEWHERE = Claimant("runner-elsewhere", THERE)

# How often a queue of the tests looks at what anybody may take.
POLL_SECONDS = 0.02

COMPLETED = TaskEnd(TaskEvent.COMPLETED)
LOST = TaskEnd(TaskEvent.FAILED, "RUNNER_LOST: no heartbeat")


def later(seconds: float) -> datetime:
    """Return a moment after the beginning of the test."""
    return NOW + timedelta(seconds=seconds)


def a_task(number: int = 1, namespace: str = "shop", **changes: Any) -> Task:
    """Make a task of the checkout HERE, the older the smaller its number."""
    at = later(number)
    facts: dict[str, Any] = {
        "action": TaskAction.START,
        "request_id": f"RQ-{number:04d}",
        "created_at": at,
        "updated_at": at,
        "place_at": at,
        "checkout": HERE,
        **changes,
    }
    return Task(namespace=namespace, task_id=facts.pop("task_id", f"TASK-{number:04d}"), **facts)


def a_prompt(number: int = 1, namespace: str = "shop", **changes: Any) -> Task:
    """Make the task of a bare prompt, which anybody may take."""
    task_id = changes.pop("task_id", f"TASK-{number:04d}")
    facts = {"action": TaskAction.PROMPT, "request_id": prompt_request_id(task_id), "checkout": None, **changes}
    return a_task(number, namespace, task_id=task_id, **facts)


def a_runner(runner_id: str = ME.runner_id, namespace: str = "shop", **changes: Any) -> Runner:
    """Make a runner's record."""
    facts: dict[str, Any] = {"checkout": HERE, "started_at": NOW, "last_heartbeat": NOW, **changes}
    return Runner(namespace=namespace, runner_id=runner_id, **facts)
