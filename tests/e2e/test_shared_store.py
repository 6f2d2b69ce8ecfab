"""Work in a terminal beside a shared store (SPEC §0): recorded there as a task that only its maker claims."""

from __future__ import annotations

import json
import signal
import sys
from typing import Any

import pytest

from aiflow.domain.task import Task
from dynamo import Dynamo
from e2e.bench import Bench, is_alive, wait_for
from runner_yard import Yard

HANG = "(HERE / 'pid').write_text(str(os.getpid())); time.sleep(600)"


@pytest.fixture
def yard(bench: Bench, dynamo: Dynamo) -> Yard:
    """Give a checkout with a shared queue."""
    return Yard(bench, dynamo)


def tasks(yard: Yard) -> list[Task]:
    """Every task, oldest first."""
    return [task for page in yard.queue.pages() for task in page.tasks][::-1]


def shown(yard: Yard) -> list[tuple[str, ...]]:
    return [(str(t.action), t.request_id, str(t.status), t.reason_code or "") for t in tasks(yard)]


def start_hanging(yard: Yard, *args: str) -> tuple[Any, int]:
    yard.bench.agent.does("implementer", HANG)
    process = yard.bench.start(*args, "--json")
    path = yard.bench.agent.folder / "pid"
    wait_for(lambda: (path.exists() and path.read_text()) or process.poll() is not None)
    assert process.poll() is None, process.communicate()
    yard.bench.agent.forget()
    return process, int(path.read_text())


@pytest.mark.faults
@pytest.mark.spec("QUE-4", "QUE-7")
def test_every_way_to_work_in_a_terminal_is_a_task(yard: Yard) -> None:
    yard.bench.agent.does("implementer", "ask('Which?')")
    yard.bench.run(code=5)
    yard.bench.aiflow.json("retry-step", "RQ-1", code=5)
    yard.bench.agent.forget()
    yard.bench.aiflow.json("replan", "RQ-1", "--answer", "this one")
    yard.bench.add_request("RQ-2")
    yard.bench.aiflow.json("auto")
    yard.bench.aiflow.json("resume", "RQ-1", code=4)
    guard = f".auto-run:{yard.checkout.id}"
    assert shown(yard) == [
        ("start", "RQ-1", "ERROR", "NEEDS_CLARIFICATION"),
        ("retry_step", "RQ-1", "ERROR", "NEEDS_CLARIFICATION"),
        ("replan", "RQ-1", "COMPLETE", ""),
        ("auto_run", guard, "COMPLETE", ""),
        ("resume", "RQ-1", "ERROR", "RUN_NOT_RESUMABLE"),
    ]
    assert {task.is_private for task in tasks(yard)} == {True}
    assert [task.priority.value for task in tasks(yard)] == ["P1", "P1", "P1", "P2", "P1"]
    assert [task.run_id for task in tasks(yard)][:3] == [*yard.bench.run_ids()[:1] * 2, yard.bench.run_ids()[1]]
    assert {each.is_at_rest for each in yard.runners()} == {True}


@pytest.mark.spec("QUE-7", "RUN-11")
def test_one_that_was_killed_does_not_keep_its_request_from_the_next(yard: Yard) -> None:
    process, pid = start_hanging(yard, "run", "RQ-1")
    process.kill()
    process.communicate()
    wait_for(lambda: not is_alive(pid))
    # The look beside the work comes too late for this: whoever is refused looks first.
    yard.bench.run()
    assert shown(yard) == [("start", "RQ-1", "ERROR", "RUNNER_LOST"), ("start", "RQ-1", "COMPLETE", "")]
    assert len(yard.bench.run_ids()) == 1


@pytest.mark.spec("QUE-8")
def test_whoever_sees_it_in_the_queue_can_cancel_it_and_no_runner_finds_it(yard: Yard) -> None:
    process, pid = start_hanging(yard, "run", "RQ-1")
    [task] = tasks(yard)
    [runner] = yard.runners()
    assert (task.status, task.claimed_by, str(runner.status)) == ("RUNNING", runner.runner_id, "running")
    yard.queue.cancel(task.task_id, "not needed", task.created_at)
    out, _ = process.communicate(timeout=20)
    assert (process.returncode, json.loads(out)["reason_code"], is_alive(pid)) == (4, "CANCELLED", False)
    assert yard.task(task.task_id).status == "CANCELLED"


@pytest.mark.spec("QUE-8", "AUT-3")
def test_an_auto_run_in_a_terminal_is_cancelled_through_the_queue(yard: Yard) -> None:
    process, pid = start_hanging(yard, "auto")
    [task] = tasks(yard)
    yard.queue.cancel(task.task_id, "not needed", task.created_at)
    out, _ = process.communicate(timeout=20)
    assert (json.loads(out)["reason_code"], is_alive(pid)) == ("AUTO_STOPPED_BY_PERSON", False)
    assert yard.task(task.task_id).status == "CANCELLED"


@pytest.mark.faults
@pytest.mark.spec("QUE-4", "RUN-12")
def test_ctrl_c_and_cancel_end_the_task_as_cancelled(yard: Yard) -> None:
    process, _pid = start_hanging(yard, "run", "RQ-1")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    (yard.bench.agent.folder / "pid").unlink()
    process, _pid = start_hanging(yard, "resume", "RQ-1")
    yard.bench.aiflow("cancel", "RQ-1")
    process.communicate(timeout=20)
    assert [line[2:] for line in shown(yard)] == [("CANCELLED", "CANCELLED"), ("CANCELLED", "CANCELLED")]


@pytest.mark.spec("QUE-5")
def test_a_request_with_a_live_task_is_not_run_beside_it(yard: Yard) -> None:
    task_id = yard.add()
    error = yard.bench.run(code=4)["error"]
    assert (error["reason_code"], error["context"]["task_id"]) == ("REQUEST_QUEUED", task_id)
    assert (yard.bench.run_ids(), len(tasks(yard))) == ([], 1)


@pytest.mark.spec("QUE-7")
def test_a_killed_terminals_task_is_lost_and_delivered_to_nobody(yard: Yard) -> None:
    process, pid = start_hanging(yard, "run", "RQ-1")
    process.kill()
    process.communicate()
    wait_for(lambda: not is_alive(pid))
    yard.work()
    wait_for(lambda: len(tasks(yard)) >= 1 and tasks(yard)[0].is_final)
    assert shown(yard)[0] == ("start", "RQ-1", "ERROR", "RUNNER_LOST")
    assert tasks(yard)[0].successor is None


@pytest.mark.spec("QUE-2", "PRF-6")
def test_with_this_machines_own_store_nothing_of_it_is_imported(yard: Yard) -> None:
    script = (
        "import sys, os\n"
        "os._exit = lambda code: print(*sorted(sys.modules), file=sys.stderr)\n"
        "from aiflow.cli.main import main\n"
        "main(['run', 'RQ-1', '--json'])\n"
    )
    process = yard.bench.start(argv=[sys.executable, "-c", script], env={"AIFLOW_QUEUE_STORE": "local"})
    out, modules = process.communicate(timeout=60)
    assert json.loads(out)["state"] == "DONE"
    heavy = ("boto3", "botocore", "aiflow.adapters.dynamo", "aiflow.usecases.heartbeat")
    assert [name for name in modules.split() if name.startswith(heavy)] == []
    assert tasks(yard) == []
