"""What the queue asks of a real store: what it costs, whose items it touches, and what it makes of others' doings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aiflow.adapters.dynamo import client as dynamo_client
from aiflow.adapters.dynamo.client import DynamoClient
from aiflow.adapters.dynamo.queue import DynamoQueue, DynamoStore
from aiflow.adapters.dynamo.queue.calls import packed
from aiflow.adapters.dynamo.queue.claim import PAGE
from aiflow.adapters.dynamo.queue.items import ready_partition
from aiflow.domain.lifecycle import TaskEvent, TaskStatus
from aiflow.domain.queue.runner import HeartbeatWatch, RunnerStatus
from aiflow.domain.queue.task import (
    Checkout,
    TaskAction,
    TaskEnd,
    place_key,
    prompt_request_id,
    stamp,
    successor_id,
    successor_of,
)
from aiflow.domain.request import DEFAULT_PRIORITY, Priority
from aiflow.errors import ConflictError, EnvironmentProblemError
from aiflow.ports.tasks import Claimant
from dynamo import Dynamo
from queue_faults import Call, FaultyClient, OldIndexClient, watched
from task_builders import COMPLETED, HERE, LOST, ME, NOW, YOU, a_prompt, a_runner, a_task, later

QUEUE, GUARDS = "pm-runner-queue", "aiflow-guards"


@pytest.fixture(params=["local", "dynalite"])
def client(request: pytest.FixtureRequest, prepared: Callable[[str], DynamoClient]) -> DynamoClient:
    """Give a real store with its tables."""
    return prepared(request.param)


@pytest.fixture
def local(prepared: Callable[[str], DynamoClient]) -> DynamoClient:
    """Give DynamoDB Local, where one is enough."""
    return prepared("local")


def put(client: DynamoClient, table: str = QUEUE, **values: str | int | dict[str, Any]) -> None:
    """Put an item as another program does, or one that died."""
    client.call("put_item", TableName=table, Item=packed(values))


def item(client: DynamoClient, namespace: str, task_id: str) -> dict[str, Any]:
    """Read an item as it is."""
    key = {"namespace": {"S": namespace}, "task_id": {"S": task_id}}
    found: dict[str, Any] = client.call("get_item", TableName=QUEUE, Key=key, ConsistentRead=True)["Item"]
    return found


# What it costs


@pytest.mark.spec("QUE-5", "PRF-2", "PRF-3")
def test_a_claim_is_one_query_and_one_write(local: DynamoClient, namespace: str) -> None:
    queue = DynamoStore(local, poll_seconds=60).queue(namespace)
    for number in range(1, 20):
        queue.enqueue(a_task(number, namespace))
    queue.claim(ME, NOW)
    for _ in range(3):
        with watched(local) as calls:
            claimed = queue.claim(ME, NOW)
        assert [call.operation for call in calls] == ["query", "update_item"]
        assert calls[0].cost <= 1
        assert calls[1].cost <= 4
    assert claimed is not None
    with watched(local) as calls:
        queue.finish(claimed, TaskEnd(TaskEvent.FAILED, "UNIT_TEST_FAILED: " + "x" * 100), NOW)
    assert [(call.operation, call.cost) for call in calls] == [("update_item", 3), ("update_item", 1)]


@pytest.mark.spec("PRF-2")
def test_also_the_longest_small_task_is_within_what_a_claim_may_cost(local: DynamoClient, namespace: str) -> None:
    long = namespace.ljust(64, "n")
    queue = DynamoStore(local, poll_seconds=60).queue(long)
    checkout = Checkout("build-machine-0123456789", "/home/somebody/projects/" + "x" * 60)
    for number in range(PAGE + 1):
        task_id = f"TASK-20260102-030405-{number:06d}-abcdef.2"
        task = a_task(
            number, long, task_id=task_id, request_id=f"RQ-20260102-{number:04d}", checkout=checkout,
            action=TaskAction.RETRY_STEP, options={"step": "S01", "keep_changes": "yes"}, run_id="RUN-20260102-030405-abcdef",
            predecessor=task_id[:-2], place_at=NOW,
        )  # fmt: skip
        with watched(local) as calls:
            queue.enqueue(task, "p" * 200)
        # The item once, and once for each index: below 1 KB each.
        assert [(call.operation, call.cost) for call in calls] == [("update_item", 1), ("put_item", 3)]
    runner = Claimant("build-machine-0123456789-1234567-abcdef", checkout)
    with watched(local) as calls:
        assert queue.claim(runner, NOW) is not None
    [query, _anybodys, write] = calls
    assert len(query.answer["Items"]) == PAGE
    assert query.cost <= 1
    assert write.cost <= 4


def test_a_large_prompt_costs_a_claim_nothing(local: DynamoClient, namespace: str) -> None:
    queue = DynamoStore(local).queue(namespace)
    queue.enqueue(a_prompt(1, namespace), "p" * 20_000)
    with watched(local) as calls:
        assert queue.claim(ME, NOW) is not None
    assert calls[-1].cost <= 4


def test_what_anybody_may_take_is_looked_at_once_per_poll_while_there_is_other_work(
    local: DynamoClient, namespace: str
) -> None:
    for number in range(6):
        DynamoStore(local).queue(namespace).enqueue(a_task(number, namespace))

    def claims(poll_seconds: float) -> list[list[str]]:
        queue, made = DynamoStore(local, poll_seconds).queue(namespace), []
        for _ in range(3):
            with watched(local) as calls:
                assert queue.claim(ME, NOW) is not None
            made.append([call.operation for call in calls])
        return made

    looks, does_not = ["query", "query", "update_item"], ["query", "update_item"]
    assert claims(poll_seconds=600) == [looks, does_not, does_not]
    assert claims(poll_seconds=0) == [looks] * 3


def test_a_runner_with_nothing_else_to_do_looks_at_what_anybody_may_take_each_time(
    local: DynamoClient, namespace: str
) -> None:
    queue = DynamoStore(local, poll_seconds=60).queue(namespace)
    assert queue.claim(ME, NOW) is None
    queue.enqueue(a_prompt(1, namespace))
    assert queue.claim(ME, NOW) is not None


def test_more_than_a_page_of_what_anybody_may_take_goes_without_a_pause(local: DynamoClient, namespace: str) -> None:
    queue = DynamoStore(local, poll_seconds=60).queue(namespace)
    for number in range(2 * PAGE + 1):
        queue.enqueue(a_prompt(number, namespace))
    taken = [queue.claim(ME, NOW) for _ in range(2 * PAGE + 1)]
    assert [task.task_id for task in taken if task] == [f"TASK-{number:04d}" for number in range(2 * PAGE + 1)]


@pytest.mark.spec("QUE-5", "PRF-2")
def test_a_task_is_in_the_ready_index_only_while_it_waits(client: DynamoClient, namespace: str) -> None:
    queue = DynamoStore(client).queue(namespace)

    def ready() -> list[str]:
        found = client.call(
            "query", TableName=QUEUE, IndexName="ready-index", KeyConditionExpression="ready_pk = :p",
            ExpressionAttributeValues={":p": {"S": ready_partition(namespace, HERE)}},
        )  # fmt: skip
        return [each["task_id"]["S"] for each in found["Items"]]

    for number in (1, 2, 3):
        queue.enqueue(a_task(number, namespace))
    assert ready() == ["TASK-0001", "TASK-0002", "TASK-0003"]
    assert queue.claim(ME, NOW) is not None
    assert ready() == ["TASK-0002", "TASK-0003"]
    queue.cancel("TASK-0002", "", NOW)
    assert ready() == ["TASK-0003"]


# Namespaces


def namespaces_of(call: Call) -> set[str]:
    """Return every namespace that a call names; a call that names none reads them all."""
    values = call.asked.get("ExpressionAttributeValues", {})
    named = [call.asked.get("Key", {}).get("namespace"), call.asked.get("Item", {}).get("namespace")]
    named.append(values.get(":namespace"))
    texts = {each["S"] for each in named if each}
    if ":partition" in values:
        texts.add(values[":partition"]["S"].rpartition("#")[0])
    return texts


@pytest.mark.spec("QUE-5", "QUE-9")
def test_no_operation_of_one_namespace_asks_for_another(client: DynamoClient, namespace: str) -> None:
    store = DynamoStore(client)
    other = store.queue(f"{namespace}-b")
    other.enqueue(a_task(1, other.namespace))
    other.enqueue(a_prompt(2, other.namespace))
    put(client, namespace=other.namespace, task_id="theirs", status="QUEUED")
    with watched(client) as calls:
        queue, runners = store.queue(namespace), store.runners(namespace)
        queue.enqueue(a_task(1, namespace))
        queue.enqueue(a_prompt(2, namespace), "p" * 1_000)
        with pytest.raises(ConflictError):
            queue.enqueue(a_task(3, namespace, request_id="RQ-0001"))
        task, prompt = queue.claim(ME, NOW), queue.claim(ME, NOW)
        assert task is not None
        assert prompt is not None
        queue.prompt(prompt)
        queue.note_run(task, "RUN-20260102-030405-abcdef", NOW)
        queue.finish(task, COMPLETED, NOW)
        queue.end_lost(prompt, LOST, NOW)
        queue.enqueue(successor_of(prompt, NOW, HERE))
        queue.cancel("TASK-0002.2", "", NOW)
        queue.claim(ME, NOW)
        queue.get("TASK-0001")
        queue.tasks_of(ME.runner_id)
        queue.waiting(HERE, 5)
        queue.waiting(None, 5)
        queue.adopt(NOW)
        list(queue.pages())
        queue.counts()
        runners.save(a_runner(namespace=namespace))
        [runner] = runners.all()
        runners.put_to_rest(runner)
        runners.forget(runner)
    assert len(calls) > 25
    assert {call.operation for call in calls} == {"get_item", "put_item", "update_item", "delete_item", "query"}
    assert [call for call in calls if namespaces_of(call) != {namespace}] == []
    assert other.counts()[TaskStatus.QUEUED] == 3
    # What was asked for is what is there: the index gives no other namespace's items either.
    shown = [item.get("namespace") for call in calls for item in call.answer.get("Items", ())]
    assert {each["S"] for each in shown if each} == {namespace}


@pytest.mark.spec("QUE-9", "PRF-2")
def test_what_waits_is_read_without_what_has_ended_or_is_too_far_back(client: DynamoClient, namespace: str) -> None:
    for number in range(4):
        put(client, namespace=namespace, task_id=f"past-{number}", status="COMPLETE", prompt="p" * 300_000)
    queue = DynamoStore(client).queue(namespace)
    for number in range(3):
        queue.enqueue(a_task(number, namespace))
    with watched(client) as calls:
        assert [len(queue.waiting(HERE, most)) for most in (2, 3, 10)] == [2, 3, 3]
        assert queue.waiting(None, 10) == ()
    assert [(call.asked["IndexName"], call.asked["Limit"]) for call in calls] == [
        ("ready-index", 2),
        ("ready-index", 3),
        ("ready-index", 10),
        ("ready-index", 10),
    ]


@pytest.mark.spec("QUE-9")
def test_listings_go_through_every_page(client: DynamoClient, namespace: str) -> None:
    for number in range(8):
        put(
            client, namespace=namespace, task_id=f"theirs-{number}", status="QUEUED" if number in (0, 7) else "COMPLETE",
            prompt="p" * 300_000, created_at="2026-01-02T03:04:05Z",
        )  # fmt: skip
    store = DynamoStore(client)
    queue = store.queue(namespace)
    pages = list(queue.pages())
    assert len(pages) >= 2
    assert [task.task_id for page in pages for task in page.tasks] == [
        f"theirs-{number}" for number in range(7, -1, -1)
    ]
    start = pages[0].next_start
    assert [page.tasks for page in queue.pages(start=start)] == [page.tasks for page in pages[1:]]
    queued = [task.task_id for page in queue.pages((TaskStatus.QUEUED,)) for task in page.tasks]
    assert queued == ["theirs-7", "theirs-0"]
    seen: list[int] = []
    assert queue.counts(seen.append)[TaskStatus.COMPLETE] == 6
    assert seen == sorted(seen)
    assert (len(seen) >= 2, seen[-1]) == (True, 8)
    assert store.namespaces()[namespace] == queue.counts()
    assert queue.adopt(NOW) == 2
    claimed = [queue.claim(ME, NOW), queue.claim(ME, NOW)]
    assert {task.task_id for task in queue.tasks_of(ME.runner_id)} == {task.task_id for task in claimed if task}
    assert len(queue.tasks_of(ME.runner_id)) == 2


# Tasks and runners of another program


@pytest.mark.spec("QUE-1", "QUE-3")
def test_a_task_of_another_program_is_adopted_as_a_prompt(client: DynamoClient, namespace: str) -> None:
    seed = {
        "namespace": namespace, "task_group_id": "group-1", "session_id": "session-1", "status": "QUEUED",
        "updated_at": "2026-01-01T00:00:00.000Z",
    }  # fmt: skip
    put(client, **seed, task_id="task-001", prompt="Write a poem", created_at="2026-01-01T00:00:00.000Z")
    put(client, **seed, task_id="task-002", prompt="p" * 5_000, created_at="2026-01-01T09:00:00.000+09:00")
    put(client, **{**seed, "status": "RUNNING"}, task_id="task-003", claimed_by="theirs")
    queue = DynamoStore(client, 0).queue(namespace)
    assert queue.claim(ME, NOW) is None
    seen = queue.get("task-001")
    assert seen is not None
    assert (seen.action, seen.prompt, seen.checkout, seen.run_id) == (TaskAction.PROMPT, "Write a poem", None, None)
    assert queue.adopt(NOW) == 2
    assert queue.adopt(NOW) == 0
    first, second = queue.claim(ME, NOW), queue.claim(ME, NOW)
    assert first is not None
    assert second is not None
    assert (first.task_id, first.action, first.request_id) == (
        "task-001",
        TaskAction.PROMPT,
        prompt_request_id("task-001"),
    )
    assert (second.task_id, second.request_id, queue.prompt(second)) == (
        "task-002",
        prompt_request_id("task-002"),
        "p" * 5_000,
    )
    assert queue.claim(ME, NOW) is None
    assert item(client, namespace, "task-001")["task_group_id"] == {"S": "group-1"}
    assert item(client, namespace, "task-001")["session_id"] == {"S": "session-1"}
    queue.note_run(first, "RUN-20260102-030405-abcdef", NOW)
    ended = queue.finish(first, COMPLETED, NOW)
    assert (ended.status, ended.run_id) == (TaskStatus.COMPLETE, "RUN-20260102-030405-abcdef")


@pytest.mark.spec("QUE-7", "QUE-3")
def test_a_running_task_of_the_seeds_fields_alone_can_be_ended_and_goes_on(
    client: DynamoClient, namespace: str
) -> None:
    put(
        client, namespace=namespace, task_id="task-001", task_group_id="group-1", session_id="session-1",
        status="RUNNING", prompt="Write a poem", created_at="2026-01-01T00:00:00.000Z",
        updated_at="2026-01-01T00:00:00.000Z", claimed_by="theirs",
    )  # fmt: skip
    queue = DynamoStore(client, 0).queue(namespace)
    [held] = queue.tasks_of("theirs")
    assert [task for page in queue.pages([TaskStatus.RUNNING]) for task in page.tasks] == [held]
    end = TaskEnd(TaskEvent.FAILED, "RUNNER_LOST: theirs", None, successor_id(held.task_id))
    ended = queue.end_lost(held, end, NOW)
    assert ended is not None
    assert (ended.status, ended.reason_code) == (TaskStatus.ERROR, "RUNNER_LOST")
    following = queue.enqueue(successor_of(ended, NOW), queue.prompt(ended))
    assert (following.task_id, following.checkout, following.losses) == ("task-001.2", None, 1)
    claimed = queue.claim(ME, NOW)
    assert claimed is not None
    assert (claimed.task_id, claimed.request_id) == ("task-001.2", prompt_request_id("task-001"))


def test_a_name_that_could_be_no_request_and_what_is_no_task_are_left_alone(
    client: DynamoClient, namespace: str
) -> None:
    names = ("../../etc/passwd", "a b", "task.1", "x" * 129)
    for name in names:
        put(client, namespace=namespace, task_id=name, status="QUEUED", prompt="text")
    put(client, namespace=namespace, task_id="settings", theme="dark")
    put(client, namespace=namespace, task_id="newer", status="QUEUED", action="dance")
    put(client, namespace=namespace, task_id="odd", status="QUEUED", created_at="yesterday", prompt="text")
    queue = DynamoStore(client, 0).queue(namespace)
    assert queue.adopt(NOW) == 1
    claimed = queue.claim(ME, NOW)
    assert claimed is not None
    assert (claimed.task_id, claimed.place_at) == ("odd", NOW)
    assert queue.claim(ME, NOW) is None
    assert queue.counts()[TaskStatus.QUEUED] == len(names)
    assert queue.get("settings") is None
    assert {task.task_id for page in queue.pages() for task in page.tasks} == {*names, "odd"}
    assert queue.cancel("a b", "", NOW).status is TaskStatus.CANCELLED
    with pytest.raises(ConflictError, match="TASK_EXISTS"):
        queue.enqueue(a_task(1, namespace, task_id="settings"))


@pytest.mark.spec("QUE-1", "QUE-5")
def test_what_only_a_newer_version_can_do_is_not_claimed_and_holds_up_nobody(
    client: DynamoClient, namespace: str
) -> None:
    ready = {"ready_pk": f"{namespace}#*", "ready_sk": "P0#2026-01-01T00:00:00.000000Z#TASK-0"}
    put(client, namespace=namespace, task_id="TASK-0", status="QUEUED", action="dance", prompt="", **ready)
    queue = DynamoStore(client, 0).queue(namespace)
    queue.enqueue(a_task(1, namespace))
    claimed = queue.claim(ME, NOW)
    assert claimed is not None
    assert claimed.task_id == "TASK-0001"
    assert queue.claim(ME, NOW) is None
    assert item(client, namespace, "TASK-0")["status"] == {"S": "QUEUED"}


@pytest.mark.spec("QUE-1", "QUE-9")
@pytest.mark.parametrize("fields", [{"prompt": "p" * 395_000}, {"prompt": "p", "notes": "n" * 409_450}], ids=["a", "b"])
def test_a_foreign_task_that_leaves_no_room_is_left_alone_and_holds_up_nobody(
    client: DynamoClient, namespace: str, fields: dict[str, str]
) -> None:
    put(client, namespace=namespace, task_id="large", status="QUEUED", created_at="2026-01-01T00:00:00Z", **fields)
    put(client, namespace=namespace, task_id="small", status="QUEUED", created_at="2026-01-01T00:00:00Z", prompt="p")
    queue = DynamoStore(client, 0).queue(namespace)
    assert queue.adopt(NOW) == 1
    claimed = queue.claim(ME, NOW)
    assert claimed is not None
    assert claimed.task_id == "small"
    assert queue.claim(ME, NOW) is None


@pytest.mark.spec("QUE-1")
@pytest.mark.parametrize("at", ["0001-01-01T00:00:00+09:00", "9999-12-31T23:59:59-09:00"])
def test_a_time_at_the_end_of_all_times_stops_nobody(client: DynamoClient, namespace: str, at: str) -> None:
    put(client, namespace=namespace, task_id="task-001", status="QUEUED", prompt="p", created_at=at, updated_at=at)
    queue = DynamoStore(client, 0).queue(namespace)
    assert [place_key(task) for page in queue.pages() for task in page.tasks]
    assert queue.adopt(NOW) == 1
    assert queue.claim(ME, NOW) is not None


@pytest.mark.spec("QUE-9")
def test_a_prompt_whose_rest_is_gone_is_not_done_by_half(dynamo: Dynamo) -> None:
    queue, bare = DynamoStore(dynamo.connect()), dynamo.client()
    queue.prepare()
    task = queue.queue("shop").enqueue(a_task(1, "shop"), "p" * 5_000)
    bare.delete_table(TableName="aiflow-prompts")
    with pytest.raises(EnvironmentProblemError, match="PROMPT_LOST"):
        queue.queue("shop").prompt(task)


@pytest.mark.spec("QUE-1")
@pytest.mark.parametrize(
    "odd",
    [
        {"priority": 5},
        {"priority": "high"},
        {"options": "none"},
        {"options": {"step_id": 3}},
        {"checkout_id": {}},
        {"fence": "x"},
        {"prompt_bytes": "5"},
        {"is_private": "no"},
        {"request_id": 4},
    ],
    ids=str,
)
def test_attributes_that_mean_something_else_to_another_program_stop_nobody(
    client: DynamoClient, namespace: str, odd: dict[str, Any]
) -> None:
    put(client, namespace=namespace, task_id="task-001", status="RUNNING", prompt="text", **odd)
    queue = DynamoStore(client, 0).queue(namespace)
    seen = queue.get("task-001")
    assert seen is not None
    assert (seen.priority, seen.checkout, dict(seen.options)) == (DEFAULT_PRIORITY, None, {})
    assert (seen.prompt_bytes, seen.fence, seen.request_id) == (4, 0, prompt_request_id("task-001"))
    put(client, namespace=namespace, task_id="strange", status="QUEUED", action={})
    assert [task.task_id for page in queue.pages() for task in page.tasks] == ["task-001"]
    assert queue.counts()[TaskStatus.RUNNING] == 1


def test_a_runners_record_that_is_odd_stops_nobody(client: DynamoClient, namespace: str) -> None:
    odd: dict[str, Any] = {
        "pid": "12",
        "beats": "x",
        "host": 3,
        "project_root": 3,
        "version": 3,
        "process_started_at": "x",
    }
    put(client, "pm-runner-runners", namespace=namespace, runner_id="theirs", status="running", **odd)
    [seen] = DynamoStore(client).runners(namespace).all()
    assert (seen.pid, seen.checkout, seen.version) == (None, Checkout("", ""), "")


@pytest.mark.spec("QUE-2a")
@pytest.mark.parametrize(
    "name", ["AWS_PROFILE", "AWS_CONFIG_FILE", "AWS_DEFAULTS_MODE", "AWS_ACCOUNT_ID_ENDPOINT_MODE", "HTTP_PROXY"]
)
def test_nothing_of_the_users_aws_counts_for_a_store_with_an_address(
    dynamo: Dynamo, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    damaged = tmp_path / "damaged"
    damaged.write_text("[default")
    monkeypatch.setenv(name, "http://127.0.0.1:9" if name == "HTTP_PROXY" else str(damaged))
    dynamo_client._own_session.cache_clear()  # as in a process that begins with this
    assert dynamo.connect().call("list_tables")["TableNames"] == []


def test_a_table_that_is_gone_is_trouble_with_the_store_and_no_defect(dynamo: Dynamo) -> None:
    client = dynamo.connect()
    store = DynamoStore(client)
    store.prepare()
    task = store.queue("app").enqueue(a_task(1, "app"))
    for name in client.call("list_tables")["TableNames"]:
        client.call("delete_table", TableName=name)
    with pytest.raises(EnvironmentProblemError, match="STORE_UNREACHABLE"):
        store.queue("app").finish(task, COMPLETED, NOW)
    with pytest.raises(EnvironmentProblemError, match="STORE_UNREACHABLE"):
        store.queue("app").enqueue(a_task(2, "app"))


def test_a_task_that_lies_about_is_made_findable_by_who_meets_it(client: DynamoClient, namespace: str) -> None:
    put(client, namespace=namespace, task_id="task-001", status="QUEUED", prompt="text")
    put(client, GUARDS, namespace=namespace, request_id=prompt_request_id("task-001"), task_id="task-001", fence=4)
    queue = DynamoStore(client, 0).queue(namespace)
    with pytest.raises(ConflictError, match="REQUEST_QUEUED"):
        queue.enqueue(a_prompt(2, namespace, request_id=prompt_request_id("task-001")))
    claimed = queue.claim(ME, NOW)
    assert claimed is not None
    assert (claimed.task_id, claimed.fence) == ("task-001", 5)


@pytest.mark.spec("QUE-1", "QUE-7")
def test_a_runner_of_another_program_is_seen_and_timed_by_its_heartbeat(client: DynamoClient, namespace: str) -> None:
    def beat(at: str) -> None:
        put(
            client, "pm-runner-runners", namespace=namespace, runner_id="theirs", status="running",
            last_heartbeat=at, started_at=at, project_root="/srv/theirs",
        )  # fmt: skip

    runners, queue = DynamoStore(client).runners(namespace), DynamoStore(client).queue(namespace)
    beat("2026-01-01T00:00:00.000Z")
    [seen] = runners.all()
    assert (seen.runner_id, seen.checkout.root, seen.task_id) == ("theirs", "/srv/theirs", None)
    beat("2026-01-01T00:00:01.000Z")
    [moved] = runners.all()
    vigil = HeartbeatWatch().look([seen], 0, 120).look([moved], 60, 120)
    assert not vigil.is_lost(moved, 120, 120)
    assert vigil.is_lost(moved, 180, 120)
    assert not runners.put_to_rest(seen)
    put(client, namespace=namespace, task_id="task-001", status="RUNNING", claimed_by="theirs", created_at=stamp(NOW))
    [lost] = queue.tasks_of("theirs")
    ended = queue.end_lost(lost, LOST, NOW)
    assert ended is not None
    assert ended.status is TaskStatus.ERROR
    assert runners.put_to_rest(moved)
    assert [runner.status for runner in runners.all()] == [RunnerStatus.STOPPED]


# Guards that somebody left behind


@pytest.mark.spec("QUE-5")
def test_a_guard_whose_task_is_final_is_taken_over(client: DynamoClient, namespace: str) -> None:
    queue = DynamoStore(client).queue(namespace)
    queue.enqueue(a_task(1, namespace))
    queue.cancel("TASK-0001", "", NOW)
    put(client, GUARDS, namespace=namespace, request_id="RQ-0001", task_id="TASK-0001", fence=6)
    assert queue.enqueue(a_task(2, namespace, request_id="RQ-0001")).fence == 7


@pytest.mark.spec("QUE-5")
def test_a_guard_whose_task_never_came_is_taken_over_and_the_task_can_come_no_more(
    client: DynamoClient, namespace: str
) -> None:
    queue = DynamoStore(client).queue(namespace)
    put(client, GUARDS, namespace=namespace, request_id="RQ-0001", task_id="TASK-0001", fence=1)
    second = queue.enqueue(a_task(2, namespace, request_id="RQ-0001"))
    assert second.fence == 2
    buried = queue.get("TASK-0001")
    assert buried is not None
    assert (buried.status, buried.reason_code) == (TaskStatus.CANCELLED, "CANCELLED")
    # Whoever stood between its guard and its task comes too late, and is told why.
    with pytest.raises(ConflictError) as caught:
        queue.enqueue(a_task(1, namespace))
    assert (caught.value.reason_code, caught.value.context["task_id"]) == ("REQUEST_QUEUED", "TASK-0002")
    queue.cancel("TASK-0002", "", NOW)
    with pytest.raises(ConflictError, match="TASK_EXISTS"):
        queue.enqueue(a_task(1, namespace))
    assert queue.enqueue(a_task(3, namespace, request_id="RQ-0001")).status is TaskStatus.QUEUED


@pytest.mark.spec("QUE-5")
def test_who_is_overtaken_between_guard_and_task_does_not_make_a_second_one(
    client: DynamoClient, namespace: str
) -> None:
    """The slow one has its guard; another buries it and goes on; then the slow one's write of the task comes."""
    queue = DynamoStore(client).queue(namespace)
    enqueueing = queue._enqueueing
    slow = a_task(1, namespace)
    fence = enqueueing._take_guard(slow)
    queue.enqueue(a_task(2, namespace, request_id="RQ-0001"))
    from aiflow.adapters.dynamo.queue.enqueue import WantedTask

    with pytest.raises(ConflictError, match="REQUEST_QUEUED"):
        enqueueing._put(WantedTask(slow, None), fence)
    live = [task for page in queue.pages() for task in page.tasks if not task.is_final]
    assert [task.task_id for task in live] == ["TASK-0002"]


