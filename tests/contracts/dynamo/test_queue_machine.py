"""The queue's state machine against the stores: a few examples here, many among the fault tests."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from aiflow.adapters.dynamo.client import DynamoClient
from aiflow.adapters.dynamo.queue import DynamoStore
from aiflow.adapters.memory.queue import MemoryStore
from aiflow.ports.tasks import QueueStore
from forms import rounds
from queue_machine import QueueMachine


def run(make_store: Callable[[], QueueStore], examples: int, steps: int) -> None:
    """Run the machine with stores of one kind."""
    machine = type("Machine", (QueueMachine,), {"make_store": lambda _self: make_store()})
    run_state_machine_as_test(machine, settings=settings(max_examples=examples, stateful_step_count=steps))


@pytest.mark.spec("QUE-3", "QUE-5", "QUE-6", "QUE-7")
def test_the_store_in_memory_does_what_the_model_says() -> None:
    run(MemoryStore, 30, 40)


@pytest.mark.faults
@pytest.mark.spec("QUE-3", "QUE-5", "QUE-6", "QUE-7")
def test_a_real_store_does_what_the_model_says(prepared: Callable[[str], DynamoClient]) -> None:
    run(lambda: DynamoStore(prepared("local"), poll_seconds=0), 3, 25)


@pytest.mark.faults
@pytest.mark.parametrize(
    ("kind", "examples"), [("memory", rounds(100, 200)), ("local", rounds(8, 25)), ("dynalite", rounds(4, 10))]
)
def test_long_histories(prepared: Callable[[str], DynamoClient], kind: str, examples: int) -> None:
    if kind == "memory":
        run(MemoryStore, examples, 60)
    else:
        run(lambda: DynamoStore(prepared(kind), poll_seconds=0), examples, 50)
