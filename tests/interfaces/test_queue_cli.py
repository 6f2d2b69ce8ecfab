"""`aiflow queue`, `runners` and `namespaces`: called as a person does, with a real DynamoDB Local behind them."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from aiflow.adapters.dynamo.client import StoreAddress, connect
from aiflow.adapters.dynamo.queue import DynamoStore
from aiflow.cli.main import run
from aiflow.cli.session import use_texts
from aiflow.cli.terminal.layout import display_width
from aiflow.cli.words import translate_click
from aiflow.domain.lifecycle import TaskEvent, TaskStatus
from aiflow.domain.queue.runner import Runner, RunnerStatus
from aiflow.domain.queue.task import Checkout, Task, TaskEnd, prompt_request_id
from aiflow.messages import Texts
from aiflow.ports.tasks import Claimant
from builders import write_request
from conftest import Program
from dynamo import REGION, Dynamo
from interfaces.test_cli import in_terminal

REQUESTS = {
    "RQ-1": {"status": "ready", "priority": "P1"},
    "RQ-2": {"status": "ready", "priority": "P0"},
    "RQ-3": {"status": "ready", "depends_on": "[RQ-4]"},
    "RQ-4": {"status": "blocked"},
    "RQ-5": {"status": "draft"},
}
RUN_ID = "RUN-20261104-013000-5e1f0a"


class Said:
    """What one call of the program said, and how it left."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Shop:
    """A checkout with a queue in a database of its own; commands are called in this process."""

    def __init__(self, root: Path, dynamo: Dynamo, capsys: pytest.CaptureFixture[str]) -> None:
        self.root, self._capsys = root, capsys
        self.client = dynamo.client()
        self.store = DynamoStore(connect(StoreAddress(dynamo.endpoint, REGION, dynamo.key, dynamo.key)))
        self.checkout = Checkout(os.uname().nodename, str(root.resolve()))

    def __call__(self, *args: str, code: int = 0) -> Said:
        self._capsys.readouterr()
        left = run(["-C", str(self.root), *args])
        out, err = self._capsys.readouterr()
        assert left == code, out + err
        return Said(left, out, err)

    def json(self, *args: str, code: int = 0) -> Any:
        return self(*args, "--json", code=code).json

    def add(self, *args: str) -> str:
        return str(self.json("queue", "add", *args)["tasks"][0]["task_id"])

    def runner(self, runner_id: str = "R-1", namespace: str = "shop", age: float = 0, **fields: Any) -> Runner:
        at = datetime.now(UTC)
        checkout = fields.pop("checkout", self.checkout)
        record = Runner(namespace, runner_id, checkout, at, at - timedelta(seconds=age), version="0.1", **fields)
        self.store.prepare()
        self.store.runners(namespace).save(record)
        return record

    def claim(self, task_id: str, runner_id: str = "R-1") -> Task:
        claimant = Claimant(runner_id, self.checkout)
        task = self.store.queue("shop").claim(claimant, datetime.now(UTC))
        assert task is not None
        assert task.task_id == task_id
        return task

    def task(self, task_id: str) -> Task:
        task = self.store.queue("shop").get(task_id)
        assert task is not None
        return task


@pytest.fixture
def shop(
    repository: Path,
    tmp_path: Path,
    dynamo: Dynamo,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Shop]:
    for request_id, keys in REQUESTS.items():
        write_request(repository, request_id, **keys)
    (repository / "aiflow.toml").write_text('namespace = "shop"\n')
    for name in [name for name in os.environ if name.startswith(("AIFLOW", "AWS_"))]:
        monkeypatch.delenv(name)
    for name, value in {**dynamo.environ, "XDG_DATA_HOME": str(tmp_path / "data"), "COLUMNS": "80"}.items():
        monkeypatch.setenv(name, value)
    use_texts(Texts("en"))
    yield Shop(repository, dynamo, capsys)
    use_texts(Texts("en"))


def ask_in_a_run(shop: Shop, monkeypatch: pytest.MonkeyPatch, state: Path) -> str:
    """Let the demo agent stop a run of RQ-7 with a question, and return the run's id."""
    write_request(shop.root, "RQ-7", "---\nstatus: ready\n---\n\n# Ask\n\n## Choose\n\n```ask\nWhich?\n```\n")
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "Mika")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "mika@example.com")
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    for command in (["add", "."], ["commit", "-q", "-m", "First commit"]):
        subprocess.run(["git", *command], cwd=shop.root, check=True)
    local = ("-c", "agent.kind=demo", "-c", "queue.store=local")
    return str(shop.json(*local, "run", "RQ-7", code=5)["run_id"])


# --- looking at nothing ----------------------------------------------------------------------------------------------


