"""Tasks and runners as items of the store (QUE-3): the seed's fields under the seed's names, ours beside them.

Items are kept small: a task's is written once more for each index at every change. What is usual is left out. Items
that another program wrote with the seed's fields only are read as far as they go.
"""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from aiflow.domain.lifecycle import TaskStatus
from aiflow.domain.queue.runner import Runner, RunnerStatus
from aiflow.domain.queue.task import (
    MOST_LOSSES,
    Checkout,
    Task,
    TaskAction,
    moment,
    place_key,
    prompt_request_id,
    stamp,
)
from aiflow.domain.request import DEFAULT_PRIORITY, Priority

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiflow.adapters.dynamo.queue.calls import Item

ANYBODY = "*"
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
# What another program calls a session is no run of ours.
_RUN_ID = re.compile(r"RUN-\d{8}-\d{6}-[0-9a-f]{6}")


def ready_partition(namespace: str, checkout: Checkout | None) -> str:
    """Return the partition of the ready-index that a checkout's tasks are in, or those that anybody may take."""
    return f"{namespace}#{hashlib.sha256(checkout.id.encode()).hexdigest()[:12] if checkout else ANYBODY}"


def ready_keys(task: Task) -> dict[str, str]:
    """Return what makes a queued task findable."""
    return {"ready_pk": ready_partition(task.namespace, task.checkout), "ready_sk": place_key(task)}


def item_of(task: Task) -> Item:
    """Write a task as an item, without its ready keys."""
    whole = {
        "namespace": task.namespace,
        "task_id": task.task_id,
        "task_group_id": task.request_id,
        "session_id": task.run_id,
        "status": task.status,
        "prompt": task.prompt,
        "created_at": stamp(task.created_at),
        "updated_at": stamp(task.updated_at),
        "error_message": task.error_message,
        "claimed_by": task.claimed_by,
        "claim_token": task.claim_token,
        "fence": task.fence,
        "action": task.action,
        "priority": task.priority,
        "place_at": None if task.place_at == task.created_at else stamp(task.place_at),
        "checkout_id": task.checkout.id if task.checkout else None,
        "prompt_bytes": None if task.is_prompt_whole else task.prompt_bytes,
        "options": dict(task.options) or None,
        "predecessor": task.predecessor,
        "successor": task.successor,
        "losses": task.losses or None,
    }
    return {name: value for name, value in whole.items() if value is not None}


def task_of(item: Item) -> Task:
    """Read a task; one of another program is a prompt that any runner may take, with a request of its own."""
    created_at = _moment(item.get("created_at"))
    prompt = _text(item, "prompt") or ""
    task_id = item["task_id"]
    is_ours = "action" in item
    run_id = _text(item, "session_id")
    return Task(
        namespace=item["namespace"],
        task_id=task_id,
        action=TaskAction(item["action"]) if is_ours else TaskAction.PROMPT,
        request_id=_text(item, "request_id")
        or (is_ours and _text(item, "task_group_id"))
        or prompt_request_id(task_id),
        created_at=created_at,
        updated_at=_moment(item.get("updated_at")),
        place_at=_moment(item["place_at"]) if "place_at" in item else created_at,
        status=TaskStatus(item["status"]),
        priority=_priority(item),
        checkout=Checkout.parse(_text(item, "checkout_id") or ""),
        prompt=prompt,
        prompt_bytes=_number(item, "prompt_bytes", len(prompt.encode())),
        options=_options(item),
        run_id=run_id if run_id and _RUN_ID.fullmatch(run_id) else None,
        claimed_by=_text(item, "claimed_by"),
        claim_token=_text(item, "claim_token"),
        fence=_number(item, "fence", 0),
        error_message=_text(item, "error_message"),
        predecessor=_text(item, "predecessor"),
        successor=_text(item, "successor"),
        # A terminal's work is never handed to a runner.
        losses=MOST_LOSSES if is_of_terminal(item) else _number(item, "losses", 0),
    )


def is_of_terminal(item: Item) -> bool:
    """Return whether an item is a task that a terminal of an older version recorded for itself."""
    return item.get("is_private") is True


def is_readable(item: Item) -> bool:
    """Return whether an item is a task we understand: another program or version may keep other things beside them."""
    is_known = _text(item, "status") in frozenset(TaskStatus)
    return is_known and ("action" not in item or _text(item, "action") in frozenset(TaskAction))


def item_of_runner(runner: Runner) -> Item:
    """Write a runner's record as an item."""
    whole = {
        "namespace": runner.namespace,
        "runner_id": runner.runner_id,
        "last_heartbeat": stamp(runner.last_heartbeat),
        "started_at": stamp(runner.started_at),
        "status": runner.status,
        "project_root": runner.checkout.root,
        "host": runner.checkout.host,
        "beats": runner.beats,
        "task_id": runner.task_id,
        "pid": runner.pid,
        "boot_id": runner.boot_id,
        "pid_namespace": runner.pid_namespace,
        "machine_id": runner.machine_id,
        "process_started_at": runner.process_started_at,
        "version": runner.version,
        "held_up": runner.held_up,
    }
    return {name: value for name, value in whole.items() if value is not None}


def runner_of(item: Item) -> Runner:
    """Read a runner's record; another program's heartbeats are distinguished by their time."""
    last_heartbeat = _moment(item.get("last_heartbeat"))
    return Runner(
        namespace=item["namespace"],
        runner_id=item["runner_id"],
        checkout=Checkout(_text(item, "host") or "", _text(item, "project_root") or ""),
        started_at=_moment(item.get("started_at")),
        last_heartbeat=last_heartbeat,
        status=RunnerStatus.STOPPED if item.get("status") == RunnerStatus.STOPPED else RunnerStatus.RUNNING,
        beats=_number(item, "beats", int(last_heartbeat.timestamp() * 1e6)),
        task_id=_text(item, "task_id"),
        pid=_number(item, "pid", 0) or None,
        boot_id=_text(item, "boot_id"),
        pid_namespace=_text(item, "pid_namespace"),
        machine_id=_text(item, "machine_id"),
        process_started_at=item.get("process_started_at"),
        version=_text(item, "version") or "",
        held_up=_text(item, "held_up"),
    )


def _moment(text: object) -> datetime:
    """Read a time that another program may have written anyhow."""
    try:
        return moment(str(text)).astimezone(UTC)
    except (ValueError, OverflowError):
        return LONG_AGO


def _text(item: Mapping[str, Any], name: str) -> str | None:
    held = item.get(name)
    return held if isinstance(held, str) and held else None


def _number(item: Mapping[str, Any], name: str, usual: int) -> int:
    held = item.get(name)
    return held if isinstance(held, int) and not isinstance(held, bool) else usual


def _priority(item: Mapping[str, Any]) -> Priority:
    """Read a priority; what another program calls one need not be one of ours."""
    try:
        return Priority(_text(item, "priority") or DEFAULT_PRIORITY)
    except ValueError:
        return DEFAULT_PRIORITY


def _options(item: Mapping[str, Any]) -> dict[str, str]:
    held = item.get("options")
    return {name: value for name, value in held.items() if isinstance(value, str)} if isinstance(held, dict) else {}