def test_a_guard_that_names_a_task_of_another_request_is_nobodys(client: DynamoClient, namespace: str) -> None:
    queue = DynamoStore(client).queue(namespace)
    queue.enqueue(a_task(1, namespace))
    put(client, GUARDS, namespace=namespace, request_id="RQ-0002", task_id="TASK-0001", fence=1)
    assert queue.enqueue(a_task(2, namespace)).fence == 2


# An index that is late, or shows what is gone


def stale(namespace: str, numbers: range) -> list[dict[str, Any]]:
    """Make entries of the ready-index for tasks that are claimed, gone or were never there."""
    return [
        {
            "namespace": {"S": namespace},
            "task_id": {"S": f"STALE-{number:04d}"},
            "ready_pk": {"S": ready_partition(namespace, HERE)},
            "ready_sk": {"S": f"P0#{stamp(NOW)}#STALE-{number:04d}"},
        }
        for number in numbers
    ]


@pytest.mark.spec("QUE-5")
def test_old_entries_of_the_index_never_block_what_is_behind_them(local: DynamoClient, namespace: str) -> None:
    old = OldIndexClient(local, stale(namespace, range(16)), [], stale(namespace, range(16, 32)))
    queue = DynamoStore(old, poll_seconds=60).queue(namespace)
    queue.enqueue(a_task(1, namespace, task_id="STALE-0003", request_id="RQ-9"))
    queue.cancel("STALE-0003", "", NOW)
    queue.enqueue(a_task(1, namespace))
    queue.enqueue(a_task(2, namespace))
    first = queue.claim(ME, NOW)
    old.writes = 0
    second = queue.claim(ME, NOW)
    assert old.writes == 1
    assert {task.task_id for task in (first, second) if task} == {"TASK-0001", "TASK-0002"}
    assert queue.claim(ME, NOW) is None
    cancelled = queue.get("STALE-0003")
    assert cancelled is not None
    assert cancelled.status is TaskStatus.CANCELLED


