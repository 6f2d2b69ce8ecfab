"""Runners (QUE-4 to QUE-11): real processes, a real store, the whole way of a task through the queue."""

from __future__ import annotations

from typing import Any

import pytest

from dynamo import Dynamo
from e2e.bench import Bench, wait_for
from runner_yard import Yard

HANG = "write('half.txt', 'half\\n'); (HERE / 'pid').write_text(str(os.getpid())); time.sleep(600)"


@pytest.fixture
def yard(bench: Bench, dynamo: Dynamo) -> Yard:
    """Give a checkout with a queue."""
    return Yard(bench, dynamo)


def events(told: list[dict[str, Any]]) -> list[str]:
    return [each["event"] for each in told]


def hanging(yard: Yard) -> int:
    """Wait until the agent hangs; returns its process."""
    path = yard.bench.agent.folder / "pid"
    wait_for(lambda: path.exists() and path.read_text())
    pid = int(path.read_text())
    path.unlink()
    yard.bench.agent.forget()
    return pid


# --- what a task may say ---------------------------------------------------------------------------------------------


@pytest.mark.spec("QUE-4", "QUE-5", "QUE-7")
def test_a_task_is_claimed_executed_and_ended_as_its_run(yard: Yard) -> None:
    task_id = yard.add()
    told = yard.work()
    assert events(told) == ["started", "claimed", "ended", "stopped"]
    task = yard.task(task_id)
    assert (task.status, task.error_message, task.run_id) == ("COMPLETE", None, yard.bench.run_ids()[0])
    assert (yard.bench.stage()["state"], yard.bench.status(), yard.bench.locks()) == ("DONE", "blocked", [])
    [runner] = yard.runners()
    assert (runner.status, runner.task_id, runner.is_at_rest, task.claimed_by) == (
        "stopped",
        None,
        True,
        runner.runner_id,
    )
    assert told[1] | {"task_id": task_id, "action": "start", "request_id": "RQ-1", "status": "RUNNING"} == told[1]
    assert list((yard.bench.state.parent / "data/aiflow/wake").rglob("*-*")) == []
