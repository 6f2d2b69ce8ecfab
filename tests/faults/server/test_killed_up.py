"""Servers, workers and runners killed (API-1, RUN-11, AUT-4): the work goes on, or is taken up again, once."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from dynamo import Dynamo
from e2e.bench import Bench, is_alive
from e2e.up import Up, end_leftovers, hold, holder_of, let_go, wait_for_state
from runner_yard import Yard
from waiting import wait_until

pytestmark = pytest.mark.faults


@pytest.fixture
def bench(repository: Path, tmp_path: Path) -> Iterator[Bench]:
    """Give a repository that runs can be started in."""
    made = Bench(repository, tmp_path)
    yield made
    end_leftovers(made)
    made.close()


def session(bench: Bench) -> dict[str, object]:
    found: dict[str, object] = json.loads((bench.root / ".aiflow/auto.json").read_text())
    return found


def kill(bench: Bench, name: str = "request.RQ-1") -> None:
    """Kill whoever holds a lock, as the out-of-memory killer does."""
    pid = holder_of(bench, name)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not is_alive(pid))


def recovered(bench: Bench) -> list[str]:
    return [line["event"] for line in bench.stage()["history"] if line["event"] in ("RECOVERED", "CRASHED")]


@pytest.mark.spec("API-1", "RUN-12")
def test_a_killed_server_leaves_its_worker_and_the_next_shows_and_cancels_it(bench: Bench) -> None:
    hold(bench)
    first = Up(bench)
    run_id = first.run()
    worker = holder_of(bench)
    first.kill()
    assert is_alive(worker)
    second = Up(bench)
    [running] = second.call("GET", "/api/status").shape["running"]
    assert (running["run_id"], running["pid"]) == (run_id, worker)
    assert second.call("POST", "/api/requests/RQ-1/run").shape["error"]["context"]["run_id"] == run_id
    bench.aiflow("cancel", "RQ-1")
    wait_for_state(bench, "NEEDS_INPUT")
    assert bench.stage()["error"]["reason_code"] == "CANCELLED"
    assert run_id in second.end(), "it said who was at work already"
    assert bench.run_ids() == [run_id]


@pytest.mark.spec("API-1")
def test_ctrl_c_waits_for_the_run_that_a_killed_server_left(bench: Bench) -> None:
    hold(bench)
    first = Up(bench)
    first.run()
    worker = holder_of(bench)
    first.kill()
    second = Up(bench)
    second.asks(signal.SIGINT)
    wait_until(lambda: second.call("POST", "/api/requests/RQ-1/run").shape["error"]["reason_code"] == "SERVER_STOPPING")
    assert second.process.poll() is None
    let_go(bench)
    told = second.end(None)
    assert f"An earlier server left work running: pid {worker}." in told
    assert "Stopping after the current run" in told
    assert bench.stage()["state"] == "DONE"


@pytest.mark.spec("API-1", "RUN-12")
def test_ctrl_c_twice_cancels_the_run_that_a_killed_server_left_and_no_terminals(bench: Bench) -> None:
    hold(bench)
    first = Up(bench)
    first.run()
    first.kill()
    second = Up(bench)
    second.asks(signal.SIGINT)
    wait_until(lambda: second.call("POST", "/api/requests/RQ-1/run").shape["error"]["reason_code"] == "SERVER_STOPPING")
    second.end()
    assert (bench.stage()["state"], bench.stage()["error"]["reason_code"]) == ("NEEDS_INPUT", "CANCELLED")
    assert bench.locks() == []
    (bench.agent.folder / "at.RQ-1").unlink()
    terminal = bench.start("resume", "RQ-1", "--json")
    third = Up(bench)
    third.held()
    told = third.end()
    assert "earlier server" not in told
    assert terminal.poll() is None
    let_go(bench)
    assert terminal.wait(120) == 0


@pytest.mark.spec("API-1")
def test_the_run_of_a_killed_server_goes_on_to_its_end(bench: Bench) -> None:
    hold(bench)
    first = Up(bench)
    first.run()
    first.kill()
    let_go(bench)
    wait_for_state(bench, "DONE")
    assert recovered(bench) == []
    second = Up(bench)
    assert second.call("GET", "/api/status").shape["running"] == []
    second.end()


@pytest.mark.spec("RUN-11", "API-1")
def test_a_killed_worker_is_recovered_and_a_second_crash_in_the_step_stops_the_run(bench: Bench) -> None:
    hold(bench)
    up = Up(bench)
    run_id = up.run()
    for _ in range(2):
        (bench.agent.folder / "at.RQ-1").unlink()
        kill(bench)
        wait_until(lambda: (bench.agent.folder / "at.RQ-1").exists() or bench.stage()["state"] == "NEEDS_INPUT")
    wait_for_state(bench, "NEEDS_INPUT")
    assert bench.stage()["error"]["reason_code"] == "PROCESS_CRASHED"
    told = up.end()
    assert told.count("Resuming the run of RQ-1") == 2
    assert bench.run_ids() == [run_id]


@pytest.mark.spec("RUN-11")
def test_a_run_that_died_before_it_is_recovered_by_the_next_server(bench: Bench) -> None:
    hold(bench)
    process = bench.start("run", "RQ-1", "--json")
    wait_until((bench.agent.folder / "at.RQ-1").exists)
    process.kill()
    process.communicate()
    let_go(bench)
    up = Up(bench)
    wait_for_state(bench, "DONE")
    assert recovered(bench) == ["RECOVERED"]
    assert "RQ-1" in up.end()


@pytest.mark.spec("AUT-4", "AUT-3")
def test_power_gone_at_two_and_the_night_goes_on_within_its_ceilings(bench: Bench) -> None:
    for name in ("RQ-2", "RQ-3"):
        bench.add_request(name)
    hold(bench)
    night = bench.start("auto", "--json", "--max-runs", "2")
    first = Up(bench)
    first.held()
    first.kill()
    night.kill()
    night.communicate()
    began = session(bench)["began_at"]
    let_go(bench)
    up = Up(bench)
    wait_until(lambda: session(bench)["state"] == "stopped")
    ended = session(bench)
    assert (ended["began_at"], ended["runs"], ended["reason_code"]) == (began, 2, "AUTO_RUNS_LIMIT")
    assert bench.run_ids("RQ-3") == [], "its ceiling was two runs"
    told = up.end()
    assert "was interrupted" in told
    assert "Continuing" in told
    # It has stopped, and nothing is continued that has.
    again = Up(bench)
    assert again.call("GET", "/api/status").shape["running"] == []
    assert "Continuing" not in again.end()
    assert bench.run_ids("RQ-3") == []


@pytest.mark.spec("AUT-4")
def test_without_continue_the_night_stays_as_it_was_cut_off(bench: Bench) -> None:
    hold(bench)
    night = bench.start("auto", "--json")
    wait_until((bench.agent.folder / "at.RQ-1").exists)
    night.kill()
    night.communicate()
    let_go(bench)
    up = Up(bench, "--no-continue")
    wait_until(lambda: not bench.locks())  # those of the dead are reclaimed: it has looked
    told = up.end()
    assert "aiflow auto --continue" in told
    assert "aiflow run RQ-1" in told
    assert (session(bench)["state"], bench.stage()["state"]) == ("running", "IMPLEMENTING")
    assert len(bench.agent.calls) == 2, "the planner and one implementer, before it was killed"


@pytest.mark.spec("AUT-4", "API-1")
def test_ctrl_c_lets_the_night_end_after_its_run(bench: Bench) -> None:
    bench.add_request("RQ-2")
    hold(bench)
    night = bench.start("auto", "--json")
    wait_until((bench.agent.folder / "at.RQ-1").exists)
    night.kill()
    night.communicate()
    (bench.agent.folder / "at.RQ-1").unlink()
    up = Up(bench)
    up.held()
    up.asks(signal.SIGINT)
    wait_until(lambda: session(bench)["stop_request"] == "after_run")
    let_go(bench)
    up.end(None)
    assert (session(bench)["reason_code"], bench.stage()["state"]) == ("AUTO_STOPPED_BY_PERSON", "DONE")
    assert bench.run_ids("RQ-2") == []


@pytest.fixture
def yard(bench: Bench, dynamo: Dynamo) -> Yard:
    """Give a checkout with a queue that others share."""
    return Yard(bench, dynamo)


def runner_of(yard: Yard) -> int:
    """Wait until a runner is there, and return its process."""
    wait_until(lambda: any(each.status == "running" and is_alive(each.pid or 0) for each in yard.runners()))
    return next(each.pid or 0 for each in yard.runners() if is_alive(each.pid or 0))


@pytest.mark.spec("API-1", "QUE-7")
def test_with_a_shared_store_a_runner_is_beside_the_server_and_ends_after_its_task(yard: Yard) -> None:
    hold(yard.bench)
    up = Up(yard.bench)
    runner = runner_of(yard)
    task_id = yard.add()
    up.held()
    up.kill()
    let_go(yard.bench)
    wait_until(lambda: yard.task(task_id).is_final)
    assert yard.task(task_id).status == "COMPLETE"
    wait_until(lambda: not is_alive(runner))
    assert [each.status for each in yard.runners()] == ["stopped"]


@pytest.mark.spec("API-1")
def test_a_runner_that_dies_is_started_again_and_ctrl_c_waits_for_its_task(yard: Yard) -> None:
    hold(yard.bench)
    up = Up(yard.bench)
    first = runner_of(yard)
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: not is_alive(first))
    second = runner_of(yard)
    assert second != first
    task_id = yard.add()
    up.held()
    up.asks(signal.SIGINT)
    wait_until(lambda: up.call("POST", "/api/requests/RQ-1/run").shape["error"]["reason_code"] == "SERVER_STOPPING")
    let_go(yard.bench)
    assert "The runner ended unexpectedly" in up.end(None)
    assert yard.task(task_id).status == "COMPLETE"
    assert not is_alive(second)


@pytest.mark.spec("API-1")
def test_without_its_store_everything_but_the_queue_works(bench: Bench) -> None:
    bench.configure('[queue]\nstore = "http://127.0.0.1:1"')
    up = Up(bench)
    assert up.call("GET", "/api/status").status == 200
    assert up.call("POST", "/api/requests/RQ-1/run").status == 202
    wait_for_state(bench, "DONE")
    up.end()


@pytest.mark.spec("API-1")
def test_no_runner_is_started_where_none_is_wanted(yard: Yard) -> None:
    up = Up(yard.bench, "--no-runner")
    up.call("POST", "/api/requests/RQ-1/run")
    wait_for_state(yard.bench, "DONE")
    up.end()
    assert yard.runners() == []
