"""The queue stores that the tests of the queue are run against, as fixtures."""

from __future__ import annotations

import secrets
from collections.abc import Callable

import pytest

from aiflow.adapters.dynamo.client import DynamoClient
from aiflow.adapters.dynamo.queue import DynamoStore
from aiflow.adapters.memory.queue import MemoryStore
from aiflow.ports.tasks import QueueStore, RunnerRecords, TaskQueue
from dynamo import Dynamo
from task_builders import POLL_SECONDS


@pytest.fixture(scope="session")
def prepared(request: pytest.FixtureRequest) -> Callable[[str], DynamoClient]:
    """Give a client of a real store whose tables are there, one database for all tests of this process."""
    clients: dict[str, DynamoClient] = {}

    def give(kind: str) -> DynamoClient:
        if kind not in clients:
            endpoint = request.getfixturevalue("dynalite_endpoint" if kind == "dynalite" else "dynamo_endpoint")
            clients[kind] = Dynamo(endpoint).connect()
            DynamoStore(clients[kind]).prepare()
        return clients[kind]

    return give


@pytest.fixture
def namespace() -> str:
    """Name a namespace that no other test has."""
    return f"shop-{secrets.token_hex(6)}"


@pytest.fixture(params=["memory", "local", "dynalite"])
def store(request: pytest.FixtureRequest, prepared: Callable[[str], DynamoClient]) -> QueueStore:
    """Give each of the stores that keep the ports' promises."""
    return MemoryStore() if request.param == "memory" else DynamoStore(prepared(request.param), POLL_SECONDS)


@pytest.fixture
def queue(store: QueueStore, namespace: str) -> TaskQueue:
    """Give an empty queue."""
    return store.queue(namespace)


@pytest.fixture
def runners(store: QueueStore, namespace: str) -> RunnerRecords:
    """Give a namespace without runners."""
    return store.runners(namespace)
