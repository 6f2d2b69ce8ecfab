"""Killed while it waits for an agent's quota (RUN-11, RUN-13): the wait goes on where it was, and no attempt is lost."""

import os
import signal
import time
from datetime import datetime

import pytest

from e2e.aftermath import assert_over
from e2e.bench import Bench, wait_for
from e2e.claude_bench import ClaudeBench, calls
from e2e.model_server import ModelServer
from e2e.model_turns import Refuse, Trouble, at_first, whole_run
from e2e.real_agents import RealHome, processes_left


@pytest.mark.faults
@pytest.mark.spec("RUN-11", "RUN-13", "LCK-4")
def test_a_run_that_is_killed_while_it_waits_goes_on_waiting_and_then_to_its_end(
    bench: Bench, models: ModelServer, real_home: RealHome
) -> None:
    claude = ClaudeBench(bench, models, real_home)
    claude.home.subscribe_claude()
    models.script = at_first([Refuse(Trouble.QUOTA, 12)], whole_run())
    process = bench.start("run", "RQ-1", "--json")
    wait_for(lambda: bench.run_ids() and bench.stage()["quota"] is not None)
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
