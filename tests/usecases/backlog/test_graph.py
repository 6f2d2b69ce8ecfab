"""The graph and tonight's positions of a checkout."""

from __future__ import annotations

from typing import cast

import pytest

from aiflow.adapters.memory.time import PlayedTime
from aiflow.domain.lock import Lock
from aiflow.domain.request import RequestId
from aiflow.ports import Locks
from aiflow.usecases.backlog.graph import graph_backlog
from aiflow.usecases.engine import Engine
from aiflow.usecases.shapes.graph import graph_shape
from memory_engine import MemoryCheckout, MemoryProcess, obliging

pytestmark = pytest.mark.spec("WEB-1")


def engine_of(checkout: MemoryCheckout) -> Engine:
    return MemoryProcess(checkout, 7, PlayedTime(), obliging(checkout)).engine()


def test_the_graph_of_a_checkout_and_its_shape() -> None:
    checkout = MemoryCheckout()
    checkout.add("A")
    checkout.add("B", depends_on="[A, GONE]")
    checkout.add("C")
    engine = engine_of(checkout)
    shape = graph_shape(graph_backlog(engine.backlog, lambda: cast(Locks, None), RequestId("B")))
    assert [(node["request_id"], node["layer"]) for node in shape["nodes"]] == [("A", 0), ("B", 1), ("GONE", 0)]
    assert [node["is_next"] for node in shape["nodes"]] == [True, False, False]
    assert shape["edges"][0] == {"first": "A", "then": "B", "is_back": False}
    assert (shape["total"], shape["left_out"], shape["chosen"]) == (3, 0, "B")


def test_what_is_locked_is_not_runnable() -> None:
    checkout = MemoryCheckout()
    checkout.add("A")
    checkout.add("B", depends_on="[A]")
    engine = engine_of(checkout)
    lease = engine.locks.acquire_request(RequestId("A"), "RUN-1")
    assert not isinstance(lease, Lock)
    graph = graph_backlog(engine.backlog, lambda: engine.locks)
    assert not any(node.is_runnable for node in graph.nodes)
