"""Who dies or is cut off in the middle: of an enqueue, a claim, a reaping (QUE-5, QUE-7, QUE-9).

Each of an operation's own calls goes wrong in turn: it never got there, its answer was lost, or boto3 asked it again
after that. The next who comes, or the same one later, finds everything as it should be. Single operations with every
fault of a real connection are in test_queue_faults.py.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from aiflow.adapters.dynamo.client import DynamoClient
from aiflow.adapters.dynamo.queue import DynamoQueue, DynamoStore
from aiflow.domain.lifecycle import TaskStatus
from aiflow.domain.queue.task import Task, is_delivered_again, successor_of
from aiflow.errors import ConflictError, EnvironmentProblemError
from left_by_terminals import TERMINAL, leave_task
from queue_faults import FaultyClient
from task_builders import HERE, LOST, ME, NOW, YOU, a_prompt, a_task

pytestmark = pytest.mark.faults

KINDS = ("before", "after", "twice")


@dataclass
class Scene:
    """A namespace with something in it, and two ways to it: one that is fine, one that will fail once."""

    plain: DynamoQueue
    faulty: DynamoQueue
    client: FaultyClient


def scenes(
    client: DynamoClient, namespace: str, kind: str, prepare: Callable[[DynamoQueue], object]
) -> Iterator[Scene]:
    """Give one scene for each call that the operation makes, with that call gone wrong."""
    for at in range(20):
        name = f"{namespace}-{at}"
        plain = DynamoStore(client).queue(name)
        prepare(plain)
        faulty = FaultyClient(client, kind, at)
        yield Scene(plain, DynamoStore(faulty, poll_seconds=60).queue(name), faulty)
        if not faulty.has_struck:
            assert at > 0
            return
    pytest.fail("more calls than an operation may make")


def insist(call: Callable[..., Task | None], *arguments: object) -> Task | None:
    """Make a call again if it was not answered, as whoever must know does."""
    try:
        return call(*arguments)
    except EnvironmentProblemError:
        return call(*arguments)


@pytest.fixture
def client(prepared: Callable[[str], DynamoClient]) -> DynamoClient:
    return prepared("local")


def live(queue: DynamoQueue) -> list[str]:
    """Return the live tasks."""
    return [task.task_id for page in queue.pages() for task in page.tasks if not task.is_final]


@pytest.mark.spec("QUE-9")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("before", ["nothing", "ended task", "task that never came"])
def test_enqueue(client: DynamoClient, namespace: str, kind: str, before: str) -> None:
    def prepare(queue: DynamoQueue) -> None:
        if before == "ended task":
            queue.enqueue(a_task(9, queue.namespace, request_id="RQ-0001"))
            queue.cancel("TASK-0009", "", NOW)
        if before != "nothing":
            queue._enqueueing.guards.take("RQ-0001", "TASK-0009")

    for scene in scenes(client, namespace, kind, prepare):
        mine = a_task(1, scene.plain.namespace)
        there = insist(scene.faulty.enqueue, mine, "p" * 300)
        assert there == scene.plain.get("TASK-0001")
        assert there is not None
        assert (there.status, scene.plain.prompt(there)) == (TaskStatus.QUEUED, "p" * 300)
        assert live(scene.plain) == ["TASK-0001"]
        with pytest.raises(ConflictError, match="REQUEST_QUEUED"):
            scene.plain.enqueue(a_task(2, scene.plain.namespace, request_id="RQ-0001"))
        claimed = scene.plain.claim(ME, NOW)
        assert claimed is not None
        assert claimed.fence == there.fence


@pytest.mark.spec("QUE-5")
@pytest.mark.parametrize("kind", KINDS)
def test_whoever_gives_up_in_the_middle_of_an_enqueue_stands_in_nobodys_way(
    client: DynamoClient, namespace: str, kind: str
) -> None:
    for scene in scenes(client, namespace, kind, lambda _queue: None):
        with contextlib.suppress(EnvironmentProblemError):
            scene.faulty.enqueue(a_task(1, scene.plain.namespace), "p" * 300)
        first = scene.plain.get("TASK-0001")
        if first is None:
            scene.plain.enqueue(a_task(2, scene.plain.namespace, request_id="RQ-0001"))
        assert live(scene.plain) == [first.task_id if first else "TASK-0002"]


class GoneClient(FaultyClient):
    """A store that takes one more write, does not answer, and is gone until it comes back."""

    is_gone = False
    is_back = False

    def call(self, operation: str, **params: Any) -> dict[str, Any]:
        if self.is_back or not (self.is_gone or operation == "update_item"):
            return self.real.call(operation, **params)
        if not self.is_gone and self.kind == "after":
            self.real.call(operation, **params)
        self.is_gone = True
        raise EnvironmentProblemError(reason_code="STORE_UNREACHABLE", endpoint=self.name, problem="gone")


@pytest.mark.spec("QUE-5")
@pytest.mark.parametrize("kind", ["before", "after"])
@pytest.mark.parametrize("then", ["claim", "taken", "cancelled"])
def test_a_claim_of_unknown_outcome_is_found_out_before_another(
    client: DynamoClient, namespace: str, kind: str, then: str
) -> None:
    plain = DynamoStore(client).queue(namespace)
    plain.enqueue(a_task(1, namespace))
    plain.enqueue(a_task(2, namespace))
    gone = GoneClient(client, kind)
    queue = DynamoStore(gone).queue(namespace)
    for _ in range(2):
        with pytest.raises(EnvironmentProblemError):
            queue.claim(ME, NOW)
    gone.is_back = True
    if then == "cancelled":
        plain.cancel("TASK-0001", "", NOW)
    taken = then == "taken" and kind == "before"
    if taken:
        plain.claim(YOU, NOW)
    claimed = queue.claim(ME, NOW)
    assert claimed is not None
    is_other = then == "cancelled" or taken
    assert claimed.task_id == ("TASK-0002" if is_other else "TASK-0001")
    assert plain.tasks_of(ME.runner_id) == (claimed,)


@pytest.mark.spec("QUE-7")
@pytest.mark.parametrize("kind", KINDS)
def test_a_reaper_that_dies_anywhere_is_repaired_by_the_next(client: DynamoClient, namespace: str, kind: str) -> None:
    def prepare(queue: DynamoQueue) -> None:
        queue.enqueue(a_prompt(1, queue.namespace), "p" * 300)
        queue.claim(ME, NOW)

    def reap(queue: DynamoQueue, task: Task) -> None:
        ended = queue.end_lost(task, replace(LOST, successor="TASK-0001.2"), NOW)
        assert ended is not None
        queue.enqueue(successor_of(ended, NOW, HERE))

    for scene in scenes(client, namespace, kind, prepare):
        [task] = scene.plain.tasks_of(ME.runner_id)
        try:
            reap(scene.faulty, task)
        except EnvironmentProblemError:
            reap(DynamoStore(client).queue(scene.plain.namespace), task)
        assert live(scene.plain) == ["TASK-0001.2"]
        claimed = scene.plain.claim(YOU, NOW)
        assert claimed is not None
        assert scene.plain.prompt(claimed) == "p" * 300


@pytest.mark.spec("QUE-7")
@pytest.mark.parametrize("kind", KINDS)
def test_what_an_older_versions_terminal_left_is_ended_whoever_dies_over_it(
    client: DynamoClient, namespace: str, kind: str
) -> None:
    for scene in scenes(client, namespace, kind, lambda queue: leave_task(client, queue.namespace)):
        with contextlib.suppress(EnvironmentProblemError):
            scene.faulty.adopt(NOW)
        scene.plain.adopt(NOW)
        for task in scene.plain.tasks_of(TERMINAL):  # as a reaper does
            assert kind != "twice", "nobody died"
            assert not is_delivered_again(task)
            scene.plain.end_lost(task, LOST, NOW)
        ended = scene.plain.get("TASK-0001")
        assert ended is not None
        assert (ended.status, ended.reason_code) == (TaskStatus.ERROR, "RUNNER_LOST")
        scene.plain.enqueue(a_task(2, scene.plain.namespace, request_id="RQ-0001"))
        assert live(scene.plain) == ["TASK-0002"]
