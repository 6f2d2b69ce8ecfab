"""Work goes on through whatever the store and the way to it do: nothing is lost, nothing is done twice (QUE-5, 6)."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from dynamo import Dynamo
from faults.own_store import OwnStore
from faults.queue_scenes import HERE, ME, NOW, OTHER, Scene, patiently, store_at
from faults.queue_work import Day
from faults.store_proxy import FOR_EVER, Fault, Rule, StoreProxy, store_proxy
from forms import rounds

pytestmark = [pytest.mark.spec("QUE-5", "QUE-6"), pytest.mark.faults]

WORKERS = 4


@pytest.fixture
def proxy(dynamo: Dynamo) -> Iterator[StoreProxy]:
    with store_proxy(dynamo.endpoint) as proxy:
        yield proxy


def day_at(dynamo: Dynamo, endpoint: str, count: int, *, asks_again: bool = False) -> Day:
    """Prepare a day's work through an endpoint, every worker with a client of its own."""
    calm = store_at(dynamo.endpoint, dynamo, asks_again=False)
    patiently(calm.prepare)  # a store that has only just begun may take longer for its first table than a call waits
    stores = [store_at(endpoint, dynamo, asks_again=asks_again) for _ in range(WORKERS)]
    return Day(Scene(dynamo.client(), stores[0], calm), stores, count)


def worst(share: float) -> list[Rule]:
    """Let everything happen that may, each with the same chance."""
    faults = [fault for fault in Fault if fault is not Fault.DELAYED]
    rules = [Rule(fault, count=FOR_EVER, chance=share) for fault in faults]
    return [*rules, Rule(Fault.DELAYED, count=FOR_EVER, chance=share, seconds=0.02)]


@pytest.mark.parametrize("day", range(rounds(1, 3)))
def test_all_faults_at_once(dynamo: Dynamo, day: int, chance: random.Random) -> None:
    with store_proxy(dynamo.endpoint, seed=chance.randrange(10_000)) as proxy:
        work = day_at(dynamo, proxy.endpoint, 40)
        proxy.rules[:] = worst(0.05)
        proxy.index.late_chance = proxy.index.lingering_chance = 0.2
        work.work()
        work.check()
        assert all(proxy.done(fault) > 0 for fault in Fault)
        assert proxy.index.hits > 0


@pytest.mark.parametrize(
    "seconds",
    [
        pytest.param(1.5, id="short"),
        pytest.param(30.0, id="30 s", marks=pytest.mark.soak),
    ],
)
def test_the_store_is_down_for_a_while_and_back(dynamo: Dynamo, proxy: StoreProxy, seconds: float) -> None:
    day = day_at(dynamo, proxy.endpoint, 40, asks_again=seconds > 10)
    begin = time.monotonic()
    gone: list[float] = []

    def trouble() -> None:
        if not gone and len(day.executed) >= 10:
            gone.append(time.monotonic())
            proxy.down(seconds)

    day.work(trouble)
    assert gone
    assert time.monotonic() - begin >= seconds
    day.check()


def test_the_store_is_killed_and_started_again_and_again(tmp_path: Path) -> None:
    own, wanted = OwnStore(tmp_path), rounds(2, 6)
    own.start()
    try:
        dynamo = Dynamo(own.endpoint)
        day = day_at(dynamo, own.endpoint, 10 * (wanted + 2))
        day.pause_seconds = 0.1
        kills: list[int] = []

        def trouble() -> None:
            if len(kills) < wanted and len(day.executed) >= 10 * (len(kills) + 1):
                own.kill()
                kills.append(len(day.executed))
                own.start()

        day.work(trouble, seconds=400)  # some starts of Java among it, where all is slow
        assert len(kills) == wanted
        day.check()
    finally:
        own.kill()


class TestTheIndex:
    """What the index shows is a hint; the task itself decides."""

    @pytest.fixture
    def scene(self, dynamo: Dynamo, proxy: StoreProxy) -> Scene:
        return day_at(dynamo, proxy.endpoint, 0).scene

    def test_entries_that_are_late_are_claimed_late(self, scene: Scene, proxy: StoreProxy) -> None:
        scene.queued("TASK-1", "TASK-2")
        proxy.index.late_queries = 2
        claimed = [scene.queue.claim(ME, NOW) for _ in range(4)]
        assert [task and task.task_id for task in claimed] == [None, None, "TASK-1", "TASK-2"]

    def test_an_entry_that_is_missing_holds_up_nobody(self, scene: Scene, proxy: StoreProxy) -> None:
        scene.queued("TASK-1", "TASK-2")
        proxy.index.hide("TASK-1")
        assert [task and task.task_id for task in (scene.queue.claim(ME, NOW), scene.queue.claim(ME, NOW))] == [
            "TASK-2",
            None,
        ]
        proxy.index.show("TASK-1")
        task = scene.queue.claim(ME, NOW)
        assert task is not None
        assert task.task_id == "TASK-1"

    def test_entries_that_came_back_cannot_block_what_is_behind_them(self, scene: Scene, proxy: StoreProxy) -> None:
        names = [f"TASK-{number}" for number in range(1, 41)]
        scene.queued(*names)
        other = scene.store.queue(scene.namespace)
        for _ in names:
            assert other.claim(OTHER, NOW) is not None
        proxy.index.resurrect(*names)
        scene.queued("TASK-99")
        task = scene.queue.claim(ME, NOW)
        assert task is not None
        assert task.task_id == "TASK-99"
        assert {item["claimed_by"]["S"] for item in scene.raw("pm-runner-queue")} == {"runner-other", "runner-me"}
        assert scene.queue.claim(ME, NOW) is None
        calls = [call.body for call in proxy.calls if call.operation == "UpdateItem"]
        mine = [body for body in calls if {"S": ME.runner_id} in body["ExpressionAttributeValues"].values()]
        tried = Counter(body["Key"]["task_id"]["S"] for body in mine)
        assert tried == dict.fromkeys([*names, "TASK-99"], 1), "what was seen to be stale is tried once"

    def test_an_entry_that_came_back_brings_no_cancelled_task_back(self, scene: Scene, proxy: StoreProxy) -> None:
        scene.queued("TASK-1", "TASK-2")
        first = scene.queue.claim(ME, NOW)
        assert first is not None
        assert proxy.index.known() == {"TASK-1", "TASK-2"}
        scene.calm.cancel("TASK-2", "why", NOW)
        proxy.index.resurrect("TASK-2")
        assert scene.queue.claim(ME, NOW) is None
        found = scene.calm.get("TASK-2")
        assert found is not None
        assert found.status == "CANCELLED"

    def test_an_empty_page_is_not_the_end(self, scene: Scene, proxy: StoreProxy) -> None:
        scene.queued("TASK-1")
        proxy.index.empty_pages = 3
        task = scene.queue.claim(ME, NOW)
        assert task is not None
        assert task.task_id == "TASK-1"
        assert task.checkout == HERE

    def test_a_prompt_is_found_at_once_by_a_runner_that_has_nothing_else(self, scene: Scene, proxy: StoreProxy) -> None:
        assert scene.queue.claim(ME, NOW) is None
        scene.queued("TASK-1", checkout=None)
        task = scene.queue.claim(ME, NOW)
        assert task is not None
        assert task.task_id == "TASK-1"
