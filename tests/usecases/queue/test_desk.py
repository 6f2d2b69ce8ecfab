"""Handing work over and looking at it (QUE-3, QUE-8, QUE-9), with the queue in memory."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from aiflow.adapters.memory.journal import MemoryJournal
from aiflow.adapters.memory.locks import MemoryLocks
from aiflow.adapters.memory.merging import MemoryMerging
from aiflow.adapters.memory.queue import MemoryQueue, MemoryStore
from aiflow.adapters.memory.repository import MemoryRepository
from aiflow.adapters.memory.runs import MemoryRuns
from aiflow.adapters.system_time import SystemTime
from aiflow.domain.lifecycle import TaskEvent, TaskStatus
from aiflow.domain.lock import LockStatus
from aiflow.domain.next_action import START_RUNNER
from aiflow.domain.queue.order import Order
from aiflow.domain.queue.runner import Runner, RunnerStatus
from aiflow.domain.queue.task import (
    Checkout,
    Task,
    TaskAction,
    TaskEnd,
    new_task_id,
    place_key,
    prompt_request_id,
    successor_of,
)
from aiflow.domain.queue.why_waiting import standing_of
from aiflow.domain.request import Priority
from aiflow.errors import AiflowError, BadInputError, ConflictError, NotFoundError
from aiflow.ports.tasks import Claimant, TaskPage
from aiflow.usecases.engine import Engine
from aiflow.usecases.queue.desk import LINE_PLACES, Desk, look_around
from aiflow.usecases.queue.enqueue import enqueue_work
from aiflow.usecases.queue.look import TaskFilter, close_match, find_task, list_tasks, merge_listings, starts_of
from aiflow.usecases.runner.cancel_task import cancel_task, holder_of
from aiflow.usecases.shapes.tasks import namespaces_shape, runner_state, task_shape
from builders import request_lock
from task_builders import a_task

HERE = Checkout("vm", "/shop")
ME = Claimant("R-1", HERE)
TIMEOUT = 120.0


class Clock:
    """Each look is a second later."""

    def __init__(self) -> None:
        self.at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.at += timedelta(seconds=1)
        return self.at


class Ears:
    """Remembers who was told of what."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str]] = []

    def wait(self, seconds: float) -> tuple[str, ...]:
        return ()

    def poke(self, namespace: str, task_id: str) -> int:
        self.heard.append((namespace, task_id))
        return 1

    def close(self) -> None:
        pass


class Runs(MemoryRuns):
    """No run, and none that was about to be made."""

    def drafted(self, _request_id: str) -> None:
        return None


class NoLocks(MemoryLocks):
    """Nobody runs here, and nobody died here."""

    def reclaim(self) -> list[LockStatus]:
        return []


class Yard:
    """A desk with everything behind it at hand."""

    def __init__(self, **fields: Any) -> None:
        self.store, self.clock, self.ears, self.journal = MemoryStore(), Clock(), Ears(), MemoryJournal()
        self.queue, self.runners = self.store.queue("ns"), self.store.runners("ns")
        whole = {
            "queue": self.queue,
            "runners": self.runners,
            "checkout": HERE,
            "locks": MemoryLocks(),
            "wake": self.ears,
            "journal": self.journal,
            "time": SystemTime(self.clock),
            "new_task_id": lambda now: new_task_id(now, "abcdef"),
            "timeout_seconds": TIMEOUT,
            **fields,
        }
        self.desk = Desk(**whole)
        merging = MemoryMerging(MemoryRepository())
        used: dict[str, Any] = {"locks": NoLocks(), "runs": Runs(), "merging": merging}
        unused = {field.name for field in dataclasses.fields(Engine) if field.default is dataclasses.MISSING}
        self.engine = cast(Any, Engine)(**{**dict.fromkeys(unused), **used})

    def add(self, request_id: str = "RQ-1", **fields: Any) -> Task:
        return enqueue_work(self.desk, Order(TaskAction.START, request_id, **fields)).task

    def cancel(self, task_id: str, who: str) -> Task:
        return cancel_task(self.desk, self.engine, task_id, who)

    def claim(self) -> Task:
        task = self.queue.claim(ME, self.clock())
        assert task is not None
        return task

    def runner(self, **fields: Any) -> Runner:
        at = self.clock()
        record = Runner("ns", "R-1", HERE, at, fields.pop("last_heartbeat", at), **fields)
        self.runners.save(record)
        return record


