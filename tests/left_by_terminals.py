"""What older versions put into a shared store for a run in a terminal, item by item as they wrote it."""

from __future__ import annotations

from typing import Any

from aiflow.adapters.dynamo.client import DynamoClient
from aiflow.adapters.dynamo.queue.calls import packed
from aiflow.domain.queue.task import Checkout, stamp
from task_builders import HERE, NOW

TERMINAL = "alpha-4711-c0ffee"
AT_WORK: dict[str, Any] = {
    "status": "RUNNING",
    "claim_token": "0123456789abcdef",
    "session_id": "RUN-20260102-030405-abcdef",
}


def leave_task(
    client: DynamoClient, namespace: str, number: int = 1, checkout: Checkout = HERE, **changes: Any
) -> dict[str, Any]:
    """Leave a terminal's task and its guard; None takes an attribute out."""
    task_id, request_id = f"TASK-{number:04d}", changes.pop("task_group_id", f"RQ-{number:04d}")
    item = {
        "namespace": namespace,
        "task_id": task_id,
        "task_group_id": request_id,
        "status": "QUEUED",
        "prompt": "",
        "created_at": stamp(NOW),
        "updated_at": stamp(NOW),
        "claimed_by": TERMINAL,
        "fence": 1,
        "action": "start",
        "priority": "P1",
        "checkout_id": checkout.id,
        "is_private": True,
        **changes,
    }
    item = {name: value for name, value in item.items() if value is not None}
    guard = {"namespace": namespace, "request_id": request_id, "task_id": task_id, "fence": 1}
    client.call("put_item", TableName="aiflow-guards", Item=packed(guard))
    client.call("put_item", TableName="pm-runner-queue", Item=packed(item))
    return item


def leave_record(client: DynamoClient, namespace: str, checkout: Checkout = HERE, **changes: Any) -> None:
    """Leave a terminal's record; at rest, unless told otherwise."""
    item = {
        "namespace": namespace,
        "runner_id": TERMINAL,
        "last_heartbeat": stamp(NOW),
        "started_at": stamp(NOW),
        "status": "stopped",
        "project_root": checkout.root,
        "host": checkout.host,
        "beats": 7,
        "version": "0.1.0",
        "is_terminal": True,
        **changes,
    }
    client.call("put_item", TableName="pm-runner-runners", Item=packed(item))
