"""Killed or cancelled while it waits for an agent's quota (RUN-11 to RUN-13): no attempt is lost."""

import os
import signal
import time
from datetime import datetime, timedelta

import pytest

from dynamo import Dynamo
from e2e.aftermath import assert_over
from e2e.bench import Bench
from e2e.claude_bench import ClaudeBench, calls
from e2e.model_server import ModelServer
from e2e.model_turns import Refuse, Trouble, at_first, whole_run
from e2e.real_agents import RealHome, processes_left
from runner_yard import Yard
from waiting import wait_until


@pytest.mark.faults
@pytest.mark.spec("RUN-11", "RUN-13", "LCK-4")
def test_a_run_that_is_killed_while_it_waits_goes_on_waiting_and_then_to_its_end(
    bench: Bench, models: ModelServer, real_home: RealHome
) -> None:
    claude = ClaudeBench(bench, models, real_home)
    claude.home.subscribe_claude()
    models.script = at_first([Refuse(Trouble.QUOTA, 12)], whole_run())
    process = bench.start("run", "RQ-1", "--json")
    wait_until(lambda: bench.run_ids() and bench.stage()["quota"] is not None)
    before = bench.stage()
    assert processes_left(before["run_id"]) == []
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert bench.aiflow.json("auto")["results"][0]["outcome"] == "awaiting_acceptance"
    assert time.time() >= datetime.fromisoformat(before["quota"]["until"]).timestamp()
    stage = assert_over(bench, planning=1, steps=calls(implementer=1, qa=1))
    events = [entry["event"] for entry in stage["history"]]
    assert events[:5] == ["PLANNING_STARTED", "QUOTA_WAIT", "RECOVERED", "QUOTA_BACK", "PLANNED"]
    assert stage["usage"]["calls"] == 3


@pytest.mark.faults
@pytest.mark.spec("RUN-13", "RUN-12", "QUE-8")
@pytest.mark.parametrize("action", ["start", "auto_run"])
def test_a_run_that_waits_is_cancelled_through_the_queue_within_three_seconds(
    bench: Bench, models: ModelServer, real_home: RealHome, dynamo: Dynamo, action: str
) -> None:
    claude, yard = ClaudeBench(bench, models, real_home), Yard(bench, dynamo)
    claude.home.subscribe_claude()
    bench.add_request("RQ-2")
    models.script = at_first([Refuse(Trouble.QUOTA, 3600)], whole_run())
    task_id = yard.add(action)
    runner = yard.runner(AIFLOW_QUEUE_POLL_MS="1000")
    wait_until(lambda: bench.run_ids() and bench.stage()["quota"] is not None)
    run_id = bench.run_ids()[0]
    [cancelled] = bench.aiflow.json("queue", "cancel", task_id)["tasks"]
    assert (cancelled["status"], cancelled["is_released"], cancelled["run_id"]) == ("CANCELLED", True, run_id)
    stage = assert_over(bench, planning=0)
    assert (stage["state"], stage["error"]["reason_code"]) == ("NEEDS_INPUT", "CANCELLED")
    heard = datetime.fromisoformat(stage["updated_at"]) - yard.task(task_id).updated_at
    assert timedelta() <= heard < timedelta(seconds=3)
    assert (bench.run_ids(), bench.run_ids("RQ-2"), runner.poll()) == ([run_id], [], None)