@pytest.mark.spec("QUE-9", "CLI")
def test_looking_at_an_empty_store_makes_no_table_and_says_what_to_do(shop: Shop) -> None:
    assert "aiflow queue add REQUEST" in shop("queue", "list").out
    assert shop.json("queue", "list") == {"namespace": "shop", "tasks": [], "next_start": None}
    assert shop("queue", "list", "--namespace", "dev").out.endswith(": aiflow queue add REQUEST --namespace dev\n")
    assert shop("queue", "list", "--all").out == "No namespace has a task.\n"
    assert shop("queue", "list", "-s", "error").out == "No task matches.\n"
    assert shop("runners").out == "No runner is running in shop. Start one: aiflow runner\n"
    assert shop.json("runners", "--all") == {"runners": []}
    (only,) = shop.json("namespaces")["namespaces"]
    assert (only["namespace"], only["total"], only["is_current"]) == ("shop", 0, True)
    assert shop.json("queue", "counts")["total"] == 0
    assert shop.json("queue", "counts", "--all") == {"namespaces": []}
    assert shop("queue", "show", "X", code=2).err.startswith("TASK_NOT_FOUND")
    assert shop.client.list_tables()["TableNames"] == []
    assert not (shop.root / ".aiflow").exists()


# --- add -------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("QUE-3", "QUE-11", "CLI")
def test_a_request_is_queued_with_its_priority_and_it_is_said_who_takes_it(shop: Shop) -> None:
    said = shop("queue", "add", "RQ-1")
    assert said.out.startswith("Queued: start RQ-1 (P1) as TASK-")
    assert "No runner is running here. Start one: aiflow runner" in said.out
    shop.runner()
    (task,) = shop.json("queue", "add", "requests/RQ-2.md", "-p", "P3")["tasks"]
    assert (task["status"], task["action"], task["request_id"], task["priority"]) == ("QUEUED", "start", "RQ-2", "P3")
    assert task["checkout"] == {"host": shop.checkout.host, "root": shop.checkout.root}
    assert (task["is_new"], task["standing"]["code"], task["standing"]["facts"]["count"]) == (True, "behind_one", 1)
    (entry, _) = [
        json.loads(line)
        for path in (shop.root / ".aiflow/activity").iterdir()
        for line in path.read_text().splitlines()
    ]
    assert (entry["request_id"], entry["data"]["asked"]) == ("RQ-1", "start")


@pytest.mark.spec("RUN-15", "QUE-5")
@pytest.mark.parametrize(
    ("args", "code", "reason"),
    [
        (("RQ-3",), 4, "DEPENDS_NOT_DONE"),
        (("RQ-5",), 4, "NOT_READY"),
        (("RQ-9",), 2, "REQUEST_NOT_FOUND"),
        (("RQ-1", "--resume"), 2, "RUN_NOT_FOUND"),
        (("RQ-1", "--task-id", "a b"), 2, "TASK_ID_INVALID"),
        (("RQ-1", "--namespace", "a b"), 2, "NAMESPACE_INVALID"),
        (("RQ-1", "--namespace", ""), 2, "NAMESPACE_INVALID"),
        (("--prompt", " "), 2, "PROMPT_EMPTY"),
        (("",), 2, "PROMPT_EMPTY"),
        (("   ",), 2, "PROMPT_EMPTY"),
        (("RQ-1", ""), 2, "PROMPT_EMPTY"),
        (("", "--resume"), 2, "PROMPT_EMPTY"),
        (("--prompt", "x" * 400_000), 2, "PROMPT_TOO_LARGE"),
        ((), 2, "INPUT_INVALID"),
        (("RQ-1", "--auto"), 2, "INPUT_INVALID"),
        (("RQ-1", "--prompt", "Do it"), 2, "INPUT_INVALID"),
        (("RQ-1", "--resume", "--replan"), 2, "INPUT_INVALID"),
        (("RQ-1", "--answer", "Yes"), 2, "INPUT_INVALID"),
        (("RQ-1", "--replan", "--update"), 2, "INPUT_INVALID"),
        (("RQ-1", "--resume", "--step", "S01"), 2, "INPUT_INVALID"),
        (("RQ-1", "--watch"), 2, "INPUT_INVALID"),
        (("RQ-1", "--resume", "--quick"), 2, "INPUT_INVALID"),
        (("--auto", "--no-baseline"), 2, "INPUT_INVALID"),
        (("RQ-1", "RQ-2", "--task-id", "X"), 2, "INPUT_INVALID"),
    ],
)
def test_what_could_not_run_anyway_is_refused_with_its_reason(
    shop: Shop, args: tuple[str, ...], code: int, reason: str
) -> None:
    error = shop.json("queue", "add", *args, code=code)["error"]
    assert error["reason_code"] == reason
    assert "<" not in error["message"] + error["detail"] + "".join(error["actions"])
    assert shop.client.list_tables()["TableNames"] == [], "what is refused needs no store"


@pytest.mark.spec("QUE-5", "QUE-9")
def test_a_request_has_one_live_task_and_an_id_one_meaning(shop: Shop) -> None:
    task_id = shop.add("RQ-1", "--task-id", "MINE")
    error = shop.json("queue", "add", "RQ-1", code=4)["error"]
    assert (error["reason_code"], error["context"]["task_id"]) == ("REQUEST_QUEUED", task_id)
    assert any("aiflow queue cancel MINE" in action for action in error["actions"])
    again = shop("queue", "add", "RQ-1", "--task-id", "MINE").out
    assert again.startswith("Already in the queue: start RQ-1 (P1) as MINE, QUEUED")
    assert shop.json("queue", "add", "RQ-2", "--task-id", "MINE", code=4)["error"]["reason_code"] == "TASK_EXISTS"


