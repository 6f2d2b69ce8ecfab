"""Several runners, many tasks, and somebody who kills, stops and continues them (QUE-5 to QUE-7).

The agent itself writes down when it starts and ends, and looks whether another execution of its request lives. Most
tasks end with the planner's question, which takes one call of the agent; one in ten is a whole run with its commit.
"""

from __future__ import annotations

import itertools
import json
import random
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from aiflow.adapters.processes.runner_process import checkout_at
from aiflow.domain.queue.task import Task, first_delivery
from builders import write_request
from dynamo import Dynamo
from e2e.bench import Bench, git
from forms import rounds
from runner_yard import Yard
from waiting import wait_until

RUNNERS = rounds(3, 8)
TASKS = rounds(72, 500)
REQUESTS_EACH = rounds(5, 10)
WHOLE = 10
BLOWS = rounds(12, 40)
KILLED, SLEPT = 3, 2
LEASE_SECONDS = 8
# On an idle machine it takes a quarter of this; how busy the machine is must not decide.
LIMIT_SECONDS = 600

AGENT = """#!{python} -IS
import json, os, sys, time
LOG = {log!r}
call = json.load(sys.stdin)
request, role = call["request"]["id"], call["role"]
me = os.getpid()


def write(what):
    line = json.dumps([what, request, call["run_id"], role, me, time.monotonic()]) + "\\n"
    fd = os.open(LOG + "/record.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, line.encode())
    os.close(fd)


def is_alive(pid):
    try:
        with open(f"/proc/{{pid}}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


folder = LOG + "/live/" + request
os.makedirs(folder, exist_ok=True)
open(f"{{folder}}/{{me}}", "w").close()
write("start")
if any(name != str(me) and is_alive(name) for name in os.listdir(folder)):
    write("overlap")
time.sleep(0.02)
is_whole = "whole" in call["request"]["title"]
if role == "planner" and is_whole:
    answer = {{"steps": [{{"id": "S01", "title": "Do it", "instructions": "Do it"}}]}}
elif role == "planner":
    answer = {{"status": "needs_input", "question": "Which?"}}
elif role == "qa":
    answer = {{"verdict": "pass", "findings": []}}
else:
    with open(request + ".txt", "w") as file:
        file.write(call["run_id"])
    answer = {{"status": "done", "summary": ""}}
write("end")
os.unlink(f"{{folder}}/{{me}}")
with open(os.environ["AIFLOW_RESULT"], "w") as file:
    json.dump(answer, file)
"""


@pytest.fixture
def bench(repository: Path, tmp_path: Path) -> Iterator[Bench]:
    """Give the repository that every checkout is a clone of."""
    made = Bench(repository, tmp_path)
    yield made
    made.close()


@dataclass
class Post:
    """One checkout and the runner that works there now; `killed` are those that did before."""

    root: Path
    environ: dict[str, str]
    process: subprocess.Popen[bytes] | None = None
    killed: set[int] = field(default_factory=set)

    def start(self) -> None:
        argv = [sys.executable, "-m", "aiflow", "runner", "--json"]
        with (self.root.parent / f"{self.root.name}.log").open("ab") as log:
            self.process = subprocess.Popen(argv, cwd=self.root, env=self.environ, stdout=log, stderr=log)

    @property
    def running(self) -> subprocess.Popen[bytes]:
        assert self.process is not None
        return self.process

    def signal(self, number: int) -> None:
        self.running.send_signal(number)

    def kill(self) -> None:
        self.killed.add(self.running.pid)
        self.running.kill()
        self.running.wait()

    def journal(self) -> list[dict[str, Any]]:
        files = sorted((self.root / ".aiflow/activity").glob("*.jsonl"))
        return [json.loads(line) for path in files for line in path.read_text().splitlines()]


