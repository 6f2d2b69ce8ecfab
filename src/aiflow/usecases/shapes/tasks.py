"""Tasks, runners and namespaces as plain data (SPEC §11, §13), the same for CLI, API and UI."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from aiflow.domain.lifecycle import TaskStatus
from aiflow.domain.queue.runner import RunnerStatus, is_alive, is_fresh
from aiflow.domain.queue.task import TaskAction
from aiflow.domain.queue.why_waiting import QueueScene, TaskStanding, standing_of
from aiflow.messages.commands import as_plain, command_line
from aiflow.usecases.shapes.backlog import ENGLISH
from aiflow.usecases.shapes.errors import error_shape
from aiflow.usecases.shapes.runs import finding_shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from aiflow.domain.health import Finding
    from aiflow.domain.queue.runner import Runner
    from aiflow.domain.queue.task import Checkout, Task
    from aiflow.errors import AiflowError
    from aiflow.messages import Texts

HELD_UP = "held_up"


def task_shape(task: Task, scene: QueueScene | None = None) -> dict[str, Any]:
    """One task; `standing` says why it is not taken, or who works on it, until it has ended."""
    standing = standing_of(task, scene) if scene is not None else None
    way = scene.ways.get(task.task_id) if scene is not None else None
    return {
        "namespace": task.namespace,
        "task_id": task.task_id,
        "status": task.status.value,
        "action": task.action.value,
        "request_id": None if task.action is TaskAction.AUTO_RUN else task.request_id,
        "run_id": task.run_id,
        "priority": task.priority.value,
        "checkout": checkout_shape(task.checkout) if task.checkout else None,
        "prompt": task.prompt or None,
        "prompt_bytes": task.prompt_bytes,
        "options": dict(task.options),
        "claimed_by": task.claimed_by,
        "fence": task.fence,
        "reason_code": task.reason_code,
        "error_message": task.error_message,
        "predecessor": task.predecessor,
        "successor": task.successor,
        "created_at": task.created_at.isoformat(),
        "updated_at": task.updated_at.isoformat(),
        "next_command": command_line(way.action) if way else None,
        "standing": standing_shape(standing) if standing else None,
    }


def task_list(
    tasks: Iterable[tuple[Task, QueueScene]], namespace: str | None, next_start: str | None
) -> dict[str, Any]:
    """`queue list --json`: a page of tasks; of all namespaces none is named."""
    return {
        "namespace": namespace,
        "tasks": [task_shape(task, scene) for task, scene in tasks],
        "next_start": next_start,
    }


def shown_task_shape(task: Task, scene: QueueScene, prompt: str) -> dict[str, Any]:
    """`queue show --json`: one task with all of its prompt."""
    return {**task_shape(task, scene), "prompt": prompt or None}


def added_shape(
    tasks: Iterable[tuple[Task, bool]],
    scene: QueueScene | None,
    refused: Iterable[AiflowError],
    foreseen: Iterable[Finding],
    texts: Texts,
) -> dict[str, Any]:
    """`queue add --json`: what is queued, what was refused, and what will keep runners from taking it."""
    return {
        "tasks": [{**task_shape(task, scene), "is_new": is_new} for task, is_new in tasks],
        "refused": [error_shape(error, texts)["error"] for error in refused],
        "warnings": [finding_shape(each, ENGLISH) for each in foreseen],
    }


def cancelled_shape(tasks: Iterable[tuple[Task, bool]], refused: Iterable[AiflowError], texts: Texts) -> dict[str, Any]:
    """`queue cancel --json`: cancelled tasks, each with whether its runner released it, and what could not be."""
    return {
        "tasks": [{**task_shape(task), "is_released": is_released} for task, is_released in tasks],
        "refused": [error_shape(error, texts)["error"] for error in refused],
    }


def standing_shape(standing: TaskStanding) -> dict[str, Any]:
    """The standing of an unfinished task: a code, its facts, and a sentence."""
    facts = {name: _plain(value) for name, value in standing.facts.items()}
    return {"code": standing.code.value, "detail": ENGLISH(f"standing.{standing.code}", **facts), "facts": facts}


def checkout_shape(checkout: Checkout) -> dict[str, str]:
    """One checkout."""
    return {"host": checkout.host, "root": checkout.root}


def runner_shape(runner: Runner, now: datetime, timeout_seconds: float, *, is_gone: bool = False) -> dict[str, Any]:
    """One runner; `state` is what its record and its heartbeat say together, `held_up` why it takes nothing."""
    state = runner_state(runner, now, timeout_seconds, is_gone=is_gone)
    return {
        "namespace": runner.namespace,
        "runner_id": runner.runner_id,
        "is_alive": not is_gone and is_alive(runner, now, timeout_seconds),
        "state": state,
        "held_up": runner.held_up if state == HELD_UP else None,
        "status": runner.status.value,
        "task_id": runner.task_id,
        "checkout": checkout_shape(runner.checkout),
        "pid": runner.pid,
        "version": runner.version or None,
        "started_at": runner.started_at.isoformat(),
        "last_heartbeat": runner.last_heartbeat.isoformat(),
    }


def runner_list(runners: Iterable[tuple[Runner, bool]], now: datetime, timeout_seconds: float) -> dict[str, Any]:
    """`runners --json`: runners, each with whether its process is provably gone."""
    return {"runners": [runner_shape(each, now, timeout_seconds, is_gone=is_gone) for each, is_gone in runners]}


def runner_state(runner: Runner, now: datetime, timeout_seconds: float, *, is_gone: bool = False) -> str:
    """Return the state of a runner in one word: working, idle, held up, stopping, stopped, dead, silent."""
    if runner.is_at_rest:
        return "stopped"
    if is_gone:
        return "dead"
    if not is_fresh(runner, now, timeout_seconds):
        return "silent"
    if runner.status is RunnerStatus.STOPPED:
        return "stopping"
    if runner.task_id:
        return "working"
    return HELD_UP if runner.held_up else "idle"


def counts_shape(namespace: str, counts: Mapping[TaskStatus, int]) -> dict[str, Any]:
    """The tasks of one namespace, counted."""
    by_status = {status.value: counts.get(status, 0) for status in TaskStatus}
    return {"namespace": namespace, "counts": by_status, "total": sum(by_status.values())}


def namespaces_shape(
    found: Mapping[str, Mapping[TaskStatus, int]], alive: Iterable[Runner], current: str
) -> list[dict[str, Any]]:
    """Every namespace that has tasks or runners, and ours."""
    living = [runner.namespace for runner in alive]
    names = sorted({*found, *living, current})
    return [
        {**counts_shape(name, found.get(name, {})), "runners_alive": living.count(name), "is_current": name == current}
        for name in names
    ]


def _plain(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else as_plain(value)
