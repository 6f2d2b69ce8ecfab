"""One table's items as plain values, and the few calls that the queue makes of them.

Expressions name attributes as `#status`, whatever DynamoDB has reserved; their names are found there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from aiflow.adapters.dynamo.client import NoTableError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from aiflow.adapters.dynamo.client import DynamoClient

# An item as Python has it: texts, whole and broken numbers, truth, and texts by name.
Item = dict[str, Any]

_NAMES = re.compile(r"#(\w+)")
_EXPRESSIONS = ("ConditionExpression", "FilterExpression", "KeyConditionExpression", "ProjectionExpression")


@dataclass(frozen=True, slots=True)
class ItemChange:
    """One conditional write of one item; `values` are the condition's. A silent one does not return what it made."""

    condition: str
    values: Mapping[str, Any] = field(default_factory=dict)
    sets: Mapping[str, Any] = field(default_factory=dict)
    removes: tuple[str, ...] = ()
    adds: Mapping[str, int] = field(default_factory=dict)
    is_silent: bool = False


class ItemPage(NamedTuple):
    """A part of what a query finds; `last_key` is where the next one continues, None at the end."""

    items: list[Item]
    last_key: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class ItemTable:
    """One table whose items are named by a namespace and one more key."""

    client: DynamoClient
    name: str
    sort_key: str

    def get(self, namespace: str, key: str) -> Item | None:
        """Read one item, consistently; a table that does not exist yet has none."""
        wanted = {"TableName": self.name, "Key": self._key(namespace, key)}
        try:
            answer = self.client.call("get_item", **wanted, ConsistentRead=True)
        except NoTableError:
            return None
        return unpacked(answer["Item"]) if answer.get("Item") else None

    def put(self, item: Item, condition: str | None = None, values: Mapping[str, Any] | None = None) -> None:
        """Write a whole item; `values` are the condition's."""
        params = {} if condition is None else _expressed({"ConditionExpression": condition}, values or {})
        self._write("put_item", Item=packed(item), **params)

    def change(self, namespace: str, key: str, change: ItemChange) -> Item:
        """Change an item under a condition, and return all of it as it is then, unless that is not wanted."""
        sets = ", ".join(f"#{name} = :set_{name}" for name in change.sets)
        removes = ", ".join(f"#{name}" for name in change.removes)
        adds = ", ".join(f"#{name} :add_{name}" for name in change.adds)
        parts = ((word, part) for word, part in (("SET", sets), ("REMOVE", removes), ("ADD", adds)) if part)
        expressions = {
            "UpdateExpression": " ".join(f"{word} {part}" for word, part in parts),
            "ConditionExpression": change.condition,
        }
        values = {
            **change.values,
            **{f"set_{name}": value for name, value in change.sets.items()},
            **{f"add_{name}": value for name, value in change.adds.items()},
        }
        told = "NONE" if change.is_silent else "ALL_NEW"
        params = {"Key": self._key(namespace, key), "ReturnValues": told, **_expressed(expressions, values)}
        return unpacked(self._write("update_item", **params).get("Attributes", {}))

    def delete(self, namespace: str, key: str, condition: str, values: Mapping[str, Any]) -> None:
        """Remove an item under a condition."""
        params = _expressed({"ConditionExpression": condition}, values)
        self._write("delete_item", Key=self._key(namespace, key), **params)

    def page(self, values: Mapping[str, Any], start: dict[str, Any] | None = None, **params: Any) -> ItemPage:
        """Ask one query; its expressions are among the parameters."""
        return self._page("query", values, start, params)

    def pages(
        self, values: Mapping[str, Any], start: dict[str, Any] | None = None, **params: Any
    ) -> Iterator[ItemPage]:
        """Ask a query through all of its pages."""
        yield from self._pages("query", values, start, params)

    def scan(self, **params: Any) -> Iterator[ItemPage]:
        """Read the whole table, every namespace."""
        yield from self._pages("scan", {}, None, params)

    def start_at(self, namespace: str, key: str) -> dict[str, Any]:
        """Return the place after an item, as `start` of a query."""
        return self._key(namespace, key)

    def _write(self, operation: str, **params: Any) -> dict[str, Any]:
        """Write something; a table that is gone, perhaps because its store forgets what it had, is reported as such."""
        try:
            return self.client.call(operation, TableName=self.name, **params)
        except NoTableError:
            raise self.client.without_table(self.name) from None

    def _pages(
        self, operation: str, values: Mapping[str, Any], start: dict[str, Any] | None, params: dict[str, Any]
    ) -> Iterator[ItemPage]:
        page = self._page(operation, values, start, params)
        yield page
        while page.last_key is not None:
            page = self._page(operation, values, page.last_key, params)
            yield page

    def _page(
        self, operation: str, values: Mapping[str, Any], start: dict[str, Any] | None, params: dict[str, Any]
    ) -> ItemPage:
        whole = {"TableName": self.name, **_expressed(params, values)}
        if start is not None:
            whole["ExclusiveStartKey"] = start
        try:
            answer = self.client.call(operation, **whole)
        except NoTableError:  # it does not exist yet, and a mere look does not create it
            return ItemPage([], None)
        return ItemPage([unpacked(each) for each in answer.get("Items", ())], answer.get("LastEvaluatedKey") or None)

    def _key(self, namespace: str, key: str) -> dict[str, Any]:
        return {"namespace": {"S": namespace}, self.sort_key: {"S": key}}


def packed(item: Mapping[str, Any]) -> dict[str, Any]:
    """Write an item as DynamoDB has it."""
    return {name: _packed(value) for name, value in item.items()}


def unpacked(item: Mapping[str, Any]) -> Item:
    """Read an item of DynamoDB; what we never write is left out, not failed at."""
    found = {name: _unpacked(value) for name, value in item.items()}
    return {name: value for name, value in found.items() if value is not None}


def _packed(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"BOOL": value}
    if isinstance(value, (int, float)):
        return {"N": repr(value)}
    return {"M": packed(value)} if isinstance(value, dict) else {"S": str(value)}


def _unpacked(value: Mapping[str, Any]) -> Any:
    [(kind, held)] = value.items()
    match kind:
        case "S" | "BOOL":
            return held
        case "N":
            return int(held) if re.fullmatch(r"-?\d+", held) else float(held)
        case "M":
            return unpacked(held)
        case _:
            return None


def _expressed(params: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Add the names and values that a call's expressions use."""
    texts = [params[name] for name in (*_EXPRESSIONS, "UpdateExpression") if name in params]
    named = {f"#{name}": name for text in texts for name in _NAMES.findall(text)}
    whole = dict(params)
    if named:
        whole["ExpressionAttributeNames"] = named
    if values:
        whole["ExpressionAttributeValues"] = {f":{name}": _packed(value) for name, value in values.items()}
    return whole