class Field:
    """All of them."""

    def __init__(self, bench: Bench, dynamo: Dynamo, folder: Path) -> None:
        self.folder = folder / "field"
        self.folder.mkdir()
        self.yard = Yard(bench, dynamo)
        agent = self.folder / "agent.py"
        agent.write_text(AGENT.format(python=sys.executable, log=str(self.folder)))
        agent.chmod(agent.stat().st_mode | stat.S_IXUSR)
        (bench.root / "requests/RQ-1.md").unlink()
        bench.configure(argv=[str(agent)])
        bench.commit()
        environ = bench.aiflow.environ | {
            "AIFLOW_QUEUE_POLL_MS": "300",
            "AIFLOW_QUEUE_HEARTBEAT_TIMEOUT_SECONDS": str(LEASE_SECONDS),
            "PYTHONDONTWRITEBYTECODE": "",
        }
        self.posts = [Post(self._clone(bench, number), environ) for number in range(RUNNERS)]
        self.task_ids: list[str] = []

    def _clone(self, bench: Bench, number: int) -> Path:
        root = self.folder / f"checkout-{number}"
        git(self.folder, "clone", "-q", str(bench.root), str(root))
        git(root, "config", "user.name", "Ada")
        git(root, "config", "user.email", "ada@example.com")
        for each in range(REQUESTS_EACH):
            title = "whole" if each == 0 else "short"
            write_request(root, f"RQ-{number}-{each}", None, priority="P1", status="ready", title=title)
        return root

    def enqueue(self) -> None:
        for number, post in enumerate(self.posts):
            checkout = checkout_at(str(post.root))
            for each in range(REQUESTS_EACH):
                self.task_ids.append(self.yard.add("start", f"RQ-{number}-{each}", checkout=checkout))
        self.enqueue_prompts(TASKS - len(self.task_ids))

    def enqueue_prompts(self, count: int) -> None:
        for number in range(count):
            self.task_ids.append(self.yard.prompt("whole" if number % WHOLE == 0 else "short"))

    def tasks(self) -> list[Task]:
        return [task for page in self.yard.queue.pages() for task in page.tasks]

    def is_over(self) -> bool:
        counts = self.yard.queue.counts()
        return not counts.get("QUEUED", 0) and not counts.get("RUNNING", 0)  # type: ignore[call-overload]

    def share_done(self) -> float:
        """How much of the work is done: the blows are spread over all of it."""
        return sum(task.is_final for task in self.tasks()) / TASKS

    def busy(self, sleeping: list[Post]) -> list[Post]:
        """Who has a task at work, as far as the records tell; else anybody who is awake."""
        at_work = {runner.pid for runner in self.yard.runners() if runner.task_id is not None}
        awake = [post for post in self.posts if post not in sleeping]
        return [post for post in awake if post.running.pid in at_work] or awake

    def stop_at_work(self, post: Post) -> Task | None:
        """Make a runner sleep if it is in the middle of a task, as the store says; else let it go on."""
        post.signal(signal.SIGSTOP)
        known = [runner.runner_id for runner in self.yard.runners() if runner.pid == post.running.pid]
        tasks = [task for runner_id in known for task in self.yard.queue.tasks_of(runner_id)]
        if not tasks:
            post.signal(signal.SIGCONT)
        return tasks[0] if tasks else None

    def wait_until_known(self, post: Post) -> None:
        wait_until(lambda: post.running.pid in {runner.pid for runner in self.yard.runners()})

    def record(self) -> list[list[Any]]:
        return [json.loads(line) for line in (self.folder / "record.jsonl").read_text().splitlines()]


class Harassment:
    """Somebody who kills, stops and continues runners; a killed one is started again."""

    def __init__(self, field: Field, chance: random.Random) -> None:
        self.field, self.chance = field, chance
        self.asleep: dict[str, Post] = {}
        self.did: Counter[str] = Counter()

    def go_on(self, until: float) -> Counter[str]:
        """Go on until everything is done.

        Work comes in for as long as too few were killed or lost their task asleep, however quick the runners are.
        """
        next_blow = time.monotonic() + 1
        while time.monotonic() < until:
            self._wake()
            if time.monotonic() >= next_blow and self._blows < BLOWS * self.field.share_done() + 2:
                self._strike(self.chance.choice(self.field.busy(list(self.asleep.values()))))
                next_blow = time.monotonic() + self.chance.uniform(0.2, 1.5)
            if not self.asleep and self.field.is_over():
                if self.did["kill"] >= KILLED and self.did["slept"] >= SLEPT:
                    return self.did
                self.field.enqueue_prompts(RUNNERS)
            time.sleep(0.3)
        raise AssertionError(f"not over in time: {self.field.yard.queue.counts()}, {self.did}")

    @property
    def _blows(self) -> int:
        return self.did["kill"] + self.did["stop"]

    def _wake(self) -> None:
        """Wake who no longer has the task it slept over: taken from it, or ended by a call that was on its way."""
        for task_id in list(self.asleep):
            task = self.field.yard.task(task_id)
            if task.is_final:
                self.did["slept"] += task.reason_code == "RUNNER_LOST"
                self.asleep.pop(task_id).signal(signal.SIGCONT)

    def _strike(self, post: Post) -> None:
        # Of the first few some are surely of either kind.
        is_kill = self._blows % 2 == 0 if self._blows < 8 else self.chance.random() < 0.6
        if is_kill or len(self.asleep) >= 2:
            post.kill()
            post.start()
            self.did["kill"] += 1
        elif task := self.field.stop_at_work(post):
            self.asleep[task.task_id] = post
            self.did["stop"] += 1