@pytest.mark.spec("QUE-3", "QUE-6")
def test_an_entry_that_comes_back_does_not_bring_its_task_back(local: DynamoClient, namespace: str) -> None:
    plain = DynamoStore(local).queue(namespace)
    plain.enqueue(a_task(1, namespace, priority=Priority.P0))
    [entry] = [
        {**stale(namespace, range(1))[0], "task_id": {"S": "TASK-0001"}},
    ]
    claimed = plain.claim(ME, NOW)
    assert claimed is not None
    ended = plain.finish(claimed, COMPLETED, NOW)
    other = DynamoStore(OldIndexClient(local, [entry])).queue(namespace)
    assert other.claim(YOU, NOW) is None
    assert plain.get("TASK-0001") == ended


def test_lost_races_widen_the_choice_and_wins_narrow_it(local: DynamoClient, namespace: str) -> None:
    queue = DynamoStore(OldIndexClient(local, stale(namespace, range(3))), 60).queue(namespace)
    for number in range(1, 9):
        queue.enqueue(a_task(number, namespace, priority=Priority.P0 if number < 8 else Priority.P1))
    assert queue._claiming.window == 1
    queue.claim(ME, NOW)
    assert queue._claiming.window == 8
    for left in (7, 7, 6, 6, 5, 5):
        task = queue.claim(ME, NOW)
        assert task is not None
        # Among the most urgent only, however wide the choice.
        assert task.priority is Priority.P0
        assert queue._claiming.window == left
    last = queue.claim(ME, NOW)
    assert last is not None
    assert (last.task_id, queue._claiming.window) == ("TASK-0008", 4)


