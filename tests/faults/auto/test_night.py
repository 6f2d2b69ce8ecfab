"""A whole night (AUT-1 to AUT-4, REQ-6, GIT-3): many requests, and a process that is killed again and again."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aiflow.adapters.markdown_requests.store import MarkdownRequests
from aiflow.domain.backlog.selection import Backlog, select_next
from aiflow.domain.request import RequestId, RequestStatus
from e2e.bench import Bench, git
from faults.killing import survivors
from forms import rounds

pytestmark = pytest.mark.faults

REQUESTS = rounds(24, 100)
KILLS = rounds(12, 45)
FLAGS = ("-c", "accept=auto", "-c", "auto.stop_after_needs_input=0", "-c", "auto.stop_after_failed=0")
KINDS = ["fine"] * 14 + ["flaky"] * 2 + ["red", "asks", "dies", "nothing"]

# Nobody's work may be there without what it depends on, and none of the work that fails.
CHECK = """set -eu
for file in done/*.txt; do
  test -e "$file" || continue
  while read -r needed; do test -e "done/$needed.txt"; done < "$file"
done
! grep -rq RED done 2>/dev/null
"""

IMPLEMENT = """
import fcntl
alone = os.open(HERE / "alone", os.O_CREAT | os.O_WRONLY)
try:
    fcntl.flock(alone, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    (HERE / "overlap").write_text(call["request"]["id"])
name = call["request"]["id"]
orders = json.loads((HERE / "orders.json").read_text())[name]
kind = orders["kind"]
if kind == "asks":
    ask("Which one?")
elif kind == "dies":
    sys.exit(1)
elif kind == "nothing":
    done("nothing to do")
else:
    is_red = kind == "red" or (kind == "flaky" and attempt == 1)
    write(f"done/{name}.txt", "RED\\n" if is_red else "".join(each + "\\n" for each in orders["needs"]))
    done()
"""


class Night:
    """A backlog made by chance, and what is to become of it."""

    def __init__(self, bench: Bench, chance: random.Random) -> None:
        self.bench, self.chance = bench, chance
        self.orders: dict[str, dict[str, Any]] = {}
        (bench.root / "requests/RQ-1.md").unlink()
        (bench.root / "check.sh").write_text(CHECK)
        bench.configure('[tests]\nunit = "sh check.sh"')
        for number in range(REQUESTS):
            self._add(number)
        self._odd_ones()
        bench.agent.does("implementer", IMPLEMENT)
        (bench.agent.folder / "orders.json").write_text(json.dumps(self.orders))
        bench.commit()
        self.before, _ = MarkdownRequests(str(bench.root)).load()

    def _add(self, number: int) -> None:
        name, chance = f"RQ-{number:03}", self.chance
        needs = chance.sample(list(self.orders), min(len(self.orders), chance.choice([0, 0, 1, 1, 2])))
        self.orders[name] = {"kind": chance.choice(KINDS), "needs": needs}
        self._write(name, [*needs])

    def _odd_ones(self) -> None:
        """Some that can never run: in a circle, waiting for what does not exist, a draft, a broken file."""
        for name, needs in (("ODD-1", ["ODD-2"]), ("ODD-2", ["ODD-1"]), ("ODD-3", ["NOWHERE"])):
            self._write(name, needs)
        self.bench.add_request("ODD-4", status="draft")
        self.bench.add_request("ODD-5", priority="P9")

    def _write(self, name: str, needs: list[str]) -> None:
        self.bench.add_request(
            name,
            priority=f"P{self.chance.randrange(4)}",
            depends_on=f"[{', '.join(needs)}]",
            updated_at=f"2026-01-{self.chance.randrange(1, 29):02}",
        )

    def work_through(self) -> tuple[Any, int]:
        """Let auto-run work, killed at random instants and started again, until it comes to its end by itself."""
        kills = 0
        while True:
            process = self.bench.start("auto", "--json", *FLAGS)
            if kills < KILLS:
                self._kill_behind(process, len(self._lines()) + self.chance.randrange(16))
            out, err = process.communicate(timeout=900)
            if process.returncode == -signal.SIGKILL:
                kills += 1
                continue
            assert process.returncode == 0, out + err
            return json.loads(out), kills

    def _kill_behind(self, process: subprocess.Popen[str], count: int) -> None:
        """Kill a process a moment after the journal has so many lines, however soon that is, unless it ends before."""
        while len(self._lines()) < count:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=0.01)
                return
        time.sleep(self.chance.uniform(0, 0.1))
        process.kill()

    def _lines(self) -> list[bytes]:
        files = (self.bench.root / ".aiflow/activity").glob("*.jsonl")
        return [line for path in files for line in path.read_bytes().splitlines()]

    def possible(self) -> set[str]:
        """The requests that nothing but a crash keeps from being done: in the order of their making, needs come first."""
        found: set[str] = set()
        for name, orders in self.orders.items():
            if orders["kind"] in ("fine", "flaky", "nothing") and found.issuperset(orders["needs"]):
                found.add(name)
        return found

    def order(self) -> list[str]:
        """The order in which runs began, as they say: one killed twice in its planning may never reach the agent."""
        began = {run.parent.name for run in (self.bench.root / "runs").glob("*/RUN-*")}
        return sorted(began, key=lambda name: self.bench.stage(name)["history"][0]["at"])

    def expected_order(self) -> list[str]:
        """The order that selection gives, with the outcomes that the night had."""
        requests = {request.id: request for request in self.before}
        order: list[str] = []
        while (chosen := select_next(Backlog(requests=tuple(requests.values()))).next) is not None:
            order.append(chosen.id)
            requests[chosen.id] = replace_status(chosen, self.bench.status(chosen.id))
        return order