@pytest.mark.faults
@pytest.mark.spec("QUE-5", "QUE-6", "QUE-7", "QUE-11")
def test_whatever_happens_to_runners_each_task_has_one_outcome_and_no_request_two_executions(
    bench: Bench, dynamo: Dynamo, tmp_path: Path, chance: random.Random
) -> None:
    field = Field(bench, dynamo, tmp_path)
    field.enqueue()
    try:
        for post in field.posts:
            post.start()
        did = Harassment(field, chance).go_on(time.monotonic() + LIMIT_SECONDS)
        for post in field.posts:  # one that has only just begun does not hear yet
            field.wait_until_known(post)
            post.signal(signal.SIGTERM)
        codes = [post.running.wait(timeout=60) for post in field.posts]
    finally:
        for post in field.posts:
            if post.process is not None and post.process.poll() is None:
                post.process.kill()
                post.process.wait()
        shutil.rmtree(bench.state, ignore_errors=True)
    print(dict(did), Counter((str(task.status), task.reason_code) for task in field.tasks()))
    assert codes == [0] * RUNNERS
    _assert_one_execution_at_a_time(field)
    _assert_one_outcome_each(field)
    _assert_stale_writes_refused(field)


def _assert_one_execution_at_a_time(field: Field) -> None:
    """No agent saw another one alive that worked on its request."""
    record = field.record()
    assert [line for line in record if line[0] == "overlap"] == []
    assert sum(line[0] == "start" for line in record) >= TASKS


def _assert_one_outcome_each(field: Field) -> None:
    """Every task, or the last of those that went on with it, ended, once, as its run did; none was lost."""
    lines: dict[str, list[Task]] = {}
    for task in field.tasks():
        lines.setdefault(first_delivery(task.task_id), []).append(task)
    assert set(field.task_ids) <= set(lines)
    for deliveries in lines.values():
        ordered = sorted(deliveries, key=lambda task: (len(task.task_id), task.task_id))
        assert all(task.is_final for task in ordered)
        for task, following in itertools.pairwise(ordered):
            assert (task.status, task.successor, following.predecessor) == ("ERROR", following.task_id, task.task_id)
            assert task.reason_code in ("RUNNER_LOST", "RUNNER_STOPPED", "STORE_UNREACHABLE")
        last = ordered[-1]
        assert last.successor is None
        assert last.status != "CANCELLED"
        _assert_as_its_run(field, last)


def _assert_as_its_run(field: Field, task: Task) -> None:
    """A task that a run ended says what the run's own file says."""
    if task.reason_code in ("RUNNER_LOST", "NOT_READY"):  # delivered often enough, or taken up by RUN-11 in between
        return
    assert task.run_id is not None, task
    [stage] = [path for post in field.posts for path in post.root.glob(f"runs/*/{task.run_id}/stage.json")]
    state = json.loads(stage.read_text())["state"]
    assert state == ("DONE" if task.status == "COMPLETE" else "NEEDS_INPUT"), task


def _assert_stale_writes_refused(field: Field) -> None:
    """Who slept through its lease, and woke up again, wrote nothing to its task and said so."""
    by_id = {runner.runner_id: runner for runner in field.yard.runners()}
    refused = {
        entry["data"]["task_id"]
        for post in field.posts
        for entry in post.journal()
        if entry.get("reason_code") == "LOCK_MISMATCH"
    }
    killed = {pid for post in field.posts for pid in post.killed}
    woken = {
        task.task_id
        for task in field.tasks()
        if task.reason_code == "RUNNER_LOST" and by_id[task.claimed_by or ""].pid not in killed
    }
    print(f"lost though alive: {len(woken)}, refused: {len(refused)}")
    assert refused
    assert woken <= refused
    by_task = {task.task_id: task for task in field.tasks()}
    assert all(by_task[task_id].status == "ERROR" for task_id in refused)
