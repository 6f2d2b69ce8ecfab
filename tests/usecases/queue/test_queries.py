"""Asking the queue: list, show, count, runners, namespaces, and handing orders over, with a store in memory."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from aiflow.adapters.markdown_requests.source import FileSource
from aiflow.adapters.memory.journal import MemoryJournal
from aiflow.adapters.memory.locks import MemoryLocks
from aiflow.adapters.memory.queue import MemoryStore
from aiflow.adapters.memory.requests import MemoryRequests
from aiflow.adapters.memory.runs import MemoryRuns
from aiflow.adapters.system_time import SystemTime
from aiflow.domain.lifecycle import TaskStatus
from aiflow.domain.queue.order import Order
from aiflow.domain.queue.runner import Runner, RunnerStatus
from aiflow.domain.queue.task import TaskAction
from aiflow.domain.request import RequestId, normalize_id
from aiflow.errors import AiflowError, BadInputError, ConflictError, NotFoundError
from aiflow.messages import Texts
from aiflow.usecases.engine import Engine
from aiflow.usecases.queue.add import add_orders
from aiflow.usecases.queue.counts import count_tasks
from aiflow.usecases.queue.desk import Desk, StoreView
from aiflow.usecases.queue.list import list_queue
from aiflow.usecases.queue.look import TaskFilter
from aiflow.usecases.queue.namespaces import list_namespaces
from aiflow.usecases.queue.orders import Maker, TypedOrder, orders_of
from aiflow.usecases.queue.runners import list_runners
from aiflow.usecases.queue.show import show_task
from aiflow.usecases.read_backlog import BacklogSources
from aiflow.usecases.shapes.tasks import added_shape, cancelled_shape, runner_list, shown_task_shape, task_list
from task_builders import HERE, ME, NOW, a_prompt, a_runner, a_task, later

REQUESTS = FileSource(MemoryRequests({RequestId("RQ-1"): "---\nstatus: ready\n---\n"}))
SOURCES = BacklogSources(REQUESTS, MemoryRuns(), MemoryLocks())


class Ears:
    """Remembers who was told of what."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def wait(self, seconds: float) -> tuple[str, ...]:
        return ()

    def poke(self, namespace: str, task_id: str) -> int:
        self.heard.append(task_id)
        return 1

    def close(self) -> None:
        pass