@pytest.mark.spec("QUE-9")
def test_an_order_under_an_id_can_be_repeated_whatever_became_of_it(shop: Shop) -> None:
    shop.add("RQ-1", "--task-id", "MINE")
    shop.store.queue("shop").finish(shop.claim("MINE"), TaskEnd(TaskEvent.COMPLETED, run_id=RUN_ID), datetime.now(UTC))
    write_request(shop.root, "RQ-1", status="blocked")
    again = ("queue", "add", "RQ-1", "--task-id", "MINE")
    assert shop(*again).out.startswith("Already in the queue: start RQ-1 (P1) as MINE, COMPLETE")
    (shop.root / "requests/RQ-1.md").unlink()
    (task,) = shop.json(*again)["tasks"]
    assert (task["is_new"], task["status"]) == (False, "COMPLETE")
    # Only that very order is the same, and under another id it is asked whether the request could run.
    for other in (["RQ-5"], ["RQ-2"], ["--prompt", "Fix it"], ["RQ-1", "--resume"]):
        assert shop.json("queue", "add", *other, "--task-id", "MINE", code=4)["error"]["reason_code"] == "TASK_EXISTS"
    assert shop.json("queue", "add", "RQ-5", "--task-id", "NEW", code=4)["error"]["reason_code"] == "NOT_READY"


