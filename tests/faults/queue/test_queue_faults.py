"""Every operation of the queue store with every fault at every one of its calls: the same outcome as without (QUE)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from aiflow.domain.queue.task import Task
from dynamo import Dynamo
from faults.queue_scenes import (
    SCENES,
    Act,
    Items,
    Scene,
    cancel_running,
    claim,
    end_lost,
    enqueue,
    enqueue_what_has_ended_and_has_a_follower,
    finish,
    note_run,
    put_to_rest,
    save,
    store_at,
    told,
)
from faults.store_proxy import Fault, Rule, StoreProxy, store_proxy

# One of each operation.
FIRST_SCENES = (enqueue, claim, note_run, finish, cancel_running, end_lost, save, put_to_rest)
EVERY_FAULT = [fault for fault in Fault if fault is not Fault.DELAYED]


class Stage:
    """A store behind a proxy, and as many namespaces in it as a test wants."""

    def __init__(self, dynamo: Dynamo, proxy: StoreProxy, *, asks_again: bool = False) -> None:
        self.proxy = proxy
        self.bare = dynamo.client()
        self.store = store_at(proxy.endpoint, dynamo, asks_again=asks_again)
        self.calm = store_at(dynamo.endpoint, dynamo, asks_again=False)
        self.calm.prepare()

    def play(self, make: Callable[[Scene], Act], *rules: Rule) -> tuple[tuple[object, Items], int]:
        """Play a scene under rules; return all that can be seen of its outcome, and how many calls it took."""
        scene = Scene(self.bare, self.store, self.calm)
        act = make(scene)
        self.proxy.calls.clear()
        self.proxy.rules[:] = rules
        said = told(act)
        self.proxy.rules.clear()
        assert scene.guard_is_right()
        return (said, scene.items()), len(self.proxy.calls)


@pytest.fixture
def proxy(dynamo: Dynamo) -> Iterator[StoreProxy]:
    with store_proxy(dynamo.endpoint) as proxy:
        yield proxy


@pytest.fixture
def stage(dynamo: Dynamo, proxy: StoreProxy) -> Stage:
    return Stage(dynamo, proxy)


def check(stage: Stage, make: Callable[[Scene], Act], fault: Fault, count: int) -> None:
    """Play a scene without faults, and then with some at each of its calls in turn."""
    wanted, calls = stage.play(make)
    assert calls > 0
    for position in range(calls):
        rule = Rule(fault, skip=position, count=count)
        outcome, _ = stage.play(make, rule)
        assert rule.count < count, "no call was hit"
        assert outcome == wanted, f"{make.__name__}: {fault} at call {position}"


@pytest.mark.spec("QUE-3", "QUE-5", "QUE-6", "QUE-9")
def test_an_answer_lost_after_commit_changes_nothing(stage: Stage) -> None:
    for make in FIRST_SCENES:
        check(stage, make, Fault.LOST, 1)


@pytest.mark.faults
@pytest.mark.spec("QUE-3", "QUE-5", "QUE-6", "QUE-9")
@pytest.mark.parametrize(
    ("fault", "count"),
    [(fault, count) for count in (1, 2) for fault in EVERY_FAULT],
)
def test_every_fault_at_every_call_changes_nothing(stage: Stage, fault: Fault, count: int) -> None:
    for make in SCENES:
        check(stage, make, fault, count)


@pytest.mark.faults
@pytest.mark.spec("QUE-3", "QUE-5", "QUE-6", "QUE-9")
@pytest.mark.parametrize("fault", [Fault.LOST, Fault.ERROR_AFTER])
def test_a_client_that_asks_again_by_itself_meets_its_own_write(
    dynamo: Dynamo, proxy: StoreProxy, fault: Fault
) -> None:
    stage = Stage(dynamo, proxy, asks_again=True)
    for make in SCENES:
        check(stage, make, fault, 1)


@pytest.mark.spec("QUE-9")
def test_a_task_asked_for_again_long_after_its_end_is_still_the_same(stage: Stage) -> None:
    (said, items), _ = stage.play(enqueue_what_has_ended_and_has_a_follower)
    assert isinstance(said, Task)
    assert (said.task_id, said.status) == ("TASK-1", "ERROR")
    assert [item["status"] for item in items["pm-runner-queue"]] == ["ERROR", "QUEUED"]
