"""The proxy of the fault tests does what its rules say, seen with a bare client: else those tests would prove nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError, ClientError

from dynamo import Dynamo
from faults.store_proxy import FOR_EVER, Fault, Rule, StoreProxy, store_proxy

TABLE = "tasks"
KEY = {"namespace": {"S": "n"}, "task_id": {"S": "1"}}


@pytest.fixture
def bare(dynamo: Dynamo) -> Any:
    """Give a client that goes straight to the store, with a table like the queue's."""
    names = ("namespace", "task_id", "ready_pk", "ready_sk")
    client = dynamo.client()
    client.create_table(
        TableName=TABLE,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in names],
        KeySchema=_keys("namespace", "task_id"),
        GlobalSecondaryIndexes=[
            {
                "IndexName": "ready-index",
                "KeySchema": _keys("ready_pk", "ready_sk"),
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
        ],
    )
    yield client
    client.close()


@pytest.fixture
def proxy(dynamo: Dynamo) -> Iterator[StoreProxy]:
    with store_proxy(dynamo.endpoint) as proxy:
        yield proxy


@pytest.fixture
def client(dynamo: Dynamo, proxy: StoreProxy) -> Iterator[Any]:
    """Give a client that goes through the proxy, and asks once."""
    client = Dynamo(proxy.endpoint, dynamo.key).client(retries={"total_max_attempts": 1})
    yield client
    client.close()


def _keys(first: str, second: str) -> list[dict[str, str]]:
    return [{"AttributeName": first, "KeyType": "HASH"}, {"AttributeName": second, "KeyType": "RANGE"}]


def put(client: Any, number: str = "1", **more: Any) -> Any:
    ready = {"ready_pk": {"S": "n#x"}, "ready_sk": {"S": f"P1#{number}"}}
    return client.put_item(TableName=TABLE, Item={**KEY, "task_id": {"S": number}, **ready}, **more)


def find(client: Any, **more: Any) -> Any:
    return client.query(
        TableName=TABLE,
        IndexName="ready-index",
        KeyConditionExpression="ready_pk = :pk",
        ExpressionAttributeValues={":pk": {"S": "n#x"}},
        **more,
    )


def found(client: Any, **more: Any) -> list[str]:
    return [item["task_id"]["S"] for item in find(client, **more)["Items"]]


def is_there(bare: Any, number: str = "1") -> bool:
    return "Item" in bare.get_item(TableName=TABLE, Key={**KEY, "task_id": {"S": number}}, ConsistentRead=True)


def test_without_a_rule_everything_goes_through_and_is_noted(bare: Any, client: Any, proxy: StoreProxy) -> None:
    put(client)
    assert found(client) == ["1"]
    assert [(call.operation, call.table, call.index_name, call.fault) for call in proxy.calls] == [
        ("PutItem", TABLE, "", None),
        ("Query", TABLE, "ready-index", None),
    ]
    with pytest.raises(client.exceptions.ConditionalCheckFailedException):
        put(client, ConditionExpression="attribute_not_exists(task_id)")


@pytest.mark.parametrize(
    ("fault", "is_done"),
    [
        (Fault.LOST, True),
        (Fault.REFUSED, False),
        (Fault.ERROR_BEFORE, False),
        (Fault.ERROR_AFTER, True),
        (Fault.THROTTLED, False),
    ],
)
def test_a_call_fails_before_or_after_it_is_done(
    bare: Any, client: Any, proxy: StoreProxy, fault: Fault, is_done: bool
) -> None:
    proxy.rules.append(Rule(fault, "PutItem", skip=1))
    put(client, "0")
    with pytest.raises((BotoCoreError, ClientError)) as raised:
        put(client)
    assert isinstance(raised.value, BotoCoreError) is (fault in (Fault.LOST, Fault.REFUSED))
    assert is_there(bare) is is_done
    if isinstance(raised.value, ClientError):
        is_throttled = fault is Fault.THROTTLED
        code = "ProvisionedThroughputExceededException" if is_throttled else "InternalServerError"
        assert raised.value.response["Error"]["Code"] == code
    put(client)
    assert is_there(bare)
    assert proxy.done(fault) == 1


