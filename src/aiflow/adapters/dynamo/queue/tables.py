"""The tables (QUE-1): made if missing, checked if there, given the indexes they lack; never changed otherwise."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aiflow.adapters.dynamo.client import NoTableError, TableInUseError
from aiflow.errors import AiflowError, EnvironmentProblemError
from aiflow.messages.details import words

if TYPE_CHECKING:
    from aiflow.adapters.dynamo.client import DynamoClient

QUEUE = "pm-runner-queue"
RUNNERS = "pm-runner-runners"
GUARDS = "aiflow-guards"
PROMPTS = "aiflow-prompts"
READY_INDEX = "ready-index"

# An index of a table with many items is filled by the store first.
WAIT_SECONDS = 600.0
_FIRST_LOOK_SECONDS = 0.02
_LOOK_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Index:
    """A global secondary index: two keys, all texts."""

    name: str
    hash_key: str
    range_key: str
    projection: str

    @property
    def definition(self) -> dict[str, Any]:
        """What is sent to the store."""
        keys = _key_schema(self.hash_key, self.range_key)
        return {"IndexName": self.name, "KeySchema": keys, "Projection": {"ProjectionType": self.projection}}


@dataclass(frozen=True, slots=True)
class TableShape:
    """A table as it must be: two keys, all texts, and its indexes."""

    name: str
    hash_key: str
    range_key: str
    indexes: tuple[Index, ...] = ()


SHAPES = (
    TableShape(
        QUEUE,
        "namespace",
        "task_id",
        (
            Index("status-index", "status", "created_at", "ALL"),
            # There only while a task waits, so finding the next one costs the same however large the table is (PRF-2).
            Index(READY_INDEX, "ready_pk", "ready_sk", "KEYS_ONLY"),
        ),
    ),
    TableShape(RUNNERS, "namespace", "runner_id"),
    TableShape(GUARDS, "namespace", "request_id"),
    TableShape(PROMPTS, "namespace", "task_id"),
)


def prepare(client: DynamoClient) -> None:
    """Make every table that is missing, and check those that are there."""
    found = [(shape, _describe(client, shape.name)) for shape in SHAPES]
    # All are looked at before anything is made: a store that is not for us stays as it is.
    for shape, table in found:
        if table is not None:
            _check(client, shape, table)
    for shape, table in found:
        if table is None:
            _create(client, shape)
    for shape, table in found:
        _settle(client, shape, table)


def check(client: DynamoClient) -> tuple[str, ...]:
    """Check the tables that are there and return the names of those that are not; makes nothing."""
    missing: list[str] = []
    for shape in SHAPES:
        found = _describe(client, shape.name)
        if found is None:
            missing.append(shape.name)
        else:
            _check(client, shape, found)
    return tuple(missing)


def _settle(client: DynamoClient, shape: TableShape, found: dict[str, Any] | None) -> None:
    """Look at a table until it is as it must be; every look may show what another process did meanwhile."""
    until, pause = time.monotonic() + WAIT_SECONDS, _FIRST_LOOK_SECONDS
    while True:
        found = found or _describe(client, shape.name)
        if found is None:
            _create(client, shape)
        else:
            _check(client, shape, found)
            missing = [index for index in shape.indexes if index.name not in _indexes(found)]
            if not missing and _is_usable(shape, found):
                return
            if missing and _is_active(found):
                _add_index(client, shape, found, missing[0])
        if time.monotonic() > until:
            problem = words("store_problem.not_ready", table=shape.name, seconds=f"{WAIT_SECONDS:.0f}")
            told = {"endpoint": client.name, "problem": problem, **client.help}
            raise EnvironmentProblemError(reason_code="STORE_UNREACHABLE", **told)
        if pause >= 1 and client.slow is not None:
            client.slow()
        time.sleep(pause)
        found, pause = None, min(_LOOK_SECONDS, pause * 2)


def _describe(client: DynamoClient, name: str) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = client.call("describe_table", TableName=name)["Table"]
    except NoTableError:
        return None
    return found


def _create(client: DynamoClient, shape: TableShape) -> None:
    """Make a table; another process that does so at the same time is as good."""
    names = [shape.hash_key, shape.range_key]
    names += [key for index in shape.indexes for key in (index.hash_key, index.range_key)]
    params: dict[str, Any] = {"GlobalSecondaryIndexes": [index.definition for index in shape.indexes]}
    try:
        client.call(
            "create_table",
            TableName=shape.name,
            KeySchema=_key_schema(shape.hash_key, shape.range_key),
            AttributeDefinitions=_text_attributes(*names),
            BillingMode="PAY_PER_REQUEST",
            **(params if shape.indexes else {}),
        )
    except TableInUseError:
        return


def _add_index(client: DynamoClient, shape: TableShape, found: dict[str, Any], index: Index) -> None:
    """Add an index to a table that another program made, with that table's own capacity."""
    definition = index.definition
    capacity = found.get("ProvisionedThroughput", {})
    units = {name: capacity.get(name, 0) for name in ("ReadCapacityUnits", "WriteCapacityUnits")}
    if all(units.values()):
        definition["ProvisionedThroughput"] = units
    added = {index.hash_key, index.range_key} - {each["AttributeName"] for each in found["AttributeDefinitions"]}
    try:
        client.call(
            "update_table",
            TableName=shape.name,
            AttributeDefinitions=found["AttributeDefinitions"] + _text_attributes(*sorted(added)),
            GlobalSecondaryIndexUpdates=[{"Create": definition}],
        )
    except TableInUseError:
        return
    except AiflowError:
        # Another process may have been quicker: then the store calls ours invalid, or one too many at a time.
        now = _describe(client, shape.name)
        if now is None or (index.name not in _indexes(now) and _is_active(now)):
            raise