@pytest.fixture
def yard() -> Yard:
    return Yard()


@pytest.mark.spec("QUE-3", "QUE-11")
def test_work_becomes_a_task_of_this_checkout_and_the_runners_here_are_told(yard: Yard) -> None:
    order = Order(TaskAction.RESUME, "RQ-1", "RUN-1", "Use UTC", {"force": "1"}, Priority.P0)
    task, is_new = enqueue_work(yard.desk, order)
    assert (is_new, task.status, task.action, task.request_id, task.run_id) == (
        True,
        TaskStatus.QUEUED,
        TaskAction.RESUME,
        "RQ-1",
        "RUN-1",
    )
    assert (task.checkout, task.priority, task.options) == (HERE, Priority.P0, {"force": "1"})
    assert task.task_id == "TASK-20260102-030406-000000-abcdef"
    assert yard.queue.prompt(task) == "Use UTC"
    assert yard.ears.heard == [("ns", task.task_id)]
    (entry,) = yard.journal.entries
    assert (entry.kind, entry.actor, entry.request_id, entry.run_id) == ("decision", "person", "RQ-1", "RUN-1")
    assert entry.data == {"asked": "resume", "task_id": task.task_id, "namespace": "ns"}


@pytest.mark.spec("QUE-11", "QUE-9")
def test_a_prompt_may_be_taken_by_anybody_and_must_say_something(yard: Yard) -> None:
    task, _ = enqueue_work(yard.desk, Order(TaskAction.PROMPT, prompt="Fix it"))
    assert (task.checkout, task.request_id) == (None, prompt_request_id("TASK-20260102-030406-000000-abcdef"))
    for text, code in ((" \n", "PROMPT_EMPTY"), ("x" * 500_000, "PROMPT_TOO_LARGE")):
        with pytest.raises(BadInputError) as error:
            enqueue_work(yard.desk, Order(TaskAction.PROMPT, prompt=text))
        assert error.value.reason_code == code


@pytest.mark.spec("REQ-9")
def test_a_prompt_whose_short_id_another_prompt_has_by_chance_gets_another() -> None:
    drawn = list(_two_of_one_short_id())
    assert prompt_request_id(drawn[0]) == prompt_request_id(drawn[1])
    yard = Yard(new_task_id=lambda _now: drawn.pop(0) if drawn else "TASK-20260102-030406-000000-free00")
    first = enqueue_work(yard.desk, Order(TaskAction.PROMPT, prompt="Fix it")).task
    yard.cancel(first.task_id, "by mika on vm")  # its request stays
    second = enqueue_work(yard.desk, Order(TaskAction.PROMPT, prompt="Fix something else")).task
    assert (drawn, second.task_id) == ([], "TASK-20260102-030406-000000-free00")
    assert first.request_id != second.request_id


def _two_of_one_short_id() -> tuple[str, str]:
    """The first two task ids of a day that become the same request."""
    seen: dict[str, str] = {}
    for number in itertools.count():
        task_id = f"TASK-20260102-030405-000000-{number:06x}"
        if (other := seen.setdefault(prompt_request_id(task_id), task_id)) != task_id:
            return other, task_id
    raise AssertionError


def test_a_checkout_has_one_auto_run_in_the_queue(yard: Yard) -> None:
    enqueue_work(yard.desk, Order(TaskAction.AUTO_RUN))
    assert yard.journal.entries[0].request_id is None
    with pytest.raises(ConflictError) as error:
        enqueue_work(yard.desk, Order(TaskAction.AUTO_RUN, task_id="ANOTHER"))
    assert error.value.reason_code == "REQUEST_QUEUED"