class Yard:
    """A store with two namespaces, seen from one of them."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.gone: set[str] = set()
        self.view = StoreView(
            self.store, "shop", "shop", self.desk_of, SystemTime(lambda: later(100)), 60.0, self.is_gone
        )

    def is_gone(self, runner: Runner) -> bool:
        return runner.runner_id in self.gone

    def desk_of(self, name: str) -> Desk:
        return Desk(
            queue=self.store.queue(name),
            runners=self.store.runners(name),
            checkout=HERE,
            locks=MemoryLocks(),
            wake=Ears(),
            journal=MemoryJournal(),
            time=self.view.time,
            new_task_id=lambda _now: "TASK-NEW",
            timeout_seconds=60.0,
            is_gone=self.is_gone,
        )

    def add(self, number: int, namespace: str = "shop", **changes: Any) -> None:
        self.store.queue(namespace).enqueue(a_task(number, namespace, **changes))

    def list(self, is_all: bool = False, **wanted: Any) -> tuple[list[str], str | None]:
        found = list_queue(self.view, SOURCES, TaskFilter(**wanted), is_all=is_all)
        return [f"{task.namespace}/{task.task_id}" for task, _ in found.tasks], found.next_start


@pytest.fixture
def yard() -> Yard:
    yard = Yard()
    for number in (1, 2, 3):
        yard.add(number)
    yard.add(2, "other")
    yard.add(5, "other")
    return yard


# --- looking at tasks ------------------------------------------------------------------------------------------------


@pytest.mark.spec("QUE-9")
def test_tasks_are_listed_newest_first_page_by_page(yard: Yard) -> None:
    assert yard.list() == (["shop/TASK-0003", "shop/TASK-0002", "shop/TASK-0001"], None)
    first, start = yard.list(limit=2)
    assert (first, start) == (["shop/TASK-0003", "shop/TASK-0002"], "TASK-0002")
    assert yard.list(limit=2, start=start) == (["shop/TASK-0001"], None)


@pytest.mark.spec("QUE-9")
def test_tasks_of_all_namespaces_are_one_list(yard: Yard) -> None:
    everything = ["other/TASK-0005", "shop/TASK-0003", "other/TASK-0002", "shop/TASK-0002", "shop/TASK-0001"]
    assert yard.list(is_all=True) == (everything, None)
    seen: list[str] = []
    part, start = yard.list(is_all=True, limit=2)
    seen += part
    while start is not None:
        part, start = yard.list(is_all=True, limit=2, start=start)
        seen += part
    assert seen == everything


@pytest.mark.spec("QUE-9")
def test_a_task_is_listed_with_how_it_stands(yard: Yard) -> None:
    found = list_queue(yard.view, SOURCES, TaskFilter(limit=1))
    shape = task_list(found.tasks, "shop", found.next_start)
    assert list(shape) == ["namespace", "tasks", "next_start"]
    assert shape["tasks"][0]["standing"]["code"] == "no_runner_here"


def test_a_task_is_shown_with_all_of_its_prompt(yard: Yard) -> None:
    long = "x" * 5000
    yard.store.queue("shop").enqueue(a_prompt(7), long)
    shown = show_task(yard.view.desk, SOURCES, "TASK-0007")
    assert (shown.prompt, shown.place) == (long, None)
    assert shown_task_shape(shown.task, shown.scene, shown.prompt)["prompt"] == long
    plain = show_task(yard.view.desk, SOURCES, "TASK-0001")
    assert (shown_task_shape(plain.task, plain.scene, plain.prompt)["prompt"], plain.place) == (None, HERE)
    with pytest.raises(NotFoundError) as caught:
        show_task(yard.view.desk, SOURCES, "TASK-0008")
    assert caught.value.reason_code == "TASK_NOT_FOUND"


def test_tasks_are_counted(yard: Yard) -> None:
    yard.store.queue("shop").cancel("TASK-0001", "me", NOW)
    own = count_tasks(yard.view)
    assert list(own) == ["shop"]
    assert (own["shop"][TaskStatus.QUEUED], own["shop"][TaskStatus.CANCELLED]) == (2, 1)
    seen: list[int] = []
    assert list(count_tasks(yard.view, seen.append, is_all=True)) == ["other", "shop"]
    assert seen


def test_what_was_cancelled_is_told_with_what_could_not_be(yard: Yard) -> None:
    task = yard.store.queue("shop").cancel("TASK-0001", "me", NOW)
    refused = ConflictError(reason_code="TASK_NOT_ACTIVE", task_id="TASK-0002", status="COMPLETED", namespace="shop")
    shape = cancelled_shape([(task, True)], [refused], Texts("en"))
    assert [(each["task_id"], each["is_released"]) for each in shape["tasks"]] == [("TASK-0001", True)]
    assert [each["reason_code"] for each in shape["refused"]] == ["TASK_NOT_ACTIVE"]


# --- runners and namespaces ------------------------------------------------------------------------------------------


@pytest.mark.spec("QUE-7")
def test_runners_are_listed_who_lives_first_then_who_was_heard_of_last(yard: Yard) -> None:
    def save(name: str, seconds: float, namespace: str = "shop", **changes: Any) -> None:
        heard = later(100) - timedelta(seconds=seconds)
        yard.store.runners(namespace).save(a_runner(name, namespace, last_heartbeat=heard, **changes))

    save("old", 500)
    save("idle", 20)
    save("dead", 1)
    save("fresh", 5)
    save("rested", 2, status=RunnerStatus.STOPPED)
    save("elsewhere", 3, "other")
    yard.gone |= {"dead", "rested"}
    found = list_runners(yard.view)
    assert [each.runner_id for each, _ in found.runners] == ["fresh", "idle", "dead", "rested", "old"]
    assert [each.runner_id for each, is_gone in found.runners if is_gone] == ["dead"]
    shape = runner_list(found.runners, found.now, found.timeout_seconds)
    assert [each["state"] for each in shape["runners"]] == ["idle", "idle", "dead", "stopped", "silent"]
    everybody = list_runners(yard.view, is_all=True)
    assert (everybody.total, everybody.next_after) == (6, None)
    first = list_runners(yard.view, is_all=True, limit=4)
    rest = list_runners(yard.view, is_all=True, limit=4, after=first.next_after or 0)
    assert (first.next_after, rest.next_after) == (4, None)
    assert (*first.runners, *rest.runners) == everybody.runners


def test_namespaces_are_listed_with_who_works_there(yard: Yard) -> None:
    yard.store.runners("third").save(a_runner("R-3", "third", last_heartbeat=later(99)))
    yard.store.runners("third").save(a_runner("R-4", "third", last_heartbeat=later(99)))
    yard.store.runners("other").save(a_runner("R-5", "other", last_heartbeat=later(1)))
    yard.gone.add("R-4")
    found = list_namespaces(yard.view)
    assert (sorted(found.counts), found.own) == (["other", "shop"], "shop")
    assert [each.runner_id for each in found.alive] == ["R-3"]


# --- handing orders over ---------------------------------------------------------------------------------------------


def no_engine() -> Engine:
    raise AssertionError


def making(*orders: Order | AiflowError) -> list[Maker]:
    def maker(order: Order | AiflowError) -> Maker:
        def make(_is_there: bool) -> Order:
            if isinstance(order, AiflowError):
                raise order
            return order

        return make

    return [maker(order) for order in orders]


PROMPT = Order(TaskAction.PROMPT, prompt="Do it")
REFUSED = ConflictError(reason_code="NOT_READY", request_id="RQ-9", status="draft", detail="status is draft")


@pytest.mark.spec("QUE-3", "RUN-15")
def test_what_can_be_queued_is_and_what_cannot_be_is_said_beside_it(yard: Yard) -> None:
    yard.store.runners("shop").save(a_runner(last_heartbeat=later(99)))
    added = add_orders(making(PROMPT, REFUSED), None, lambda: yard.view.desk, no_engine)
    assert [(task.action, is_new) for task, is_new in added.tasks] == [(TaskAction.PROMPT, True)]
    assert added.refused == (REFUSED,)
    shape = added_shape(added.tasks, added.scene, added.refused, added.foreseen, Texts("en"))
    assert list(shape) == ["tasks", "refused", "warnings"]
    assert [each["is_new"] for each in shape["tasks"]] == [True]
    assert [each["reason_code"] for each in shape["refused"]] == ["NOT_READY"]


def test_what_is_refused_needs_no_store() -> None:
    def no_desk() -> Desk:
        raise AssertionError

    added = add_orders(making(REFUSED, REFUSED), None, no_desk, no_engine)
    assert (added.tasks, len(added.refused)) == ((), 2)
    with pytest.raises(ConflictError):
        add_orders(making(REFUSED), None, no_desk, no_engine)


@pytest.mark.spec("QUE-9")
def test_a_task_that_is_there_already_is_known_before_its_order_is_made(yard: Yard) -> None:
    told: list[bool] = []

    def make(is_there: bool) -> Order:
        told.append(is_there)
        return Order(TaskAction.START, "RQ-0001", task_id="TASK-0001")

    yard.store.queue("shop").claim(ME, later(101))
    added = add_orders([make], "TASK-0001", lambda: yard.view.desk, no_engine)
    assert told == [True]
    assert [(task.task_id, is_new) for task, is_new in added.tasks] == [("TASK-0001", False)]


@pytest.mark.spec("REQ-9")
@pytest.mark.parametrize(
    "given",
    [
        TypedOrder(("Do that",)),
        TypedOrder(("直してください。",)),
        TypedOrder(prompt="Do that"),
        TypedOrder(("Do that",), priority="P0"),
    ],
)
def test_a_sentence_is_a_prompt(given: TypedOrder) -> None:
    (make,) = orders_of(given, SOURCES, no_engine, normalize_id, Texts("en"))
    order = make(False)
    assert (order.action, order.priority) == (TaskAction.PROMPT, given.priority or "P2")


@pytest.mark.parametrize(
    ("given", "key"),
    [
        (TypedOrder(), "queue.nothing_named"),
        (TypedOrder(("RQ-1",), auto=True), "queue.nothing_to_name"),
        (TypedOrder(prompt="x", auto=True), "queue.one_way"),
        (TypedOrder(("RQ-1",), answer="yes"), "queue.only_going_on"),
        (TypedOrder(("RQ-1", "RQ-2"), task_id="t"), "queue.one_id"),
        (TypedOrder(("RQ-1",), step="S01"), "queue.only_retry_step"),
        (TypedOrder(("RQ-1",), watch=True), "queue.only_auto"),
    ],
)
def test_what_makes_no_sense_together_is_refused_before_anything_is_opened(given: TypedOrder, key: str) -> None:
    texts = Texts("en")
    with pytest.raises(BadInputError) as caught:
        orders_of(given, SOURCES, no_engine, normalize_id, texts)
    assert caught.value.context["detail"] == texts(key)
