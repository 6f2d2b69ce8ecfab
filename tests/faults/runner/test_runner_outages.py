"""The store goes away under a runner at work (QUE-10): its agent goes on, and ends before anybody may take over."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dynamo import Dynamo
from e2e.bench import Bench, is_alive
from faults.store_proxy import StoreProxy
from runner_yard import SHORT, TIMEOUT_SECONDS, Yard
from waiting import wait_until

pytestmark = [pytest.mark.faults, pytest.mark.spec("QUE-10")]

HANG = "(HERE / 'pid').write_text(str(os.getpid())); time.sleep({seconds}); done()"


@pytest.fixture
def bench(repository: Path, tmp_path: Path) -> Iterator[Bench]:
    """Give a repository that runs can be started in."""
    made = Bench(repository, tmp_path)
    yield made
    made.close()


@pytest.fixture
def proxy(dynamo: Dynamo) -> Iterator[StoreProxy]:
    """Give what stands between the runner and its store."""
    made = StoreProxy(dynamo.endpoint)
    yield made
    made.close()


def agent_of(yard: Yard) -> int:
    path = yard.bench.agent.folder / "pid"
    wait_until(lambda: path.exists() and path.read_text())
    return int(path.read_text())


@pytest.mark.timing
def test_a_store_that_is_away_for_long_ends_the_agent_in_time_and_the_run_goes_on_behind_it(
    bench: Bench, dynamo: Dynamo, proxy: StoreProxy, allowed: Callable[[float], float]
) -> None:
    yard = Yard(bench, dynamo)
    bench.agent.does("implementer", HANG.format(seconds=600))
    task_id = yard.add()
    runner = yard.runner(AIFLOW_QUEUE_STORE=proxy.endpoint, **SHORT)
    pid = agent_of(yard)
    wait_until(lambda: yard.task(task_id).run_id is not None)
    bench.agent.forget()
    proxy.down()
    began = time.monotonic()
    wait_until(lambda: not is_alive(pid))
    assert TIMEOUT_SECONDS * 0.5 < time.monotonic() - began < allowed(TIMEOUT_SECONDS)
    wait_until(lambda: bench.status() == "blocked")
    assert bench.errors()["reason_code"] == "STORE_UNREACHABLE"
    assert yard.task(task_id).status == "RUNNING"
    time.sleep(1)
    assert runner.poll() is None
    proxy.up()
    ended = yard.ended(task_id)
    assert (ended.reason_code, ended.successor) == ("STORE_UNREACHABLE", f"{task_id}.2")
    wait_until(lambda: yard.queue.get(f"{task_id}.2") is not None)
    assert yard.ended(f"{task_id}.2").status == "COMPLETE"
    assert (bench.stage()["state"], len(bench.run_ids())) == ("DONE", 1)


def test_a_store_that_comes_back_in_time_disturbs_nobody(bench: Bench, dynamo: Dynamo, proxy: StoreProxy) -> None:
    yard = Yard(bench, dynamo)
    bench.agent.does("implementer", HANG.format(seconds=4))
    task_id = yard.add()
    yard.runner(AIFLOW_QUEUE_STORE=proxy.endpoint, **SHORT)
    agent_of(yard)
    for _ in range(3):
        proxy.down()
        time.sleep(1)
        proxy.up()
        time.sleep(0.5)
    assert yard.ended(task_id).status == "COMPLETE"
    assert bench.agent.roles.count("implementer S01") == 1


def test_who_leaves_while_the_store_is_away_says_what_was_not_written_and_the_next_one_sees_to_it(
    bench: Bench, dynamo: Dynamo, proxy: StoreProxy
) -> None:
    yard = Yard(bench, dynamo)
    bench.agent.does("implementer", HANG.format(seconds=600))
    task_id = yard.add()
    runner = yard.runner(AIFLOW_QUEUE_STORE=proxy.endpoint, **SHORT)
    agent_of(yard)
    wait_until(lambda: yard.task(task_id).run_id is not None)
    bench.agent.forget()
    proxy.down()
    runner.send_signal(signal.SIGTERM)
    out, err = runner.communicate(timeout=60)
    told = [json.loads(line) for line in out.splitlines()]
    assert (runner.returncode, [each["event"] for each in told if "event" in each]) == (
        3,
        ["started", "claimed", "store_away", "unwritten", "stopped"],
    ), err
    assert [each["tasks"] for each in told if each.get("event") == "stopped"] == [1]
    assert yard.task(task_id).status == "RUNNING"
    yard.work()
    assert (yard.task(task_id).reason_code, yard.task(f"{task_id}.2").status) == ("RUNNER_LOST", "COMPLETE")
