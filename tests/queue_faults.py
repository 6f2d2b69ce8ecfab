"""Clients of a real store that lose answers, ask twice or show an old index, and one that is watched."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from aiflow.adapters.dynamo.client import DynamoClient
from aiflow.errors import EnvironmentProblemError


class Call(NamedTuple):
    """One call that was answered."""

    operation: str
    asked: dict[str, Any]
    answer: dict[str, Any]

    @property
    def cost(self) -> float:
        """What it cost, in capacity units."""
        return float(self.answer["ConsumedCapacity"]["CapacityUnits"])


@contextlib.contextmanager
def watched(client: DynamoClient) -> Iterator[list[Call]]:
    """Write down every call of a client."""
    calls: list[Call] = []
    client.observe = lambda *call: calls.append(Call(*call))
    try:
        yield calls
    finally:
        client.observe = None


class FaultyClient(DynamoClient):
    """Passes calls on to a real client; one of them, the `at`th from 0, goes wrong.

    `before`: the call never gets there. `after`: it happens and its answer is lost. `twice`: its answer is lost and it
    is asked again below us, as boto3 does.
    """

    def __init__(self, client: DynamoClient, kind: str = "", at: int = -1) -> None:
        self.name = client.name
        self.observe = None
        self.real, self.kind, self.at, self.count = client, kind, at, 0

    @property
    def has_struck(self) -> bool:
        """Whether the call that goes wrong has come."""
        return self.count > self.at

    def call(self, operation: str, **params: Any) -> dict[str, Any]:
        number, self.count = self.count, self.count + 1
        if number != self.at:
            return self.real.call(operation, **params)
        if self.kind != "before":
            answer = self.real.call(operation, **params)
            if self.kind == "twice":
                return self.real.call(operation, **params) if operation != "query" else answer
        raise EnvironmentProblemError(reason_code="STORE_UNREACHABLE", endpoint=self.name, problem="answer lost")


class OldIndexClient(FaultyClient):
    """Shows pages of old entries in front of what the ready-index really has, and an empty page between."""

    def __init__(self, client: DynamoClient, *stale: list[dict[str, Any]]) -> None:
        super().__init__(client)
        self.stale = stale
        self.writes = 0

    def call(self, operation: str, **params: Any) -> dict[str, Any]:
        self.writes += operation == "update_item"
        number = int(params.get("ExclusiveStartKey", {}).get("page", {}).get("N", 0))
        if params.get("IndexName") != "ready-index" or number >= len(self.stale):
            if "page" in params.get("ExclusiveStartKey", {}):
                del params["ExclusiveStartKey"]
            return self.real.call(operation, **params)
        return {"Items": self.stale[number], "LastEvaluatedKey": {"page": {"N": str(number + 1)}}}