@pytest.mark.spec("QUE-9")
def test_the_same_order_under_the_same_id_is_the_same_task_and_no_second_decision(yard: Yard) -> None:
    first = yard.add(task_id="MINE")
    again = enqueue_work(yard.desk, Order(TaskAction.START, "RQ-1", task_id="MINE"))
    assert (again.task, again.is_new, len(yard.journal.entries)) == (first, False, 1)
    with pytest.raises(ConflictError) as error:
        yard.add("RQ-2", task_id="MINE")
    assert error.value.reason_code == "TASK_EXISTS"
    with pytest.raises(BadInputError) as bad:
        yard.add("RQ-3", task_id="no blanks")
    assert bad.value.reason_code == "TASK_ID_INVALID"


@pytest.mark.spec("QUE-8")
def test_cancelling_takes_a_queued_task_at_once_and_is_recorded(yard: Yard) -> None:
    task = yard.add()
    ended = yard.cancel(task.task_id, "by mika on vm")
    assert (ended.status, ended.error_message) == (TaskStatus.CANCELLED, "CANCELLED: by mika on vm")
    assert holder_of(yard.desk, ended) is None
    assert yard.ears.heard[-1] == ("ns", task.task_id)
    assert (yard.journal.entries[-1].reason_code, yard.journal.entries[-1].data["asked"]) == ("CANCELLED", "cancel")
    assert yard.add().status is TaskStatus.QUEUED, "its request is free again"


@pytest.mark.spec("QUE-8")
def test_a_running_task_is_let_go_when_its_runner_says_so_or_shows_no_heartbeat(yard: Yard) -> None:
    task_id = yard.add().task_id
    yard.claim()
    record = yard.runner(task_id=task_id)
    ended = yard.cancel(task_id, "by mika on vm")
    assert ended.status is TaskStatus.CANCELLED
    assert holder_of(yard.desk, ended) == record
    assert holder_of(replace(yard.desk, is_gone=lambda runner: runner == record), ended) is None
    yard.runner(task_id=task_id, last_heartbeat=yard.clock() - timedelta(seconds=TIMEOUT))
    assert holder_of(yard.desk, ended) is None
    yard.runner(task_id="ANOTHER")
    assert holder_of(yard.desk, ended) is None


@pytest.mark.spec("QUE-3", "QUE-8")
def test_what_is_over_cannot_be_cancelled_and_what_is_not_there_neither(yard: Yard) -> None:
    task_id = yard.add().task_id
    yard.queue.finish(yard.claim(), TaskEnd(TaskEvent.COMPLETED), yard.clock())
    decisions = len(yard.journal.entries)
    with pytest.raises(ConflictError) as error:
        yard.cancel(task_id, "")
    assert (error.value.reason_code, error.value.context["status"]) == ("TASK_NOT_ACTIVE", "COMPLETE")
    with pytest.raises(NotFoundError) as missing:
        yard.cancel(task_id[:-1], "")
    assert (missing.value.reason_code, missing.value.context["meant"]) == ("TASK_NOT_FOUND", task_id)
    assert len(yard.journal.entries) == decisions


@pytest.mark.spec("QUE-7", "QUE-8")
def test_what_was_handed_on_is_cancelled_where_it_goes_on(yard: Yard) -> None:
    task_id = yard.add().task_id
    handed_on = TaskEnd(TaskEvent.FAILED, "RUNNER_STOPPED", None, f"{task_id}.2")
    ended = yard.queue.finish(yard.claim(), handed_on, yard.clock())
    with pytest.raises(ConflictError):  # its runner died before it could hand it on
        yard.cancel(task_id, "")
    yard.queue.enqueue(successor_of(ended, yard.clock()))
    assert yard.cancel(task_id, "").task_id == f"{task_id}.2"
    assert {each.task_id: each.status for each in yard.store.tasks.values()} == {
        task_id: TaskStatus.ERROR,
        f"{task_id}.2": TaskStatus.CANCELLED,
    }
    assert yard.cancel(task_id, "").status is TaskStatus.CANCELLED, "once more does no harm"


