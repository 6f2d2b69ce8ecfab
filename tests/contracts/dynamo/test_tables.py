"""The tables of the queue store (QUE-1): the seed's own, made if missing, used if there, refused if other."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from aiflow.adapters.dynamo.client import DynamoClient
from aiflow.adapters.dynamo.queue import DynamoStore
from aiflow.errors import EnvironmentProblemError
from dynamo import Dynamo
from queue_faults import watched
from task_builders import ME, NOW, a_task


def keys(*names: str) -> list[dict[str, str]]:
    """Write a key schema as the seed does."""
    return [{"AttributeName": name, "KeyType": kind} for name, kind in zip(names, ("HASH", "RANGE"), strict=False)]


def texts(*names: str) -> list[dict[str, str]]:
    return [{"AttributeName": name, "AttributeType": "S"} for name in names]


STATUS_INDEX = {
    "IndexName": "status-index",
    "KeySchema": keys("status", "created_at"),
    "Projection": {"ProjectionType": "ALL"},
}
SEED_QUEUE: dict[str, Any] = {
    "TableName": "pm-runner-queue",
    "KeySchema": keys("namespace", "task_id"),
    "GlobalSecondaryIndexes": [STATUS_INDEX],
    "AttributeDefinitions": texts("namespace", "task_id", "status", "created_at"),
}
SEED_RUNNERS: dict[str, Any] = {
    "TableName": "pm-runner-runners",
    "KeySchema": keys("namespace", "runner_id"),
    "AttributeDefinitions": texts("namespace", "runner_id"),
}
UNITS = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5}
ON_DEMAND = {"BillingMode": "PAY_PER_REQUEST"}


def shapes(dynamo: Dynamo) -> dict[str, Any]:
    """Look at all tables: name -> keys, and index -> keys and projection."""
    client, found = dynamo.client(), {}
    for name in client.list_tables()["TableNames"]:
        table = client.describe_table(TableName=name)["Table"]
        indexes = table.get("GlobalSecondaryIndexes", [])
        found[name] = {
            "keys": table["KeySchema"],
            "types": {each["AttributeType"] for each in table["AttributeDefinitions"]},
            **{each["IndexName"]: (each["KeySchema"], each["Projection"]["ProjectionType"]) for each in indexes},
        }
    return found


OURS = {
    "pm-runner-queue": {
        "keys": keys("namespace", "task_id"),
        "types": {"S"},
        "status-index": (keys("status", "created_at"), "ALL"),
        "ready-index": (keys("ready_pk", "ready_sk"), "KEYS_ONLY"),
    },
    "pm-runner-runners": {"keys": keys("namespace", "runner_id"), "types": {"S"}},
    "aiflow-guards": {"keys": keys("namespace", "request_id"), "types": {"S"}},
    "aiflow-prompts": {"keys": keys("namespace", "task_id"), "types": {"S"}},
}


@pytest.mark.spec("QUE-1")
def test_missing_tables_are_made_as_the_seed_says_and_looked_at_once(dynamo: Dynamo) -> None:
    client = dynamo.connect()
    store = DynamoStore(client)
    store.prepare()
    assert shapes(dynamo) == OURS
    with watched(client) as calls:
        store.prepare()
        assert calls == []
        DynamoStore(client).prepare()
    assert [call.operation for call in calls] == ["describe_table"] * 4


@pytest.mark.spec("QUE-1")
@pytest.mark.parametrize(("is_provisioned", "has_index"), [(False, True), (True, False)])
def test_tables_that_another_program_made_are_used(dynamo: Dynamo, is_provisioned: bool, has_index: bool) -> None:
    other = dynamo.client()
    capacity = {"ProvisionedThroughput": UNITS} if is_provisioned else ON_DEMAND
    index = {**STATUS_INDEX, **({"ProvisionedThroughput": UNITS} if is_provisioned else {})}
    queue_table = {**SEED_QUEUE, "GlobalSecondaryIndexes": [index]}
    if not has_index:
        del queue_table["GlobalSecondaryIndexes"]
        queue_table["AttributeDefinitions"] = texts("namespace", "task_id")
    other.create_table(**queue_table, **capacity)
    other.create_table(**SEED_RUNNERS, **capacity)
    theirs = {
        "namespace": {"S": "shop"},
        "task_id": {"S": "task-001"},
        "status": {"S": "COMPLETE"},
        "created_at": {"S": "2026-01-01T00:00:00.000Z"},
    }
    other.put_item(TableName="pm-runner-queue", Item=theirs)
    store = DynamoStore(dynamo.connect())
    store.prepare()
    assert shapes(dynamo) == OURS
    assert (
        other.get_item(TableName="pm-runner-queue", Key={n: theirs[n] for n in ("namespace", "task_id")})["Item"]
        == theirs
    )
    queue = store.queue("shop")
    queue.enqueue(a_task(1))
    assert queue.claim(ME, NOW) is not None


@pytest.mark.spec("QUE-1")
@pytest.mark.parametrize(
    ("table", "problem"),
    [
        (
            {**SEED_QUEUE, "KeySchema": keys("task_id"), "AttributeDefinitions": texts("task_id", "status", "created_at")},
            "expected the keys namespace (HASH, S), task_id (RANGE, S), found task_id (HASH, S)",
        ),
        (
            {**SEED_QUEUE, "KeySchema": keys("task_id", "namespace")},
            "expected the keys namespace (HASH, S), task_id (RANGE, S), found task_id (HASH, S), namespace (RANGE, S)",
        ),
        (
            {
                **SEED_RUNNERS,
                "AttributeDefinitions": [*texts("namespace"), {"AttributeName": "runner_id", "AttributeType": "N"}],
            },
            "expected the keys namespace (HASH, S), runner_id (RANGE, S), "
            "found namespace (HASH, S), runner_id (RANGE, N)",
        ),
        (
            {**SEED_QUEUE, "GlobalSecondaryIndexes": [{**STATUS_INDEX, "KeySchema": keys("status", "task_id")}],
             "AttributeDefinitions": texts("namespace", "task_id", "status")},
            "status-index: expected the keys status (HASH, S), created_at (RANGE, S), "
            "found status (HASH, S), task_id (RANGE, S)",
        ),
    ],
    ids=["one key", "swapped", "number", "index"],
)  # fmt: skip
def test_a_table_with_other_keys_is_refused_and_nothing_is_made(
    dynamo: Dynamo, table: dict[str, Any], problem: str
) -> None:
    dynamo.client().create_table(**table, **ON_DEMAND)
    before = shapes(dynamo)
    with pytest.raises(EnvironmentProblemError) as caught:
        DynamoStore(dynamo.connect()).prepare()
    assert caught.value.reason_code == "STORE_TABLE_MISMATCH"
    assert caught.value.context == {"table": table["TableName"], "endpoint": dynamo.endpoint, "problem": problem}
    assert shapes(dynamo) == before


@pytest.mark.spec("QUE-1")
@pytest.mark.parametrize("is_there", [False, True])
def test_many_who_prepare_at_once_make_the_tables_once(dynamo: Dynamo, is_there: bool) -> None:
    if is_there:
        dynamo.client().create_table(**SEED_QUEUE, **ON_DEMAND)
    client = dynamo.connect()
    stores = [DynamoStore(client) for _ in range(6)]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(DynamoStore.prepare, stores))
    assert shapes(dynamo) == OURS


class BusyClient(DynamoClient):
    """Passes calls on to a real client; tables show as just being changed, as AWS shows them, and one index perhaps."""

    def __init__(self, client: DynamoClient, index_status: str) -> None:
        self.name, self.help, self.slow = client.name, {}, None
        self.real, self.index_status = client, index_status

    def call(self, operation: str, **params: Any) -> dict[str, Any]:
        answer = self.real.call(operation, **params)
        if operation == "describe_table":
            answer["Table"]["TableStatus"] = "UPDATING"
            for index in answer["Table"].get("GlobalSecondaryIndexes", ()):
                index["IndexStatus"] = self.index_status
        return answer


@pytest.mark.spec("QUE-1")
def test_tables_that_somebody_changes_are_used_and_indexes_that_are_being_made_are_waited_for(
    dynamo: Dynamo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aiflow.adapters.dynamo.queue.tables.WAIT_SECONDS", 0.1)
    DynamoStore(dynamo.connect()).prepare()
    DynamoStore(BusyClient(dynamo.connect(), "UPDATING")).prepare()
    with pytest.raises(EnvironmentProblemError, match="is not ready after"):
        DynamoStore(BusyClient(dynamo.connect(), "CREATING")).prepare()
