"""What an older version's terminal left in the store (SPEC §0): ended, and never carried out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from aiflow.adapters.dynamo.client import DynamoClient
from aiflow.adapters.dynamo.queue import DynamoStore
from aiflow.domain.lifecycle import TaskStatus
from aiflow.domain.queue.task import is_delivered_again
from aiflow.errors import ConflictError
from left_by_terminals import AT_WORK, TERMINAL, leave_task
from queue_faults import watched
from task_builders import LOST, ME, NOW, a_task, later


@pytest.fixture
def client(prepared: Callable[[str], DynamoClient]) -> DynamoClient:
    return prepared("local")


@pytest.mark.spec("QUE-5", "QUE-7")
@pytest.mark.parametrize("owner", [TERMINAL, None])
def test_what_a_terminal_never_came_to_is_ended_and_not_carried_out(
    client: DynamoClient, namespace: str, owner: str | None
) -> None:
    leave_task(client, namespace, claimed_by=owner)
    queue = DynamoStore(client).queue(namespace)
    assert queue.claim(ME, NOW) is None
    assert queue.adopt(later(9)) == 0
    ended = queue.get("TASK-0001")
    assert ended is not None
    assert (ended.status, ended.error_message) == (TaskStatus.ERROR, f"RUNNER_LOST: {owner or 'terminal'}")
    assert (ended.successor, ended.run_id, ended.updated_at) == (None, None, later(9))
    assert (queue.claim(ME, NOW), queue.live_of("RQ-0001")) == (None, None)
    following = queue.enqueue(a_task(2, namespace, request_id="RQ-0001"))
    assert following.fence == 2


@pytest.mark.spec("QUE-5")
def test_it_stands_in_the_way_of_nobody_who_queues_its_request(client: DynamoClient, namespace: str) -> None:
    leave_task(client, namespace)
    queue = DynamoStore(client).queue(namespace)
    queue.enqueue(a_task(2, namespace, request_id="RQ-0001"))
    left, claimed = queue.get("TASK-0001"), queue.claim(ME, NOW)
    assert left is not None
    assert claimed is not None
    assert (left.reason_code, claimed.task_id) == ("RUNNER_LOST", "TASK-0002")


@pytest.mark.spec("QUE-7")
def test_one_at_work_is_its_terminals_until_a_reaper_ends_it_for_good(client: DynamoClient, namespace: str) -> None:
    leave_task(client, namespace, **AT_WORK)
    queue = DynamoStore(client).queue(namespace)
    assert (queue.adopt(NOW), queue.claim(ME, NOW)) == (0, None)
    with pytest.raises(ConflictError, match="REQUEST_QUEUED"):
        queue.enqueue(a_task(2, namespace, request_id="RQ-0001"))
    [task] = queue.tasks_of(TERMINAL)
    assert not is_delivered_again(task)
    assert queue.end_lost(task, LOST, NOW) is not None
    assert queue.enqueue(a_task(2, namespace, request_id="RQ-0001")).status is TaskStatus.QUEUED


@pytest.mark.parametrize(
    "changes", [{"is_private": "no"}, {"is_private": False}, {"is_private": None}, {"action": "of a newer version"}]
)
def test_nothing_else_is_taken_for_one(client: DynamoClient, namespace: str, changes: dict[str, Any]) -> None:
    leave_task(client, namespace, **changes)
    queue = DynamoStore(client).queue(namespace)
    is_adopted = "action" not in changes
    assert queue.adopt(NOW) == is_adopted
    claimed = queue.claim(ME, NOW)
    assert (claimed.task_id if claimed else None) == ("TASK-0001" if is_adopted else None)


@pytest.mark.spec("QUE-5", "PRF-2")
def test_where_none_was_left_looking_for_one_costs_nothing(client: DynamoClient, namespace: str) -> None:
    queue = DynamoStore(client).queue(namespace)
    queue.enqueue(a_task(1, namespace))
    with watched(client) as calls:
        queue.adopt(NOW)
    assert [call.operation for call in calls] == ["query"]