@pytest.mark.spec("QUE-7", "QUE-8")
def test_what_is_handed_on_at_the_moment_of_the_cancel_is_followed(yard: Yard) -> None:
    task = yard.add()
    claimed = yard.claim()

    class HandingOn(MemoryQueue):
        def cancel(self, task_id: str, why: str, now: datetime) -> Task:
            if task_id == task.task_id:
                end = TaskEnd(TaskEvent.FAILED, "RUNNER_STOPPED", None, f"{task_id}.2")
                self.enqueue(successor_of(self.finish(claimed, end, now), now))
            return super().cancel(task_id, why, now)

    slow = Yard(queue=HandingOn(yard.store, "ns"))
    assert slow.cancel(task.task_id, "").task_id == f"{task.task_id}.2"
    assert {each.status for each in yard.store.tasks.values()} == {TaskStatus.ERROR, TaskStatus.CANCELLED}


def test_a_task_is_found_by_its_id_or_the_one_that_may_be_meant_is_named(yard: Yard) -> None:
    old = yard.add("RQ-1", task_id="OLD").task_id
    yard.cancel(old, "")
    live = yard.add("RQ-1", task_id="LIVE").task_id
    yard.cancel(yard.add("RQ-2", task_id="ZZZ").task_id, "")
    assert find_task(yard.queue, live).task_id == live
    assert close_match(yard.queue, "RQ-1") == live
    assert close_match(yard.queue, "RQ-2") == "ZZZ"
    assert close_match(yard.queue, "live") == live
    with pytest.raises(NotFoundError) as error:
        find_task(yard.queue, "SOMETHING ELSE")
    assert "meant" not in error.value.context


@pytest.mark.spec("QUE-9")
def test_a_list_ends_where_it_was_to_end_and_goes_on_from_there(yard: Yard) -> None:
    ids = [yard.add(f"RQ-{number}", task_id=f"T-{number}").task_id for number in range(7)]
    newest = ids[::-1]
    first = list_tasks(yard.queue, TaskFilter(limit=3))
    assert ([task.task_id for task in first.tasks], first.next_start) == (newest[:3], newest[2])
    second = list_tasks(yard.queue, TaskFilter(limit=3, start=first.next_start))
    assert [task.task_id for task in second.tasks] == newest[3:6]
    last = list_tasks(yard.queue, TaskFilter(limit=3, start=second.next_start))
    assert ([task.task_id for task in last.tasks], last.next_start) == (newest[6:], None)
    assert list_tasks(yard.queue, TaskFilter(limit=7)).next_start is None
    yard.claim()
    seen: list[int] = []
    running = list_tasks(yard.queue, TaskFilter([TaskStatus.RUNNING]), seen.append)
    assert [task.task_id for task in running.tasks] == ["T-0"]
    assert seen[-1] == 1