def replace_status(request: Any, status: str) -> Any:
    """Return a request with another status, whatever kind of value it is."""
    new = RequestStatus(status)
    return request._replace(status=new) if hasattr(request, "_replace") else replace(request, status=new)


@pytest.fixture
def night(repository: Path, tmp_path: Path, chance: random.Random) -> Iterator[Night]:
    """Give a night's backlog; afterwards nothing of it may be running."""
    bench = Bench(repository, tmp_path)
    made = Night(bench, chance)
    yield made
    bench.close()
    runs = [run.name for run in (bench.root / "runs").glob("*/RUN-*")]
    assert survivors(runs) == {}


@pytest.mark.spec("AUT-1", "AUT-2", "AUT-3", "AUT-4", "REQ-6", "GIT-3", "RUN-11", "SEL-7")
def test_a_night_of_many_requests_and_many_crashes(night: Night) -> None:
    bench = night.bench
    summary, kills = night.work_through()
    assert kills > KILLS // 4, kills
    assert (summary["state"], summary["reason_code"]) == ("completed", "AUTO_NOTHING_RUNNABLE")
    assert bench.locks() == []
    statuses = {name: bench.status(name) for name in night.orders}

    # Every request is done, waits with a reason and a command, or says why it was not reached.
    for name, status in statuses.items():
        told = bench.aiflow.json("why", name)["stations"][0]
        assert status in ("done", "blocked", "ready"), (name, status)
        assert status == "done" or told["barriers"], name
        assert status != "blocked" or told["commands"], name
    listed = {each["request_id"] for each in (*summary["waiting"], *summary["unreached"])}
    assert listed >= {name for name, status in statuses.items() if status != "done"}
    fine = {name for name, status in statuses.items() if status == "done"}
    assert not [name for name in fine if night.orders[name]["kind"] in ("red", "asks", "dies")]
    assert len(fine) > len(night.possible()) / 3

    _each_was_executed_once(bench, statuses)
    assert night.order() == night.expected_order()
    _base_has_exactly_the_accepted_work(bench, night, fine)


def _each_was_executed_once(bench: Bench, statuses: dict[str, str]) -> None:
    assert not (bench.agent.folder / "overlap").exists()
    calls = [(call["document"]["request"]["id"], call["document"]["run_id"]) for call in bench.agent.calls]
    for name, status in statuses.items():
        runs = bench.run_ids(name)
        assert len(runs) == (0 if status == "ready" else 1), name
        assert {run_id for owner, run_id in calls if owner == name} <= set(runs)
        if status == "done":
            stage = bench.stage(name)
            assert stage["accepted_as"], name
            assert [step["state"] for step in stage["steps"]] == ["done"]
            # Called again only where tests failed or a process was killed.
            failures = sum(line.get("reason_code") is not None for line in stage["history"])
            assert stage["attempts"]["steps"]["S01"]["implementer"] <= 1 + failures, name


def _base_has_exactly_the_accepted_work(bench: Bench, night: Night, fine: set[str]) -> None:
    worked = {name for name in fine if night.orders[name]["kind"] != "nothing"}
    files = {Path(path).stem for path in bench.files_at("main") if path.startswith("done/")}
    assert files == worked
    merges = bench.git("log", "--first-parent", "--merges", "--format=%s", "main").splitlines()
    assert len(merges) == len(worked)
    assert {line.split()[1].rstrip(":") for line in merges} == worked
    for commit in bench.git("rev-list", "--first-parent", "main").splitlines():
        _passes(bench, commit)


def _passes(bench: Bench, commit: str) -> None:
    folder = bench.state / "checked"
    folder.mkdir(parents=True, exist_ok=True)
    git(bench.root, f"--work-tree={folder}", "read-tree", "--index-output=.git/checked-index", commit)
    environ = {**os.environ, "GIT_INDEX_FILE": str(bench.root / ".git/checked-index")}
    out = ["git", f"--work-tree={folder}", "checkout-index", "-afq"]
    subprocess.run(out, cwd=bench.root, env=environ, check=True)
    subprocess.run(["sh", "check.sh"], cwd=folder, check=True)


@pytest.mark.spec("SEL-2")
def test_the_expected_order_is_selections_own(night: Night) -> None:
    first = select_next(Backlog(requests=tuple(night.before))).next
    assert first is not None
    assert night.bench.aiflow.json("next")["next"]["request_id"] == RequestId(first.id)