def test_a_rule_is_for_one_operation_of_one_table(bare: Any, client: Any, proxy: StoreProxy) -> None:
    proxy.rules += [Rule(Fault.REFUSED, "GetItem", count=FOR_EVER), Rule(Fault.REFUSED, table="other", count=FOR_EVER)]
    put(client)
    assert found(client) == ["1"]
    with pytest.raises(BotoCoreError):
        client.get_item(TableName=TABLE, Key=KEY)


def test_an_answer_can_be_late(bare: Any, client: Any, proxy: StoreProxy) -> None:
    proxy.rules.append(Rule(Fault.DELAYED, "PutItem", seconds=0.2))
    begin = time.monotonic()
    put(client)
    assert time.monotonic() - begin >= 0.2


def test_what_happens_by_chance_is_the_same_with_the_same_seed(bare: Any, dynamo: Dynamo) -> None:
    seen = []
    for seed in (1, 1, 2):
        with store_proxy(dynamo.endpoint, Rule(Fault.THROTTLED, count=FOR_EVER, chance=0.5), seed=seed) as proxy:
            client = Dynamo(proxy.endpoint, dynamo.key).client(retries={"total_max_attempts": 1})
            for _ in range(20):
                _try(lambda client=client: put(client))  # type: ignore[misc]
            client.close()
            seen.append([call.fault for call in proxy.calls])
    assert seen[0] == seen[1] != seen[2]


def test_the_store_can_be_down_for_a_while_and_come_back(bare: Any, client: Any, proxy: StoreProxy) -> None:
    put(client)
    proxy.down(0.3)
    begin = time.monotonic()
    failures = 0
    while not _try(lambda: put(client, "2")):
        failures += 1
        time.sleep(0.02)
    assert failures > 1
    assert time.monotonic() - begin > 0.2
    assert is_there(bare, "2")


def test_index_entries_can_be_late_by_queries_or_by_time(bare: Any, client: Any, proxy: StoreProxy) -> None:
    put(client)
    proxy.index.late_queries = 2
    assert [found(client), found(client), found(client)] == [[], [], ["1"]]
    proxy.index.late_queries, proxy.index.late_seconds = 0, 0.2
    put(client, "2")
    assert "2" not in found(client)
    time.sleep(0.2)
    assert found(client) == ["1", "2"]


def test_index_entries_can_be_missing_until_told_otherwise(bare: Any, client: Any, proxy: StoreProxy) -> None:
    put(client)
    put(client, "2")
    proxy.index.hide("1")
    assert [found(client), found(client)] == [["2"], ["2"]]
    proxy.index.show("1")
    assert found(client) == ["1", "2"]


def test_an_index_entry_can_come_back_in_its_place_and_on_its_page_only(
    bare: Any, client: Any, proxy: StoreProxy
) -> None:
    for number in "123":
        put(client, number)
    assert found(client) == ["1", "2", "3"]
    bare.delete_item(TableName=TABLE, Key={**KEY, "task_id": {"S": "2"}})
    assert found(client) == ["1", "3"]
    proxy.index.resurrect("2")
    assert found(client) == ["1", "2", "3"]
    first = find(client, Limit=1)
    assert [item["task_id"]["S"] for item in first["Items"]] == ["1"]
    assert found(client, ExclusiveStartKey=first["LastEvaluatedKey"]) == ["2", "3"]


def test_a_page_can_be_empty_with_something_behind_it(bare: Any, client: Any, proxy: StoreProxy) -> None:
    put(client)
    proxy.index.empty_pages = 2
    first = find(client)
    assert first["Items"] == []
    second = find(client, ExclusiveStartKey=first["LastEvaluatedKey"])
    assert second["Items"] == []
    assert found(client, ExclusiveStartKey=second["LastEvaluatedKey"]) == ["1"]


def test_entries_can_flicker_by_chance(bare: Any, client: Any, proxy: StoreProxy) -> None:
    for number in "1234":
        put(client, number)
    assert len(found(client)) == 4
    bare.delete_item(TableName=TABLE, Key={**KEY, "task_id": {"S": "4"}})
    proxy.index.late_chance = proxy.index.lingering_chance = 0.5
    answers = {tuple(found(client)) for _ in range(20)}
    assert len(answers) > 4
    assert {each for answer in answers for each in answer} == {"1", "2", "3", "4"}


def _try(call: Callable[[], Any]) -> bool:
    try:
        call()
    except (BotoCoreError, ClientError):
        return False
    return True
