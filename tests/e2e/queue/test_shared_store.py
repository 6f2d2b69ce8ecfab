"""Work in a terminal beside a shared store (SPEC §0): the store knows only what was queued."""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from aiflow.adapters.dynamo.client import StoreAddress, connect
from aiflow.domain.queue.task import stamp
from dynamo import REGION, Dynamo
from e2e.bench import Bench
from left_by_terminals import AT_WORK, leave_record, leave_task
from runner_yard import NAMESPACE, Yard, now

HEAVY = ("boto3", "botocore", "aiflow.adapters.dynamo", "aiflow.usecases.runner.heartbeat")


@pytest.fixture
def yard(bench: Bench, dynamo: Dynamo) -> Yard:
    """Give a checkout with a shared queue."""
    return Yard(bench, dynamo)


@contextmanager
def listening() -> Iterator[tuple[str, list[bytes]]]:
    """Give the URL of a store that only notes who calls it."""
    heard: list[bytes] = []

    def hear(server: socket.socket) -> None:
        while True:
            try:
                caller, _ = server.accept()
            except OSError:
                return
            with caller:
                heard.append(caller.recv(1000))

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=hear, args=(server,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}", heard
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


@pytest.mark.spec("QUE-2", "QUE-5")
def test_nothing_that_works_in_a_terminal_calls_a_shared_store(bench: Bench) -> None:
    with listening() as (url, heard):
        bench.aiflow.environ |= {"AIFLOW_QUEUE_STORE": url, "AIFLOW_NAMESPACE": NAMESPACE}
        bench.agent.does("implementer", "ask('Which?')")
        bench.run(code=5)
        bench.aiflow.json("resume", "RQ-1", "--answer", "this one", code=5)
        bench.aiflow.json("retry-step", "RQ-1", code=5)
        bench.agent.forget()
        assert bench.aiflow.json("replan", "RQ-1", "--answer", "this one")["state"] == "DONE"
        bench.add_request("RQ-2")
        assert bench.aiflow.json("auto")["reason_code"] == "AUTO_NOTHING_RUNNABLE"
        assert (len(bench.run_ids("RQ-1")), len(bench.run_ids("RQ-2")), heard) == (2, 1, [])
        bench.aiflow.json("queue", "add", "Say hello", code=3)
        assert heard != [], "who queues something calls it"


@pytest.mark.spec("QUE-2", "PRF-6")
@pytest.mark.parametrize("store", ["local", "http://127.0.0.1:9"])
def test_nothing_of_a_store_is_imported(bench: Bench, store: str) -> None:
    script = (
        "import sys, os\n"
        "os._exit = lambda code: print(*sorted(sys.modules), file=sys.stderr)\n"
        "from aiflow.cli.main import main\n"
        "main(['run', 'RQ-1', '--json'])\n"
    )
    process = bench.start(argv=[sys.executable, "-c", script], env={"AIFLOW_QUEUE_STORE": store})
    out, modules = process.communicate(timeout=60)
    assert json.loads(out)["state"] == "DONE"
    assert [name for name in modules.split() if name.startswith(HEAVY)] == []


@pytest.mark.spec("QUE-4")
def test_a_task_whose_request_was_run_in_a_terminal_meanwhile_ends_with_the_reason(yard: Yard) -> None:
    task_id = yard.add()
    yard.bench.run()
    assert yard.task(task_id).status == "QUEUED"
    yard.work()
    ended = yard.task(task_id)
    assert (ended.status, ended.reason_code, len(yard.bench.run_ids())) == ("ERROR", "NOT_READY", 1)


@pytest.mark.spec("QUE-5", "QUE-7")
def test_a_runner_ends_what_an_older_versions_terminal_left_and_carries_none_of_it_out(
    yard: Yard, dynamo: Dynamo
) -> None:
    client = connect(StoreAddress(dynamo.endpoint, REGION, dynamo.key, dynamo.key))
    yard.bench.add_request("RQ-2")
    leave_record(client, NAMESPACE, yard.checkout, last_heartbeat=stamp(now()))
    leave_task(client, NAMESPACE, 1, yard.checkout, task_group_id="RQ-1")
    leave_task(client, NAMESPACE, 2, yard.checkout, task_group_id="RQ-2", **AT_WORK)
    told = yard.work()
    assert "claimed" not in [line["event"] for line in told]
    ended = [task for page in yard.queue.pages() for task in page.tasks]
    assert [(task.task_id, task.status, task.reason_code, task.successor) for task in ended] == [
        ("TASK-0002", "ERROR", "RUNNER_LOST", None),
        ("TASK-0001", "ERROR", "RUNNER_LOST", None),
    ]
    assert (yard.bench.run_ids("RQ-1"), yard.bench.run_ids("RQ-2")) == ([], [])
