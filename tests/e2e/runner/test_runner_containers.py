"""Runners in two containers with one host name, one checkout and one queue (QUE-7, LCK-4): nobody does a thing twice."""

from __future__ import annotations

import sys
import time

import pytest

from aiflow.domain.queue.task import TaskAction
from containers import way_in
from dynamo import Dynamo
from e2e.bench import Bench
from runner_yard import SHORT, TIMEOUT_SECONDS, Yard
from waiting import wait_until

HANG = "write('half.txt', 'half\\n'); (HERE / 'hangs').touch(); time.sleep(600)"

pytestmark = pytest.mark.faults


@pytest.mark.spec("QUE-7", "LCK-4", "RUN-11")
def test_a_runner_in_a_container_is_left_alone_while_it_lives_and_replaced_when_it_is_killed(
    bench: Bench, dynamo: Dynamo
) -> None:
    yard = Yard(bench, dynamo)
    bench.agent.does("implementer", HANG)
    task_id = yard.add()
    inside = bench.start(env=SHORT, argv=[*way_in(), sys.executable, "-m", "aiflow", "runner", "--json"])
    wait_until((bench.agent.folder / "hangs").exists)
    bench.agent.forget()
    yard.runner(**SHORT)
    wait_until(lambda: len(yard.runners()) == 2)
    time.sleep(TIMEOUT_SECONDS + 2)
    there, here = yard.runners()
    assert (there.checkout, there.boot_id, there.pid) == (here.checkout, here.boot_id, 1)
    task = yard.task(task_id)
    assert (task.status, task.claimed_by, there.task_id) == ("RUNNING", there.runner_id, task_id)
    assert (len(bench.run_ids()), bench.status()) == (1, "running")
    inside.kill()
    assert yard.ended(task_id).reason_code == "RUNNER_LOST"
    wait_until(lambda: yard.queue.get(f"{task_id}.2"))
    following = yard.ended(f"{task_id}.2")
    assert (following.status, following.claimed_by, following.action) == (
        "COMPLETE",
        here.runner_id,
        TaskAction.START,
    )
    assert (bench.stage()["state"], len(bench.run_ids())) == ("DONE", 1)