@pytest.mark.spec("QUE-5", "QUE-6")
def test_a_write_that_meets_its_own_first_try_has_succeeded(local: DynamoClient, namespace: str) -> None:
    """boto3 asks again by itself when an answer is lost; the second try is refused by what the first one wrote."""

    def asking_twice(at: int) -> DynamoQueue:
        return DynamoStore(FaultyClient(local, "twice", at)).queue(namespace)

    plain = DynamoStore(local).queue(namespace)
    for number in (1, 2):
        plain.enqueue(a_task(number, namespace))
    first, second = asking_twice(2).claim(ME, NOW), asking_twice(2).claim(ME, NOW)
    assert first is not None
    assert second is not None
    assert (first.task_id, second.task_id) == ("TASK-0001", "TASK-0002")
    assert asking_twice(0).finish(first, COMPLETED, NOW).status is TaskStatus.COMPLETE
    assert asking_twice(0).cancel("TASK-0002", "", NOW).status is TaskStatus.CANCELLED


def test_a_store_that_is_gone_is_said_so(dynamo_endpoint: str) -> None:
    gone = Dynamo("http://127.0.0.1:9").connect()
    with pytest.raises(EnvironmentProblemError) as caught:
        DynamoStore(gone).prepare()
    assert caught.value.reason_code == "STORE_UNREACHABLE"


def test_later_claims_see_a_task_that_is_put_ahead(local: DynamoClient, namespace: str) -> None:
    queue = DynamoStore(local, 60).queue(namespace)
    queue.enqueue(a_task(1, namespace))
    queue.enqueue(a_task(2, namespace))
    queue.claim(ME, NOW)
    queue.enqueue(replace(a_task(3, namespace), priority=Priority.P0, created_at=later(9)))
    task = queue.claim(ME, NOW)
    assert task is not None
    assert task.task_id == "TASK-0003"