@pytest.mark.spec("QUE-9")
@pytest.mark.parametrize("limit", [1, 2, 3, 5, 9])
def test_lists_of_several_namespaces_are_one_list_in_parts_that_join(yard: Yard, limit: int) -> None:
    ids = {"a": ["T-1", "T-3", "same"], "a/b": ["T-2", "same"], "b": ["Own", "T-2", "same", "same!"]}
    for namespace, own in ids.items():
        for task_id in own:
            yard.store.queue(namespace).enqueue(a_task(1, namespace, task_id=task_id, request_id=task_id))
    listed: list[tuple[str, str]] = []
    start, parts = None, 0
    while parts == 0 or start is not None:
        starts = starts_of(start, ids)
        found = [list_tasks(yard.store.queue(name), TaskFilter(limit=limit, start=starts[name])) for name in ids]
        merged = merge_listings(found, limit)
        listed += [(task.task_id, task.namespace) for task in merged.tasks]
        start, parts = merged.next_start, parts + 1
    assert listed == [
        ("same!", "b"),
        ("same", "a"),
        ("same", "a/b"),
        ("same", "b"),
        ("T-3", "a"),
        ("T-2", "a/b"),
        ("T-2", "b"),
        ("T-1", "a"),
        ("Own", "b"),
    ]
    assert parts == -(-9 // limit)


def test_a_list_of_all_namespaces_may_start_at_any_id() -> None:
    assert starts_of("T-5", ["a", "b"]) == {"a": "T-5", "b": "T-5"}
    assert starts_of(None, ["a"]) == {"a": None}


def test_what_is_around_a_task_is_who_works_what_waits_and_who_runs_here(yard: Yard) -> None:
    yard.add("RQ-1")
    yard.claim()
    waiting = yard.add("RQ-2")
    record = yard.runner(task_id="T")
    around = look_around(yard.desk, [waiting])
    assert (around.runners, around.here, around.holder, around.start) == ((record,), HERE, None, START_RUNNER)
    assert (around.line.cut, around.line.places) == (frozenset(), {None: (), HERE.id: (place_key(waiting),)})
    locked = Yard(locks=MemoryLocks(request_lock("RQ-9")))
    holder = look_around(locked.desk, []).holder
    assert holder is not None
    assert holder.request_id == "RQ-9"
    shape = task_shape(waiting, around)
    assert shape["standing"]["code"] == "runner_busy"
    assert "claim_token" not in shape


def test_a_very_long_line_is_not_read_to_its_end(yard: Yard) -> None:
    many = [a_task(number, "ns", checkout=HERE) for number in range(LINE_PLACES + 1)]
    yard.store.tasks.update({("ns", task.task_id): task for task in many})
    yard.runner()
    last = a_task(LINE_PLACES + 1, "ns", checkout=HERE)
    line = look_around(yard.desk, [last]).line
    assert (line.cut, len(line.places[HERE.id]), line.places[None]) == (frozenset({HERE.id}), LINE_PLACES, ())
    standing = standing_of(last, look_around(yard.desk, [last]))
    assert standing is not None
    assert (standing.code, standing.facts["count"]) == ("behind_many", LINE_PLACES)


def test_what_is_ahead_is_told_without_reading_what_has_ended(yard: Yard) -> None:
    """A queue that was worked off by the thousand, and is empty now, has nothing ahead of anybody."""

    class Busy(MemoryQueue):
        def pages(self, *_asked: object) -> Iterator[TaskPage]:
            raise AssertionError("the whole namespace was read")

    desk = replace(yard.desk, queue=Busy(yard.store, "ns"))
    yard.runner()
    standing = standing_of(task := yard.add(), look_around(desk, [task]))
    assert standing is not None
    assert standing.code == "next"


@pytest.mark.spec("QUE-7")
@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({}, "idle"),
        ({"held_up": "AGENT_NOT_FOUND"}, "held_up"),
        ({"held_up": "AGENT_NOT_FOUND", "status": RunnerStatus.STOPPED}, "stopped"),
        ({"task_id": "T"}, "working"),
        ({"task_id": "T", "status": RunnerStatus.STOPPED}, "stopping"),
        ({"status": RunnerStatus.STOPPED}, "stopped"),
        ({"last_heartbeat": datetime(2026, 1, 2, 3, 0, tzinfo=UTC)}, "silent"),
    ],
)
def test_a_runner_is_summed_up_in_one_word(yard: Yard, fields: dict[str, Any], state: str) -> None:
    record = yard.runner(**fields)
    assert runner_state(record, yard.clock(), TIMEOUT) == state
    assert runner_state(record, yard.clock(), TIMEOUT, is_gone=True) == ("stopped" if state == "stopped" else "dead")


def test_namespaces_are_all_that_have_anything_and_ours(yard: Yard) -> None:
    yard.add()
    shapes = namespaces_shape(yard.store.namespaces(), [yard.runner()], "ours")
    assert [(each["namespace"], each["total"], each["runners_alive"], each["is_current"]) for each in shapes] == [
        ("ns", 1, 1, False),
        ("ours", 0, 0, True),
    ]


def test_an_error_of_the_store_is_not_taken_for_a_missing_task(yard: Yard) -> None:
    class Away:
        namespace = "ns"

        def get(self, task_id: str) -> Task:
            return yard.add()

        def cancel(self, task_id: str, why: str, now: datetime) -> Task:
            raise AiflowError(reason_code="STORE_UNREACHABLE")

    away: Any = Away()
    with pytest.raises(AiflowError) as error:
        Yard(queue=away).cancel("T", "")
    assert error.value.reason_code == "STORE_UNREACHABLE"
