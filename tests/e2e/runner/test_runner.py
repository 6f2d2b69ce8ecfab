"""Runners (QUE-4 to QUE-11): real processes, a real store, the whole way of a task through the queue."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from aiflow.domain.lifecycle import TaskEvent
from aiflow.domain.queue.delivery import STEP_ID
from aiflow.domain.queue.runner import Runner, RunnerStatus
from aiflow.domain.queue.task import Checkout, TaskEnd, successor_of
from aiflow.domain.request import Priority
from aiflow.ports.tasks import Claimant
from dynamo import Dynamo
from e2e.bench import Bench, git, is_alive
from runner_yard import NAMESPACE, SHORT, TIMEOUT_SECONDS, Yard, now
from waiting import wait_until

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
    wait_until(lambda: path.exists() and path.read_text())
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
    assert yard.bench.stage()["task"] == {"namespace": NAMESPACE, "task_id": task_id}
    [runner] = yard.runners()
    assert (runner.status, runner.task_id, runner.is_at_rest, task.claimed_by) == (
        "stopped",
        None,
        True,
        runner.runner_id,
    )
    assert told[1] | {"task_id": task_id, "action": "start", "request_id": "RQ-1", "status": "RUNNING"} == told[1]
    assert list((yard.bench.state.parent / "data/aiflow/wake").rglob("*-*")) == []


@pytest.mark.spec("QUE-4")
def test_a_run_that_stops_is_an_error_with_its_reason_and_resume_brings_the_answer(yard: Yard) -> None:
    yard.bench.agent.does("implementer", "ask('Red or green?')")
    asked = yard.add()
    yard.work()
    task = yard.task(asked)
    assert (task.status, task.reason_code) == ("ERROR", "NEEDS_CLARIFICATION")
    assert task.error_message == "NEEDS_CLARIFICATION: Red or green?"
    away = {"AIFLOW_QUEUE_STORE": "http://127.0.0.1:9"}  # no store is asked for what the run itself knows
    name, there = f"aiflow queue show {asked}", f"aiflow queue show {asked} --namespace {NAMESPACE}"
    for command in (("show", "RQ-1"), ("show", yard.bench.run_ids()[0]), ("why", "RQ-1")):
        assert name in yard.bench.aiflow(*command, env=away).stdout
        assert there in yard.bench.aiflow(*command, env={**away, "AIFLOW_NAMESPACE": "other"}).stdout
    known = {"namespace": NAMESPACE, "task_id": asked}
    assert yard.bench.aiflow.json("show", "RQ-1", env=away)["latest_run"]["task"] == known
    assert yard.bench.aiflow.json("show", yard.bench.run_ids()[0], env=away)["task"] == known
    yard.bench.agent.forget()
    resumed = yard.add("resume", prompt="Green")
    yard.work()
    assert (yard.task(resumed).status, yard.bench.stage()["state"]) == ("COMPLETE", "DONE")
    assert yard.bench.stage()["task"]["task_id"] == resumed
    assert yard.bench.agent.last("implementer")["answers"] == [{"question": "Red or green?", "answer": "Green"}]
    assert len(yard.bench.run_ids()) == 1


@pytest.mark.faults
@pytest.mark.spec("QUE-4")
def test_retry_step_and_replan_go_the_way_they_say(yard: Yard) -> None:
    yard.bench.agent.plans("S01", "S02")
    yard.bench.agent.does("implementer", "ask('Which?')", step="S02")
    yard.add()
    yard.work()
    retried = yard.add("retry_step", options={STEP_ID: "S01"})
    yard.work()
    assert (yard.task(retried).reason_code, yard.bench.agent.roles.count("implementer S01")) == (
        "NEEDS_CLARIFICATION",
        2,
    )
    yard.bench.agent.forget()
    replanned = yard.add("replan")
    yard.work()
    old, new = yard.bench.run_ids()
    assert (yard.task(replanned).status, yard.task(replanned).run_id) == ("COMPLETE", new)
    assert yard.bench.stage(run_id=old)["replaced_by"] == new


@pytest.mark.spec("QUE-4", "AUT-1")
def test_an_auto_run_is_one_task(yard: Yard) -> None:
    yard.bench.add_request("RQ-2")
    task_id = yard.add("auto_run")
    yard.work()
    assert yard.task(task_id).status == "COMPLETE"
    assert [yard.bench.stage(name)["state"] for name in ("RQ-1", "RQ-2")] == ["DONE", "DONE"]


@pytest.mark.spec("QUE-11", "REQ-9")
def test_a_bare_prompt_becomes_a_request_of_whoever_takes_it(yard: Yard) -> None:
    text = "## Greet people\n\nSay hello.\n" + "x" * 1000
    task_id = yard.prompt(text, priority=Priority.P0)
    yard.work()
    task = yard.task(task_id)
    assert task.status == "COMPLETE"
    file = (yard.bench.root / f"requests/{task.request_id}.md").read_text()
    assert "priority: P0\n" in file
    assert "\n# Greet people\n" in file
    assert text in file
    assert yard.bench.agent.last("planner")["request"]["title"] == "Greet people"


@pytest.mark.spec("QUE-5")
def test_a_request_that_is_no_longer_ready_is_an_error_and_nothing_else_changes(yard: Yard) -> None:
    task_id = yard.add()
    path = yard.bench.add_request("RQ-1", status="draft")
    before = path.read_bytes()
    yard.work()
    task = yard.task(task_id)
    assert (task.status, task.reason_code, task.run_id) == ("ERROR", "NOT_READY", None)
    assert (path.read_bytes(), yard.bench.run_ids(), yard.bench.agent.calls) == (before, [], [])


@pytest.mark.spec("QUE-11")
def test_another_checkouts_task_is_left_to_it(yard: Yard) -> None:
    elsewhere = yard.add(checkout=Checkout("elsewhere", "/app"))
    assert events(yard.work()) == ["started", "stopped"]
    assert yard.task(elsewhere).status == "QUEUED"


# --- while it works --------------------------------------------------------------------------------------------------


@pytest.mark.faults
@pytest.mark.spec("QUE-7")
def test_a_task_longer_than_the_heartbeat_timeout_keeps_its_runner_alive(yard: Yard) -> None:
    yard.bench.agent.does("implementer", f"time.sleep({TIMEOUT_SECONDS * 2}); done()")
    task_id = yard.add()
    working, watching = yard.runner(**SHORT), yard.runner(**SHORT)
    assert yard.ended(task_id).status == "COMPLETE"
    for process in (working, watching):
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=60)
        assert "reaped" not in out
    assert {each.is_at_rest for each in yard.runners()} == {True}


@pytest.mark.timing
@pytest.mark.spec("QUE-8", "RUN-12")
def test_a_cancel_from_elsewhere_ends_the_agents_processes_within_three_seconds(
    yard: Yard, allowed: Callable[[float], float]
) -> None:
    yard.bench.agent.does("implementer", HANG)
    task_id = yard.add()
    runner = yard.runner(AIFLOW_QUEUE_POLL_MS="1000")
    pid = hanging(yard)
    began = time.monotonic()
    yard.queue.cancel(task_id, "not needed", yard.task(task_id).created_at)
    wait_until(lambda: not is_alive(pid))
    assert time.monotonic() - began < allowed(3)
    wait_until(lambda: yard.bench.status() == "blocked")
    error = yard.bench.errors()
    assert (yard.task(task_id).status, error["state"], error["reason_code"]) == (
        "CANCELLED",
        "NEEDS_INPUT",
        "CANCELLED",
    )
    wait_until(lambda: [each.task_id for each in yard.runners()] == [None])
    again = yard.add("resume")
    assert yard.ended(again).status == "COMPLETE"
    assert runner.poll() is None


@pytest.mark.spec("QUE-6", "QUE-8", "RUN-12")
def test_what_is_cancelled_while_its_runner_is_dead_does_not_come_back(yard: Yard) -> None:
    yard.bench.agent.does("implementer", HANG)
    task_id = yard.add()
    process = yard.runner()
    hanging(yard)
    process.kill()
    process.communicate()
    assert yard.bench.stage()["task"]["task_id"] == task_id  # by this, not by clocks, is the cancel known to be its own
    [cancelled] = yard.bench.aiflow.json("queue", "cancel", task_id)["tasks"]
    assert (cancelled["status"], cancelled["is_released"]) == ("CANCELLED", True)
    error = yard.bench.errors()
    assert (error["state"], error["reason_code"], yard.bench.status()) == ("NEEDS_INPUT", "CANCELLED", "blocked")
    # Who recovers without a store does not take it up again, nor does a runner.
    assert yard.bench.aiflow.json("auto", env={"AIFLOW_QUEUE_STORE": "local"})["runs"] == 0
    assert events(yard.work()) == ["started", "stopped"]
    assert yard.bench.errors() == error
    again = yard.add("resume")
    yard.work()
    assert (yard.task(again).status, yard.bench.stage()["state"]) == ("COMPLETE", "DONE")


@pytest.mark.faults
@pytest.mark.spec("QUE-8", "RUN-12")
def test_a_cancel_from_another_checkout_of_the_machine_stops_the_run_too(yard: Yard, tmp_path: Path) -> None:
    yard.bench.agent.does("implementer", HANG)
    task_id = yard.add()
    process = yard.runner()
    hanging(yard)
    process.kill()
    process.communicate()
    other = tmp_path / "other"
    (other / "requests").mkdir(parents=True)
    git(other, "init", "-q")
    (other / "aiflow.toml").write_text('namespace = "other"\n')
    said = yard.bench.aiflow("-C", str(other), "queue", "cancel", task_id, "--namespace", NAMESPACE).stdout
    assert f"{yard.bench.run_ids()[0]}, which nothing was working on" in said
    assert (yard.bench.errors()["reason_code"], yard.bench.status()) == ("CANCELLED", "blocked")
    assert not (other / "runs").exists()
    assert yard.bench.aiflow.json("auto", env={"AIFLOW_QUEUE_STORE": "local"})["runs"] == 0


@pytest.mark.faults
@pytest.mark.spec("QUE-6", "RUN-12")
def test_a_successor_that_is_cancelled_is_not_queued_again_as_a_recovery(yard: Yard) -> None:
    yard.bench.agent.does("implementer", HANG)
    task_id = yard.add()
    process = yard.runner()
    hanging(yard)
    process.kill()
    process.communicate()
    [runner] = yard.runners()
    lost = TaskEnd(TaskEvent.FAILED, "RUNNER_LOST", None, f"{task_id}.2")
    ended = yard.queue.end_lost(yard.task(task_id), lost, now())
    assert ended is not None
    yard.queue.enqueue(successor_of(ended, now()))
    yard.records.put_to_rest(runner)
    yard.queue.cancel(f"{task_id}.2", "not needed", now() - timedelta(hours=1))  # by a clock that is behind
    assert events(yard.work()) == ["started", "stopped"]
    assert yard.bench.errors()["reason_code"] == "CANCELLED"


@pytest.mark.spec("QUE-7")
def test_a_runner_that_is_ended_hands_its_task_on_and_another_resumes_and_finishes_it(yard: Yard) -> None:
    yard.bench.agent.does("implementer", HANG)
    task_id = yard.add(priority=Priority.P0)
    process = yard.runner()
    pid = hanging(yard)
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, is_alive(pid)) == (0, False)
    task = yard.task(task_id)
    assert (task.status, task.reason_code, task.successor) == ("ERROR", "RUNNER_STOPPED", f"{task_id}.2")
    assert json.loads(out.splitlines()[-2])["successor"] == f"{task_id}.2"
    following = yard.task(f"{task_id}.2")
    assert (following.status, following.predecessor, following.place_at) == ("QUEUED", task_id, task.place_at)
    assert yard.bench.errors()["reason_code"] == "RUNNER_STOPPED"
    yard.work()
    assert (yard.task(following.task_id).status, yard.bench.stage()["state"]) == ("COMPLETE", "DONE")
    assert len(yard.bench.run_ids()) == 1
    assert yard.bench.agent.last("implementer")["feedback"] == []


@pytest.mark.spec("QUE-7")
def test_one_ctrl_c_lets_it_finish_its_task(yard: Yard) -> None:
    yard.bench.agent.does("implementer", "(HERE / 'pid').write_text('1'); time.sleep(2); done()")
    task_id, left = yard.add(), yard.add(request_id="RQ-9")
    process = yard.runner()
    wait_until((yard.bench.agent.folder / "pid").exists)
    process.send_signal(signal.SIGINT)
    wait_until(lambda: [str(each.status) for each in yard.runners()] == ["stopped"])
    [runner] = yard.runners()
    assert (runner.task_id, yard.task(task_id).status) == (task_id, "RUNNING")
    process.communicate(timeout=60)
    assert (process.returncode, yard.task(task_id).status, yard.task(left).status) == (0, "COMPLETE", "QUEUED")


@pytest.mark.faults
@pytest.mark.spec("QUE-7", "RUN-11")
def test_a_killed_runners_task_is_lost_and_its_run_recovered_by_another_delivery(yard: Yard) -> None:
    yard.bench.agent.does("implementer", HANG)
    task_id = yard.add()
    process = yard.runner()
    pid = hanging(yard)
    process.kill()
    process.communicate()
    wait_until(lambda: not is_alive(pid))
    other = yard.runner()
    lost = yard.ended(task_id)
    assert (lost.status, lost.reason_code, lost.successor) == ("ERROR", "RUNNER_LOST", f"{task_id}.2")
    wait_until(lambda: yard.queue.get(f"{task_id}.2") is not None)
    assert yard.ended(f"{task_id}.2").status == "COMPLETE"
    assert yard.bench.stage()["state"] == "DONE"
    assert len(yard.bench.run_ids()) == 1
    lines = [(e["kind"], e.get("reason_code")) for e in yard.bench.journal()]
    assert ("recovery", "RUNNER_LOST") in lines
    assert ("recovery", "PROCESS_CRASHED") in lines
    wait_until(lambda: [each.is_at_rest for each in yard.runners()] == [True, False])
    assert other.poll() is None


@pytest.mark.faults
@pytest.mark.spec("QUE-7")
def test_one_that_works_only_once_sees_to_what_a_killed_runner_left_before_it_leaves(yard: Yard) -> None:
    yard.bench.agent.does("implementer", HANG)
    task_id = yard.add()
    process = yard.runner()
    pid = hanging(yard)
    wait_until(lambda: yard.task(task_id).run_id is not None)
    process.kill()
    process.communicate()
    wait_until(lambda: not is_alive(pid))
    told = yard.work()
    assert events(told) == ["started", "reaped", "claimed", "ended", "stopped"]
    assert (yard.task(f"{task_id}.2").status, len(yard.bench.run_ids())) == ("COMPLETE", 1)


@pytest.mark.spec("QUE-7")
def test_the_task_of_a_runner_at_rest_is_delivered_again(yard: Yard) -> None:
    task_id = yard.add()
    yard.records.save(Runner("yard", "rests", yard.checkout, now(), now(), status=RunnerStatus.STOPPED))
    assert yard.queue.claim(Claimant("rests", yard.checkout), now()) is not None
    yard.work()
    assert (yard.task(task_id).reason_code, yard.task(f"{task_id}.2").status) == ("RUNNER_LOST", "COMPLETE")


@pytest.mark.faults
@pytest.mark.spec("QUE-7")
def test_a_machine_that_slept_kills_nobody(yard: Yard) -> None:
    yard.bench.agent.does("implementer", f"(HERE / 'pid').write_text('1'); time.sleep({TIMEOUT_SECONDS * 2}); done()")
    watching = yard.runner(**SHORT)
    wait_until(lambda: len(yard.runners()) == 1)
    task_id = yard.add()
    wait_until((yard.bench.agent.folder / "pid").exists)
    # The one that works is the one that sleeps less than the timeout; the other would have seen no beat for longer.
    other = yard.runner(**SHORT)
    wait_until(lambda: len(yard.runners()) == 2)
    other.send_signal(signal.SIGSTOP)
    time.sleep(TIMEOUT_SECONDS * 1.3)
    other.send_signal(signal.SIGCONT)
    assert yard.ended(task_id).status == "COMPLETE"
    wait_until(lambda: [str(each.status) for each in yard.runners()] == ["running", "running"])
    for process in (watching, other):
        process.send_signal(signal.SIGTERM)
        assert "RUNNER_LOST" not in process.communicate(timeout=60)[0]


@pytest.mark.faults
@pytest.mark.spec("QUE-6", "QUE-7")
def test_a_runner_that_slept_through_its_lease_writes_nothing_more(yard: Yard) -> None:
    yard.bench.agent.does("implementer", HANG)
    task_id = yard.add()
    sleeping = yard.runner(**SHORT)
    pid = hanging(yard)
    sleeping.send_signal(signal.SIGSTOP)
    other = yard.runner(**SHORT)
    following = f"{task_id}.2"
    assert yard.ended(task_id).reason_code == "RUNNER_LOST"
    # The run's files and its lock are the sleeper's as long as it lives: the successor waits.
    time.sleep(1)
    assert (is_alive(pid), len(yard.bench.agent.calls), yard.task(following).run_id) == (
        True,
        2,
        yard.task(task_id).run_id,
    )
    sleeping.send_signal(signal.SIGCONT)
    assert yard.ended(following).status == "COMPLETE"
    assert not is_alive(pid)
    assert yard.task(task_id).reason_code == "RUNNER_LOST"
    refused = [e for e in yard.bench.journal() if e.get("reason_code") == "LOCK_MISMATCH"]
    assert [(e["kind"], e["actor"], e["data"]["task_id"]) for e in refused] == [("refusal", "runner", task_id)]
    assert other.poll() is None
    assert sleeping.poll() is None


@pytest.mark.faults
@pytest.mark.spec("RUN-11")
def test_a_runner_recovers_what_was_interrupted_in_its_checkout(yard: Yard) -> None:
    local = {"AIFLOW_QUEUE_STORE": "local"}
    yard.bench.agent.does("implementer", HANG)
    process = yard.bench.start("run", "RQ-1", env=local)
    hanging(yard)
    process.kill()
    process.communicate()
    told = yard.work()
    assert events(told) == ["started", "recovering", "claimed", "ended", "stopped"]
    assert (told[3]["status"], yard.bench.stage()["state"]) == ("COMPLETE", "DONE")
    assert len(yard.bench.run_ids()) == 1


@pytest.mark.faults
@pytest.mark.spec("LCK-7")
def test_a_task_waits_while_another_run_is_active_in_the_checkout(yard: Yard) -> None:
    yard.bench.add_request("RQ-2")
    yard.bench.agent.does("implementer", "(HERE / 'pid').write_text('1'); time.sleep(4); done()")
    process = yard.bench.start("run", "RQ-1", "--json", env={"AIFLOW_QUEUE_STORE": "local"})
    wait_until((yard.bench.agent.folder / "pid").exists)
    task_id = yard.add(request_id="RQ-2")
    told = yard.work()
    assert (process.wait(timeout=60), yard.task(task_id).status) == (0, "COMPLETE")
    [held_up] = [each for each in told if each["event"] == "held_up"]
    assert held_up["reason_code"] == "RUN_IN_PROGRESS"
    assert yard.bench.run_ids()[0] in held_up["holder"]


@pytest.mark.faults
@pytest.mark.spec("RUN-7")
def test_a_sick_checkout_burns_no_tasks(yard: Yard) -> None:
    (yard.bench.root / "app.txt").write_text("changed\n")
    task_id = yard.add()
    process = yard.runner()
    assert process.stdout is not None
    told = [json.loads(process.stdout.readline()) for _ in range(2)]
    assert (told[1]["event"], told[1]["reason_code"]) == ("held_up", "DOCTOR_FAILED")
    assert told[1]["cause"] == "WORKTREE_DIRTY"
    wait_until(lambda: yard.runners()[0].held_up is not None)
    assert (yard.runners()[0].held_up or "").startswith("WORKTREE_DIRTY: ")
    assert yard.task(task_id).status == "QUEUED"
    yard.bench.git("checkout", "app.txt")
    assert yard.ended(task_id).status == "COMPLETE"
    assert yard.runners()[0].held_up is None


@pytest.mark.spec("RUN-7", "CLI")
def test_one_that_works_only_once_leaves_a_sick_checkout_with_the_reason(yard: Yard) -> None:
    yard.bench.git("branch", "aiflow")
    (yard.bench.root / "app.txt").write_text("changed\n")
    task_id = yard.add()
    done = yard.bench.aiflow("runner", "--once", "--json", code=6)
    *told, error = map(json.loads, done.stdout.splitlines())
    assert [each["event"] for each in told] == ["started", "stopped"]
    assert error["error"]["reason_code"] == "BRANCH_IN_THE_WAY"
    assert error["error"]["actions"] == ["git branch -m aiflow aiflow-branch", "git status", "aiflow runner --once"]
    assert yard.task(task_id).status == "QUEUED"
    assert [each.is_at_rest for each in yard.runners()] == [True]
    shown = yard.bench.aiflow("runner", "--once", code=6)
    assert "BRANCH_IN_THE_WAY: A branch is in the way" in shown.stderr
    assert "Uncommitted changes in your checkout: 1" in shown.stderr
    assert "<" not in shown.stderr


@pytest.mark.spec("QUE-7", "CLI")
def test_a_program_that_no_longer_reads_its_events_does_not_touch_the_runner(yard: Yard) -> None:
    runner = yard.runner()
    assert runner.stdout is not None
    assert json.loads(runner.stdout.readline())["event"] == "started"
    runner.stdout.close()
    assert yard.ended(yard.add()).status == "COMPLETE"
    runner.send_signal(signal.SIGTERM)
    assert runner.wait(60) == 0
    assert [each.is_at_rest for each in yard.runners()] == [True]


@pytest.mark.spec("QUE-7", "CLI")
def test_an_idle_runner_that_is_ended_hands_nothing_on(yard: Yard) -> None:
    runner = yard.runner()
    assert runner.stdout is not None
    assert [json.loads(runner.stdout.readline())["event"] for _ in range(2)] == ["started", "waiting"]
    runner.send_signal(signal.SIGTERM)
    _, err = runner.communicate(timeout=60)
    assert err == "Stopping …\n"


def test_what_is_accepted_by_itself_is_not_to_be_accepted(yard: Yard) -> None:
    yard.add()
    out = yard.bench.aiflow("-c", "accept=auto", "runner", "--once").stdout
    assert "✓ start RQ-1  done and accepted into main\n" in out
    assert "aiflow accept" not in out
    assert yard.bench.status() == "done"


def test_what_it_shows_is_for_people(yard: Yard) -> None:
    yard.add()
    out = yard.bench.aiflow("runner", "--once").stdout
    for part in (
        "Runner of yard in ",
        "▶ start RQ-1",
        "S01 done (1/1)",
        "✓ start RQ-1  complete  → aiflow accept RQ-1",
        "Tasks worked on: 1",
    ):
        assert part in out
    assert Path(yard.bench.root).name in out
