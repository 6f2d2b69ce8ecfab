"""A real runner between a store that does its worst and an agent that writes down every call (QUE-5, 6, 10)."""

from __future__ import annotations

import json
import random
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from dynamo import Dynamo
from e2e.bench import Bench
from faults.own_store import OwnStore
from faults.queue_scenes import patiently
from faults.store_proxy import FOR_EVER, Fault, Rule, store_proxy
from forms import rounds
from runner_yard import Yard
from waiting import wait_until

pytestmark = [pytest.mark.faults, pytest.mark.spec("QUE-5", "QUE-6", "QUE-10")]

TASKS = rounds(8, 20)


@pytest.fixture
def bench(repository: Path, tmp_path: Path) -> Iterator[Bench]:
    made = Bench(repository, tmp_path)
    yield made
    made.close()


def enqueue(yard: Yard, count: int) -> list[str]:
    """Put tasks into the queue, each with a request of its own."""
    names = [f"RQ-{number}" for number in range(1, count + 1)]
    for name in names[1:]:
        yard.bench.add_request(name)
    return [yard.add(request_id=name) for name in names]


def has_ended(yard: Yard, task_id: str) -> bool:
    """Tell whether a task has; a store that only just began is slow to answer."""
    return patiently(lambda: yard.task(task_id)).is_final


def leave(runner: subprocess.Popen[str]) -> None:
    """Ask a runner to leave, and see that it does."""
    runner.terminate()
    out, err = runner.communicate(timeout=60)
    assert runner.returncode == 0, (out, err)


def check(yard: Yard, task_ids: list[str]) -> None:
    """Every task was executed once, from its beginning to its end, and no write of it was refused."""
    assert Counter(yard.task(each).status for each in task_ids) == {"COMPLETE": len(task_ids)}
    calls = Counter((each["request"]["id"], each["role"]) for each in yard.bench.agent.documents)
    names = {yard.task(each).request_id for each in task_ids}
    assert calls == {(name, role): 1 for name in names for role in ("planner", "implementer", "qa")}
    assert [len(yard.bench.run_ids(name)) for name in names] == [1] * len(names)
    assert "LOCK_MISMATCH" not in json.dumps(yard.bench.journal())
    [runner] = yard.runners()
    assert runner.is_at_rest


def test_a_runner_works_through_tasks_while_the_way_to_the_store_does_its_worst(
    bench: Bench, dynamo: Dynamo, chance: random.Random
) -> None:
    yard = Yard(bench, dynamo)
    tasks = enqueue(yard, TASKS)
    rules = [Rule(fault, count=FOR_EVER, chance=0.04, seconds=0.1) for fault in Fault]
    surely = [Rule(fault, skip=chance.randrange(10, 60), seconds=0.1) for fault in Fault]
    with store_proxy(dynamo.endpoint, seed=chance.randrange(10_000)) as proxy:
        runner = yard.runner(AIFLOW_QUEUE_STORE=proxy.endpoint, AIFLOW_QUEUE_HEARTBEAT_TIMEOUT_SECONDS="40")
        wait_until(yard.runners)  # a runner that does not reach its store at the start says so and leaves
        proxy.index.late_chance = proxy.index.lingering_chance = 0.2
        proxy.rules += [*surely, *rules]
        for number, task_id in enumerate(tasks):
            yard.ended(task_id)
            if number % 5 == 2:
                proxy.down(1.0)
        proxy.index.late_chance = proxy.index.lingering_chance = 0
        proxy.rules.clear()
        leave(runner)
        assert all(proxy.done(fault) > 0 for fault in Fault)
    check(yard, tasks)


def test_a_runner_works_through_tasks_while_its_store_is_killed_again_and_again(bench: Bench, tmp_path: Path) -> None:
    own = OwnStore(tmp_path)
    own.start()
    try:
        yard = patiently(lambda: Yard(bench, Dynamo(own.endpoint)))  # its first table may take longer than a call waits
        tasks = enqueue(yard, rounds(2, 5))
        runner = yard.runner(AIFLOW_QUEUE_HEARTBEAT_TIMEOUT_SECONDS="40")
        wait_until(yard.runners)
        for task_id in tasks:
            own.kill()
            own.start()
            wait_until(lambda task_id=task_id: has_ended(yard, task_id) or runner.poll() is not None)  # type: ignore[misc]
            assert runner.poll() is None, runner.communicate()
        leave(runner)
        check(yard, tasks)
    finally:
        own.kill()
