"""The rights that the guide asks for are those that the queue needs (QUE-2): each call named, and none beside."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aiflow.adapters.dynamo.queue.tables import READY_INDEX, SHAPES
from doc_examples import fenced

ROOT = Path(__file__).parents[3]
CALLS = {
    *("get_item", "put_item", "update_item", "delete_item", "query", "scan"),
    *("describe_table", "create_table", "update_table", "delete_table", "list_tables", "update_time_to_live"),
    *("batch_get_item", "batch_write_item", "transact_get_items", "transact_write_items", "execute_statement"),
}


def policy() -> dict[str, Any]:
    guide = (ROOT / "docs/guides/share-a-queue.md").read_text(encoding="utf-8")
    (text,) = fenced(guide, "json")
    found: dict[str, Any] = json.loads(text)
    return found


def as_list(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def called() -> Iterator[str]:
    for path in (ROOT / "src/aiflow/adapters/dynamo/queue").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and node.value in CALLS:
                yield str(node.value)


@pytest.mark.spec("QUE-2")
def test_the_policy_names_every_call_and_no_other() -> None:
    allowed = {action for each in policy()["Statement"] for action in as_list(each["Action"])}
    assert allowed == {f"dynamodb:{name.title().replace('_', '')}" for name in called()}


@pytest.mark.spec("QUE-1")
def test_the_policy_and_the_guide_name_every_table_and_the_index_that_is_asked() -> None:
    resources = {name for each in policy()["Statement"] for name in as_list(each["Resource"])}
    tables = {f"table/{shape.name}" for shape in SHAPES}
    assert {name.rpartition(":")[2] for name in resources} == {*tables, f"table/{SHAPES[0].name}/index/{READY_INDEX}"}
    guide = (ROOT / "docs/guides/share-a-queue.md").read_text(encoding="utf-8")
    for shape in SHAPES:
        (row,) = [line for line in guide.splitlines() if line.startswith(f"| `{shape.name}` |")]
        keys = {shape.hash_key, shape.range_key, *(index.name for index in shape.indexes)}
        keys |= {key for index in shape.indexes for key in (index.hash_key, index.range_key)}
        assert {key for key in keys if f"`{key}`" not in row} == set()