def _check(client: DynamoClient, shape: TableShape, found: dict[str, Any]) -> None:
    """Raise STORE_TABLE_MISMATCH if a table, or an index that we need, has other keys."""
    indexes = _indexes(found)
    wanted = [(shape.name, found, shape.hash_key, shape.range_key)]
    wanted += [
        (index.name, indexes[index.name], index.hash_key, index.range_key)
        for index in shape.indexes
        if index.name in indexes
    ]
    types = {each["AttributeName"]: each["AttributeType"] for each in found["AttributeDefinitions"]}
    for name, keyed, hash_key, range_key in wanted:
        expected = f"{hash_key} (HASH, S), {range_key} (RANGE, S)"
        keys = sorted(keyed["KeySchema"], key=lambda key: str(key["KeyType"]))
        is_so = ", ".join(
            f"{key['AttributeName']} ({key['KeyType']}, {types.get(key['AttributeName'])})" for key in keys
        )
        if is_so != expected:
            key = "store_problem.keys" if name == shape.name else "store_problem.index_keys"
            problem = words(key, index=name, expected=expected, found=is_so)
            raise EnvironmentProblemError(
                reason_code="STORE_TABLE_MISMATCH", table=shape.name, endpoint=client.name, problem=problem
            )


def _indexes(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["IndexName"]: each for each in found.get("GlobalSecondaryIndexes") or ()}


def _is_usable(shape: TableShape, found: dict[str, Any]) -> bool:
    """Return whether a table and our indexes can be used, even while somebody changes it or adds another index."""
    indexes = _indexes(found)
    ours = [indexes[index.name].get("IndexStatus") for index in shape.indexes]
    return {found.get("TableStatus"), *ours} <= {"ACTIVE", "UPDATING"}


def _is_active(found: dict[str, Any]) -> bool:
    statuses = [found.get("TableStatus"), *(each.get("IndexStatus") for each in _indexes(found).values())]
    return all(status == "ACTIVE" for status in statuses)


def _key_schema(hash_key: str, range_key: str) -> list[dict[str, str]]:
    return [{"AttributeName": hash_key, "KeyType": "HASH"}, {"AttributeName": range_key, "KeyType": "RANGE"}]


def _text_attributes(*names: str) -> list[dict[str, str]]:
    return [{"AttributeName": name, "AttributeType": "S"} for name in dict.fromkeys(names)]