@pytest.mark.spec("QUE-9", "RUN-6")
def test_a_run_that_was_let_go_on_under_an_id_can_be_so_again(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run_id = ask_in_a_run(shop, monkeypatch, tmp_path / "state")
    for name, task_id in (("RQ-7", "BY-REQUEST"), (run_id, "BY-RUN")):
        order = ("queue", "add", name, "--replan", "--answer", "Both", "--task-id", task_id)
        shop(*order)
        shop("queue", "cancel", task_id)
    shop("replan", "RQ-7", "-c", "agent.kind=demo", "-c", "queue.store=local", "--answer", "Both")
    for name, task_id in (("RQ-7", "BY-REQUEST"), (run_id, "BY-RUN")):
        order = ("queue", "add", name, "--replan", "--answer", "Both", "--task-id", task_id)
        assert "CANCELLED" in shop(*order).out
        error = shop.json(*order[:-3], "One", "--task-id", task_id, code=4)["error"]
        assert error["reason_code"] == "TASK_EXISTS"


@pytest.mark.spec("RUN-7", "RUN-15")
def test_what_would_keep_every_runner_here_is_warned_of_until_one_lives(shop: Shop) -> None:
    """The checkout has no commit yet, and the agent is not there."""
    sick = ("-c", "agent.kind=command", "-c", 'agent.argv=["no-such-agent"]')
    said = shop(*sick, "queue", "add", "RQ-1", "RQ-2").out
    warning = "  No runner here takes a task until this is fixed: "
    assert said.count(f"{warning}NO_COMMITS: ") == 1
    assert said.count(f"{warning}AGENT_NOT_FOUND: ") == 1
    assert '    → git add -A && git commit -m "First commit"\n' in said
    warnings = shop.json(*sick, "queue", "add", "--auto")["warnings"]
    assert {"NO_COMMITS", "AGENT_NOT_FOUND"} <= {each["reason_code"] for each in warnings}
    assert {each["result"] for each in warnings} == {"FAIL"}
    # What any runner may take, and what a living one will say itself.
    assert shop.json(*sick, "queue", "add", "Fix the typo")["warnings"] == []
    shop.runner()
    write_request(shop.root, "RQ-8", status="ready")
    assert shop.json(*sick, "queue", "add", "RQ-8")["warnings"] == []
    use_texts(Texts("ja"))
    write_request(shop.root, "RQ-9", status="ready")
    shop.runner(status=RunnerStatus.STOPPED)
    assert "次の問題が直るまで、ここの Runner はタスクを取りません: NO_COMMITS: " in shop("queue", "add", "RQ-9").out


@pytest.mark.parametrize("command", ["queue list", "queue counts", "queue show X", "queue cancel X", "runners"])
def test_an_empty_namespace_is_none_wherever_one_is_asked_for(shop: Shop, command: str) -> None:
    said = shop(*command.split(), "--namespace", "", code=2).err
    assert said.startswith("NAMESPACE_INVALID")
    assert "digit: ''" in said
    if "X" not in command:
        assert (
            shop.json(*command.split(), "--all", "--namespace", "", code=2)["error"]["reason_code"] == "INPUT_INVALID"
        )


def test_of_several_requests_those_that_can_run_are_queued(shop: Shop) -> None:
    said = shop("queue", "add", "RQ-1", "RQ-3", "RQ-2", code=4)
    assert said.out.count("Queued: ") == 2
    assert said.err.startswith("DEPENDS_NOT_DONE")
    both = shop.json("queue", "add", "RQ-1", "RQ-5", code=4)
    assert both["tasks"] == []
    assert [error["reason_code"] for error in both["refused"]] == ["NOT_READY", "REQUEST_QUEUED"]


@pytest.mark.spec("LCK-7")
def test_a_run_at_work_in_the_checkout_is_no_obstacle_but_the_requests_own_is(shop: Shop) -> None:
    folder = shop.root / ".aiflow/locks"
    folder.mkdir(parents=True)
    lock = {
        "version": "1.0",
        "lock_type": "request",
        "request_id": "RQ-1",
        "run_id": RUN_ID,
        "pid": 1,
        "host": "elsewhere",
    }
    lock["expires_at"] = "2126-11-04T02:02:00+00:00"
    (folder / "request.RQ-1.lock.json").write_text(json.dumps(lock))
    shop.runner()
    (task,) = shop.json("queue", "add", "RQ-2")["tasks"]
    assert (task["standing"]["code"], task["standing"]["facts"]["run_id"]) == ("run_active", RUN_ID)
    assert shop.json("queue", "add", "RQ-1", code=4)["error"]["reason_code"] == "RUN_IN_PROGRESS"
    # One that is stale is reclaimed by whoever takes the task.
    lock["expires_at"] = "2026-01-04T02:02:00+00:00"
    (folder / "request.RQ-1.lock.json").write_text(json.dumps(lock))
    assert shop.add("RQ-1").startswith("TASK-")


@pytest.mark.spec("RUN-11", "REQ-5")
def test_an_interrupted_run_can_be_queued_to_go_on_and_a_lost_one_cannot(shop: Shop) -> None:
    write_request(shop.root, "RQ-6", status="running")
    folder = shop.root / "runs/RQ-6" / RUN_ID
    folder.mkdir(parents=True)
    (folder / "stage.json").write_text('{"state": "TESTING"}')
    assert shop.add("RQ-6").startswith("TASK-")
    write_request(shop.root, "RQ-7", status="running")
    refused = shop.json("queue", "add", "RQ-7", code=3)["error"]
    assert (refused["reason_code"], refused["context"]["request_id"]) == ("RUN_LOST", "RQ-7")
    assert "aiflow set RQ-7 status=ready" in refused["actions"][0]


@pytest.mark.spec("REQ-9", "QUE-11")
def test_a_sentence_is_a_prompt_that_anybody_may_take(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    said = shop("queue", "add", "Fix the typo in the README")
    assert said.out.startswith("Queued: “Fix the typo in the README” (P2) as TASK-")
    assert "No runner of this namespace is running" in said.out
    assert shop.json("queue", "show", shop.add("READMEの誤字を直してください"))["action"] == "prompt"
    large = "Sort the list.\n" + "More. " * 1000
    monkeypatch.setattr(sys, "stdin", io.StringIO(large))
    task_id = shop.add("--prompt", "-", "-p", "P0")
    shown = shop.json("queue", "show", task_id)
    assert (shown["action"], shown["checkout"], shown["priority"]) == ("prompt", None, "P0")
    assert (shown["prompt"], shown["prompt_bytes"]) == (large, len(large))
    assert shown["request_id"] == prompt_request_id(task_id)
    text = shop("queue", "show", task_id).out
    assert "any runner of this namespace" in text
    assert text.rstrip().endswith("More.")


@pytest.mark.spec("REQ-9")
def test_a_sentence_among_names_is_a_prompt_too_and_nothing_is_queued_before_all_is_checked(shop: Shop) -> None:
    tasks = shop.json("queue", "add", "RQ-1", "Fix the typo", "RQ-2")["tasks"]
    assert [task["action"] for task in tasks] == ["start", "prompt", "start"]
    write_request(shop.root, "RQ-8", status="ready")
    for wrong in (["Fix it", "--replan"], ["x" * 400_000 + " y"], ["Fix it", "--task-id", "MINE"]):
        shop("queue", "add", "RQ-8", *wrong, code=2)
    assert shop.json("queue", "counts")["total"] == len(tasks)


@pytest.mark.spec("RUN-6", "RUN-10")
def test_a_run_is_queued_to_go_on_with_everything_that_was_said(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run_id = ask_in_a_run(shop, monkeypatch, tmp_path / "state")
    refused = shop.json("queue", "add", "RQ-7", "--resume", code=5)["error"]
    assert refused["reason_code"] == "NEEDS_CLARIFICATION"
    task_id = shop.add("RQ-7", "--resume", "--answer", "The first", "--keep-changes")
    task = shop.json("queue", "show", task_id)
    assert (task["action"], task["request_id"], task["run_id"]) == ("resume", "RQ-7", run_id)
    assert (task["options"], task["prompt"]) == ({"keep_changes": "1"}, "The first")
    shop("queue", "cancel", task_id)
    by_run = shop.json("queue", "show", shop.add(run_id, "--replan", "--force"))
    assert (by_run["action"], by_run["request_id"], by_run["options"]) == ("replan", "RQ-7", {"force": "1"})
    shop("queue", "cancel", by_run["task_id"])
    again = shop("queue", "add", "RQ-7", "--retry-step", "--step", "s02", code=2).err
    assert "S02" in again, "a step that the run does not have"
    assert shop.json("queue", "add", "RQ-7", "--resume", "--update", code=4)["error"]["reason_code"]


def test_an_auto_run_is_queued_once(shop: Shop) -> None:
    task_id = shop.add("--auto", "--watch")
    task = shop.json("queue", "show", task_id)
    assert (task["action"], task["request_id"], task["options"]) == ("auto_run", None, {"watch": "1"})
    second = shop("queue", "add", "--auto", code=4).err
    assert second.startswith("REQUEST_QUEUED")
    assert "same request" not in second
    assert "auto-run" in shop("queue", "list").out


# --- list and show ---------------------------------------------------------------------------------------------------


@pytest.mark.spec("QUE-9")
def test_the_list_is_newest_first_in_parts_that_join(shop: Shop) -> None:
    ids = [shop.add("--prompt", f"Number {number}") for number in range(3)]
    listed: list[str] = []
    start: list[str] = []
    while True:
        part = shop.json("queue", "list", "-n", "2", *start)
        listed += [task["task_id"] for task in part["tasks"]]
        if part["next_start"] is None:
            break
        start = ["--start", part["next_start"]]
    assert listed == ids[::-1]
    shop("queue", "cancel", ids[0])
    assert [task["task_id"] for task in shop.json("queue", "list", "-s", "cancelled")["tasks"]] == ids[:1]
    more = shop("queue", "list", "-s", "QUEUED", "-n", "1").out
    assert more.endswith(f"More: aiflow queue list --start {ids[2]} --status QUEUED\n")


@pytest.mark.spec("QUE-7", "QUE-11")
def test_each_task_says_how_it_stands_with_it(shop: Shop) -> None:
    working, waiting = shop.add("RQ-2"), shop.add("RQ-1")
    shop.claim(working)
    shop.runner(task_id=working)
    assert _note(shop, working) == f"Runner R-1 works on it in {shop.checkout.id}"
    assert _note(shop, waiting) == f"Next, when runner R-1 has finished {working}"
    assert f"Next, when runner R-1 has finished {working}" in shop("queue", "show", waiting).out
    shop.runner(task_id=working, status=RunnerStatus.STOPPED)
    assert _note(shop, working) == "Runner R-1 was asked to stop and finishes it first"
    shop.runner(task_id=working, age=600)
    assert _note(shop, working) == (
        "Runner R-1 sends no heartbeat (the last one: 10 min ago); another runner takes over its task: aiflow runner"
    )
    assert _note(shop, waiting) == "No runner is running here. Start one: aiflow runner"
    ended = TaskEnd(TaskEvent.FAILED, "UNIT_TEST_FAILED: 2 failed", RUN_ID, f"{working}.2")
    shop.store.queue("shop").finish(shop.task(working), ended, datetime.now(UTC))
    assert _note(shop, working) == f"UNIT_TEST_FAILED: 2 failed · continues as {working}.2"
    text = shop("queue", "show", working).out
    for fact in ("ERROR", RUN_ID, "R-1", f"{working}.2", shop.checkout.id, "P0"):
        assert fact in text


def _note(shop: Shop, task_id: str) -> str:
    """Return the last column of a task's line."""
    listed = next(line for line in shop("queue", "list").out.splitlines() if line.startswith(task_id))
    return listed.rpartition("  ")[2]


@pytest.mark.spec("QUE-9", "RUN-8")
def test_an_ended_task_says_what_to_do_next_and_where_its_work_is(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run_id = ask_in_a_run(shop, monkeypatch, tmp_path / "state")
    answered = shop.add("RQ-7", "--resume", "--answer", "A")
    queue, now = shop.store.queue("shop"), datetime.now(UTC)
    queue.finish(shop.claim(answered), TaskEnd(TaskEvent.FAILED, "NEEDS_CLARIFICATION: Which?", run_id), now)
    cancelled = shop.add("RQ-1")
    shop("queue", "cancel", cancelled)
    assert _note(shop, answered) == 'NEEDS_CLARIFICATION: Which? · → aiflow resume RQ-7 --answer "…"'
    assert shop.json("queue", "show", answered)["next_command"] == 'aiflow resume RQ-7 --answer "…"'
    assert _note(shop, cancelled).endswith(" · → aiflow queue add RQ-1")
    write_request(shop.root, "RQ-1", status="done")
    assert "→" not in _note(shop, cancelled), "it was accepted meanwhile"
    # A prompt that another checkout took: its request is there.
    prompt = shop.add("Fix the typo")
    there = Checkout("far", "/away")
    shop.runner("FAR", checkout=there)
    queue.finish(shop.claim(prompt, "FAR"), TaskEnd(TaskEvent.COMPLETED, None, RUN_ID), now)
    shown = shop("queue", "show", prompt).out
    for fact in (prompt_request_id(prompt), RUN_ID, there.id, f"→ aiflow accept {prompt_request_id(prompt)}"):
        assert fact in shown


@pytest.mark.spec("QUE-9", "RUN-8")
def test_an_old_task_leads_to_the_live_one_of_its_request(shop: Shop) -> None:
    old = shop.add("RQ-1", "--task-id", "OLD")
    shop("queue", "cancel", old)
    assert shop.json("queue", "show", old)["next_command"] == "aiflow queue add RQ-1"
    newer = shop.add("RQ-1", "--task-id", "NEW")
    assert shop.json("queue", "show", old)["next_command"] == f"aiflow queue show {newer}"
    assert f"→ aiflow queue show {newer}" in shop("queue", "list", "--status", "cancelled").out
    assert "→" not in _note(shop, old), "the live one stands in the same list"
    there = ("-c", "namespace=other", "queue", "show", old, "--namespace", "shop")
    assert shop.json(*there)["next_command"] == f"aiflow queue show {newer} --namespace shop"
    shop("queue", "cancel", newer)
    assert shop.json(*there)["next_command"] == "aiflow queue add RQ-1 --namespace shop"


@pytest.mark.spec("QUE-9")
def test_the_tasks_of_all_namespaces_are_listed_in_parts_that_join(shop: Shop) -> None:
    for namespace in ("shop", "dev", "x"):
        shop("queue", "add", "RQ-1", "--task-id", "MINE", "--namespace", namespace)
    newest = shop.add("RQ-2")
    listed: list[tuple[str, str]] = []
    start: list[str] = []
    for _ in range(4):
        part = shop.json("queue", "list", "--all", "-n", "1", *start)
        listed += [(task["namespace"], task["task_id"]) for task in part["tasks"]]
        start = ["--start", str(part["next_start"])]
    assert listed == [("shop", newest), ("dev", "MINE"), ("shop", "MINE"), ("x", "MINE")]
    assert part["next_start"] is None
    more = shop("queue", "list", "--all", "-n", "2", "-s", "queued").out
    assert more.endswith("More: aiflow queue list --start dev/MINE --status QUEUED --all\n")


@pytest.mark.spec("QUE-11")
def test_a_task_of_another_checkout_says_where_its_runner_is_missing(shop: Shop) -> None:
    elsewhere = replace(shop.task(shop.add("RQ-1")), task_id="ELSEWHERE", request_id="RQ-8")
    shop.store.queue("shop").enqueue(replace(elsewhere, checkout=Checkout("far", "/away")))
    assert _note(shop, "ELSEWHERE") == "No runner is running in /away on far. Start one there: aiflow runner"


@pytest.mark.spec("QUE-9")
def test_namespaces_are_apart_unless_all_are_asked_for(shop: Shop) -> None:
    ours = shop.add("RQ-1")
    said = shop("queue", "add", "RQ-1", "--namespace", "dev")
    assert "aiflow -c namespace=dev runner" in said.out
    theirs = shop.json("queue", "list", "--namespace", "dev")["tasks"][0]["task_id"]
    assert [task["task_id"] for task in shop.json("queue", "list")["tasks"]] == [ours]
    everything = shop.json("queue", "list", "--all")
    assert [(task["namespace"], task["task_id"]) for task in everything["tasks"]] == [("dev", theirs), ("shop", ours)]
    assert shop("queue", "list", "--all").out.startswith("NAMESPACE")
    missing = shop.json("queue", "show", theirs, code=2)["error"]
    assert (missing["reason_code"], missing["context"]["namespace"]) == ("TASK_NOT_FOUND", "shop")
    shop.runner(namespace="dev")
    counted = shop.json("namespaces")["namespaces"]
    assert [(each["namespace"], each["counts"]["QUEUED"], each["runners_alive"]) for each in counted] == [
        ("dev", 1, 1),
        ("shop", 1, 0),
    ]
    assert "* shop" in shop("namespaces").out
    assert [each["total"] for each in shop.json("queue", "counts", "--all")["namespaces"]] == [1, 1]
    assert shop.json("queue", "counts")["counts"] == {
        "QUEUED": 1,
        "RUNNING": 0,
        "COMPLETE": 0,
        "ERROR": 0,
        "CANCELLED": 0,
    }
    assert shop("queue", "counts", "--namespace", "dev").out.splitlines()[1].split() == ["dev", *"100001"]
    for args in (("queue", "list"), ("queue", "counts"), ("runners",)):
        assert shop(*args, "--all", "--namespace", "dev", code=2).err.startswith("INPUT_INVALID")


def test_a_mistyped_task_and_the_name_of_a_request_lead_to_the_task(shop: Shop) -> None:
    task_id = shop.add("RQ-1")
    error = shop.json("queue", "show", "RQ-1", code=2)["error"]
    assert (error["reason_code"], error["context"]["meant"]) == ("TASK_NOT_FOUND", task_id)
    assert f"Did you mean '{task_id}'?" in shop("queue", "cancel", task_id[:-1], code=2).err


@pytest.mark.spec("CLI")
def test_task_ids_are_completed(shop: Shop, aiflow: Program, dynamo: Dynamo) -> None:
    task_id = shop.add("RQ-1", "--task-id", "MINE")
    asked = {"_AIFLOW_COMPLETE": "bash_complete", "COMP_WORDS": "aiflow queue show M", "COMP_CWORD": "3"}
    done = aiflow(env={**dynamo.environ, **asked})
    assert done.stdout.split(",")[1].strip() == task_id


# --- cancel ----------------------------------------------------------------------------------------------------------


@pytest.mark.spec("QUE-8")
def test_what_is_queued_is_cancelled_at_once(shop: Shop) -> None:
    first, second = shop.add("RQ-1"), shop.add("RQ-2")
    assert shop("queue", "cancel", first).out == f"{first} is cancelled.\n"
    task = shop.task(first)
    assert task.status is TaskStatus.CANCELLED
    assert (task.error_message or "").endswith(f"on {shop.checkout.host}")
    mixed = shop.json("queue", "cancel", first, "NOBODY", second, code=2)
    assert [(each["task_id"], each["is_released"]) for each in mixed["tasks"]] == [(first, True), (second, True)]
    assert [error["reason_code"] for error in mixed["refused"]] == ["TASK_NOT_FOUND"]
    assert shop("queue", "cancel", code=2).err.startswith("INPUT_INVALID")


@pytest.mark.spec("QUE-3", "QUE-8")
def test_what_is_over_stays_as_it_is(shop: Shop) -> None:
    task_id = shop.add("RQ-1")
    shop.store.queue("shop").finish(shop.claim(task_id), TaskEnd(TaskEvent.COMPLETED), datetime.now(UTC))
    error = shop.json("queue", "cancel", task_id, code=4)["error"]
    assert (error["reason_code"], error["context"]["status"]) == ("TASK_NOT_ACTIVE", "COMPLETE")
    assert shop.task(task_id).status is TaskStatus.COMPLETE


@pytest.mark.spec("QUE-8")
def test_a_running_task_is_waited_for_until_its_runner_let_go(shop: Shop) -> None:
    task_id = shop.add("RQ-1")
    shop.claim(task_id)
    shop.runner(task_id=task_id)
    left = shop.json("queue", "cancel", task_id, "--no-wait")["tasks"][0]
    assert (left["status"], left["is_released"]) == ("CANCELLED", False)
    second = shop.add("RQ-2")
    shop.claim(second)
    shop.runner(task_id=second)
    began = time.monotonic()
    _later(0.6, lambda: shop.runner(task_id=None))
    said = shop("queue", "cancel", second).out.splitlines()
    assert time.monotonic() - began >= 0.5
    assert said == [
        f"{second} is cancelled. Waiting until runner R-1 has ended the agent …",
        "Runner R-1 no longer works on it.",
    ]


def _later(seconds: float, act: Callable[[], object]) -> None:
    threading.Timer(seconds, act).start()


# --- runners ---------------------------------------------------------------------------------------------------------


@pytest.mark.spec("QUE-7")
def test_runners_say_who_lives_what_they_do_and_where(shop: Shop) -> None:
    shop.runner("SILENT", age=600, task_id="T-1")
    shop.runner("BUSY", task_id="T-2", pid=os.getpid())
    shop.runner("GONE", status=RunnerStatus.STOPPED)
    lines = shop("runners").out.splitlines()
    assert [line.split()[:3] for line in lines[1:3]] == [["●", "BUSY", "working"], ["○", "SILENT", "silent"]]
    assert lines[1].endswith(shop.checkout.id)
    assert "T-2" in lines[1]
    assert lines[-1] == "Stopped before: 1"
    found = {each["runner_id"]: each for each in shop.json("runners")["runners"]}
    assert [(each["is_alive"], each["state"]) for each in found.values()] == [
        (True, "working"),
        (False, "stopped"),
        (False, "silent"),
    ]
    assert (found["BUSY"]["pid"], found["BUSY"]["checkout"]["root"]) == (os.getpid(), shop.checkout.root)
    assert shop.json("-c", "queue.heartbeat_timeout_seconds=3600", "runners")["runners"][1]["state"] == "working"


@pytest.mark.spec("QUE-7")
def test_a_runner_that_died_on_this_machine_shows_as_dead_at_once(shop: Shop) -> None:
    over = subprocess.Popen([sys.executable, "-c", ""])
    over.wait()
    task_id = shop.add("RQ-1")
    shop.claim(task_id)
    shop.runner(task_id=task_id, pid=over.pid)
    shop.runner("ELSEWHERE", checkout=Checkout("far", "/away"), pid=over.pid)
    words = "Runner R-1 is gone; another runner takes over its task: aiflow runner"
    assert _note(shop, task_id) == words
    assert words in shop("queue", "show", task_id).out
    assert "No runner is running here" in shop("queue", "add", "RQ-2").out
    assert [line.split()[:3] for line in shop("runners").out.splitlines()[1:]] == [
        ["●", "ELSEWHERE", "idle"],
        ["○", "R-1", "gone"],
    ]
    shapes = shop.json("runners")["runners"]
    assert [(each["is_alive"], each["state"]) for each in shapes] == [(True, "idle"), (False, "dead")]
    assert shop.json("namespaces")["namespaces"][0]["runners_alive"] == 1


@pytest.mark.spec("QUE-9", "RUN-7")
def test_a_runner_that_takes_nothing_says_why_wherever_one_looks(shop: Shop) -> None:
    shop.runner(held_up="AGENT_NOT_FOUND: no claude")
    words = "Runner R-1 takes nothing until this is fixed: AGENT_NOT_FOUND: no claude"
    assert shop("queue", "add", "RQ-1").out.endswith(f"  {words}\n")
    [task] = shop.json("queue", "list")["tasks"]
    assert (task["standing"]["code"], task["standing"]["detail"]) == ("held_up", words)
    assert re.search(r"● R-1 +held up .* AGENT_NOT_FOUND: no claude$", shop("runners").out, re.MULTILINE)
    [shape] = shop.json("runners")["runners"]
    assert (shape["is_alive"], shape["state"], shape["held_up"]) == (True, "held_up", "AGENT_NOT_FOUND: no claude")
    shop.runner()
    assert _note(shop, task["task_id"]) == "Runner R-1 takes it next"
    [shape] = shop.json("runners")["runners"]
    assert (shape["state"], shape["held_up"]) == ("idle", None)


@pytest.mark.parametrize("columns", [120, 44])
def test_on_a_terminal_what_keeps_a_runner_stands_below_it(
    shop: Shop, dynamo: Dynamo, tmp_path: Path, columns: int
) -> None:
    shop.runner(held_up="AGENT_NOT_FOUND: no claude")
    environ = {**dynamo.environ, "XDG_DATA_HOME": str(tmp_path / "data")}
    shown = re.sub(r"\x1b\[[0-9;]*m", "", in_terminal(shop.root, "runners", columns=columns, env=environ))
    assert shown.splitlines()[-1] == "    AGENT_NOT_FOUND: no claude"
    assert max(display_width(line) for line in shown.splitlines()) <= columns


@pytest.mark.spec("QUE-11")
def test_what_an_idle_runner_claims_at_once_is_said_to_be_at_work(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    from aiflow.adapters.processes.wake_pipes import WakePipes

    shop.runner()
    # The runner hears of the task before `queue add` looks around.
    monkeypatch.setattr(WakePipes, "poke", lambda _self, _namespace, task_id: len(shop.claim(task_id).task_id))
    said = shop("queue", "add", "RQ-1").out
    assert said.startswith("Queued: start RQ-1 (P1) as TASK-")
    assert said.endswith(f"  Runner R-1 works on it in {shop.checkout.id}\n")


# --- both languages, and bad stores ----------------------------------------------------------------------------------


def test_everything_is_said_in_japanese_too(shop: Shop) -> None:
    use_texts(Texts("ja"))
    translate_click("ja")
    try:
        assert shop("queue", "add", "RQ-1").out.startswith("キューに入れました: 開始 RQ-1（P1）")
        assert "Runner がありません" in shop("queue", "list").out
        assert "namespace" in shop("queue", "add", "--help").out
    finally:
        translate_click("en")


@pytest.mark.parametrize(("columns", "language"), [(80, "en"), (44, "ja")])
def test_the_list_fits_a_terminal_and_ids_are_never_cut(
    shop: Shop, dynamo: Dynamo, tmp_path: Path, columns: int, language: str
) -> None:
    task_id = shop.add("とても長い題名 " * 20)
    environ = {**dynamo.environ, "XDG_DATA_HOME": str(tmp_path / "data"), "AIFLOW_LANG": language}
    shown = in_terminal(shop.root, "queue", "list", columns=columns, env=environ)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", shown).splitlines()
    assert "\x1b[" in shown
    assert task_id in shown
    assert "…" in shown
    assert max(display_width(line) for line in lines) <= columns


def test_commands_below_the_queue_are_listed_and_a_mistyped_one_is_recognised(shop: Shop) -> None:
    listed = [line.split()[0] for line in shop("queue").out.partition("Commands:")[2].splitlines() if line[2:3].strip()]
    assert listed[:-1] == ["add", "list", "show", "cancel", "counts", "runners", "namespaces", "store"]
    assert "Did you mean 'list'?" in shop("queue", "lst", code=2).err


@pytest.mark.spec("ERR-3", "QUE-10")
def test_a_store_that_does_not_answer_is_an_error_with_its_address(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIFLOW_QUEUE_STORE", "http://127.0.0.1:9")
    error = shop.json("queue", "list", code=3)["error"]
    assert (error["reason_code"], error["context"]["endpoint"]) == ("STORE_UNREACHABLE", "http://127.0.0.1:9")
    assert not any("aiflow queue store" in action for action in error["actions"])


@pytest.mark.spec("QUE-10", "CLI")
def test_that_the_store_makes_us_wait_is_said_once(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aiflow.adapters.dynamo.client.SLOW_SECONDS", 0.0)  # every answer takes longer
    shop("queue", "add", "RQ-1")
    assert shop("queue", "list").err == "Waiting for the queue store to answer …\n"
    assert shop("queue", "list", "--json").err == ""


def test_the_program_itself_does_all_that(shop: Shop, aiflow: Program, dynamo: Dynamo, tmp_path: Path) -> None:
    environ = {**dynamo.environ, "XDG_DATA_HOME": str(tmp_path / "data")}
    task_id = aiflow.json("queue", "add", "RQ-1", env=environ)["tasks"][0]["task_id"]
    assert task_id in aiflow("queue", "list", env=environ).stdout
