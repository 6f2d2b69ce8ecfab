"""Two start requests at once make one run (ISS-3): real processes of two checkouts, real git, a real agent program.

Every call waits a seeded moment, the headers of both go through together, and the list of comments lags. What is
believed is what the hub did and what the agent programs wrote down.
"""

from __future__ import annotations

import contextlib
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fresh_git
from e2e.bench import Bench
from forms import rounds
from github.answering import GitHub
from github.doors import Door, Gate, Lag, Past
from github.hub import Hub
from github.scene import PEOPLE, RUNNER
from github.server import served

# A line is a call of the program, in a process of its own; with everything imported once, and GitHub's patience cut
# short: a second between two writes would only make the race slower.
SHORT = """
import importlib, json, os, pkgutil, sys
import aiflow, aiflow.cli.main
for module in pkgutil.walk_packages(aiflow.__path__, "aiflow."):
    if not module.name.endswith("__main__") and ".agents.acp." not in module.name:
        importlib.import_module(module.name)
from aiflow.adapters.github_issues import limits, start
limits.BETWEEN_WRITES_SECONDS, start.SECONDS_BETWEEN, start.SETTLED_SECONDS = 0.02, 0.2, 0.8
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        with open(os.devnull) as nothing, open("../said." + str(os.getppid()), "a") as said:
            for fd, file in ((0, nothing), (1, said), (2, said)):
                os.dup2(file.fileno(), fd)
        code = 99
        try:
            code = aiflow.cli.main.main(json.loads(line))
        except SystemExit as end:
            code = end.code or 0
        finally:
            sys.stdout.flush()
            os._exit(code if isinstance(code, int) else 98)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
# Long enough for what lags to be read back, and now and then not.
LAGS = {
    "none": Lag(),
    "a stale list": Lag((0.0, 0.3, 0.6)),
    "a stale list and count": Lag((0.0, 0.3, 0.6), is_count_late=True),
    "a list that shows own comments first": Lag((0.3, 0.6, 0.9), is_own_seen=True),
    "a stale count that has only own comments": Lag((0.3, 0.6), is_own_seen=True, is_count_late=True),
    "a list that lags for long": Lag((0.6, 1.6), is_own_seen=True),
}
# Each a test: on a busy machine all of them together take longer than one may.
PAIRS = list(zip([*LAGS][::2], [*LAGS][1::2], strict=True))


class Checkout:
    """One checkout, and a process that calls the program there."""

    def __init__(self, name: str, folder: Path, door: Door) -> None:
        root = folder / "repository"
        root.mkdir(parents=True)
        fresh_git.make_repository(root)
        self.name, self.door, self.bench = name, door, Bench(root, folder)

    def begin(self, url: str, hub: Hub, login: str) -> None:
        others = json.dumps([RUNNER, "aiflow-two"])
        self.bench.configure(f'[github]\nrepo = "{hub.repo}"\napi_url = "{url}"\nrunners = {others}\n')
        self.bench.commit()
        token = next(token for token, owner in hub.tokens.items() if owner == login)
        environ = {**self.bench.aiflow.environ, "GITHUB_TOKEN": token}
        argv = [sys.executable, "-c", SHORT]
        pipe = subprocess.PIPE
        self._calls = subprocess.Popen(argv, cwd=self.bench.root, env=environ, stdin=pipe, stdout=pipe, text=True)

    def call(self, *args: str) -> None:
        assert self._calls.stdin is not None
        self._calls.stdin.write(json.dumps(args) + "\n")
        self._calls.stdin.flush()

    def ended(self) -> int:
        assert self._calls.stdout is not None
        return int(self._calls.stdout.readline())

    def worked(self, number: int) -> list[str]:
        """The runs of an issue in which an agent was called, in their order."""
        documents = self.bench.agent.documents
        return list(dict.fromkeys(each["run_id"] for each in documents if each["request"]["id"] == f"GH-{number}"))

    def close(self) -> None:
        self._calls.kill()
        self._calls.communicate()


class Arena:
    """A hub, and two checkouts with a door each."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.hub, self.chance = Hub(), chance
        for login, permission in {**PEOPLE, RUNNER: "write", "aiflow-two": "write"}.items():
            self.hub.person(login, permission)
        self.past, gate = Past(GitHub(self.hub)), Gate()
        self.doors = [Door(name, self.past, gate, chance) for name in ("one", "two")]
        self.checkouts = [Checkout(door.name, folder / door.name, door) for door in self.doors]

    def lag(self, lag: Lag) -> None:
        for door in self.doors:
            door.lag, door.is_gated = lag, self.chance.random() < 0.8

    def queued(self) -> int:
        with self.past.guard:
            number = self.hub.open_issue("Say hello", "Please.", by="maya")
            self.hub.label(number, "agent:queued", "maya")
        return number

    def say(self, number: int, text: str) -> None:
        """Let a person comment: the list shows it after as long as it lags."""
        with self.past.guard:
            self.hub.comment(number, text, "maya")
            self.past.note(self.hub.rows[number])

    def both(self, *args: str) -> list[int]:
        """Let both call the program at once; returns how each ended."""
        for checkout in self.checkouts:
            checkout.call(*args)
        return [checkout.ended() for checkout in self.checkouts]

    def worked(self, number: int) -> list[tuple[str, str]]:
        return [(each.name, run_id) for each in self.checkouts for run_id in each.worked(number)]

    def race(self, number: int) -> None:
        """Let both start an issue until it has been worked on: a list that lags for long makes a start give up."""
        before = self.worked(number)
        for _ in range(12):
            self.both("issues", "sync")
            self.both("run", f"GH-{number}", "--json")
            if self.worked(number) != before:
                return
        raise AssertionError(f"nobody worked on it: {self.story(number)}")

    def story(self, number: int) -> list[str]:
        return [f"{comment.id} {comment.body}" for comment in self.hub.rows[number].comments]

    def finished(self, number: int) -> bool:
        with self.past.guard:
            return any("aiflow finished" in body for body in self.story(number)[-3:])


@pytest.fixture
def arena(tmp_path: Path, chance: random.Random, request: pytest.FixtureRequest) -> Iterator[Arena]:
    made = Arena(tmp_path, chance)
    with contextlib.ExitStack() as stack:
        for checkout, login in zip(made.checkouts, request.param, strict=True):
            url = stack.enter_context(served(checkout.door))
            checkout.begin(url, made.hub, login)
            stack.callback(checkout.close)
        yield made


def check_one_at_a_time(arena: Arena, number: int, runs: int) -> None:
    """Of all that began an issue, so many worked on it, each after the end of the one before."""
    worked = [run_id for _, run_id in arena.worked(number)]
    assert len(worked) == runs, "\n".join([str(arena.worked(number)), *arena.story(number)])
    open_now: set[str] = set()
    withdrawn: set[str] = set()
    for _, mark in arena.past.marks:
        run_id = mark.text("run_id") or ""
        if run_id not in worked:
            continue
        if mark.kind == "run-header" and mark.facts.get("withdrawn"):
            withdrawn.add(run_id)
        elif mark.kind == "run-header":
            open_now.add(run_id)
        elif mark.text("ended"):
            open_now.discard(run_id)
        assert len(open_now) <= 1, (open_now, arena.story(number))
    assert not withdrawn & set(worked), arena.story(number)


def check_issue(arena: Arena, number: int, runs: int) -> None:
    """The issue agrees with its run: one label, one result for each run, nothing said twice."""
    assert arena.hub.rows[number].label_names() == ["agent:running"], arena.story(number)
    there: list[Any] = [mark for comment in arena.hub.rows[number].comments if (mark := _mark(comment.body))]
    keys = [mark.key for mark in there]
    assert len(keys) == len(set(keys)), keys
    open_headers = {m.facts["run_id"] for m in there if m.kind == "run-header" and not m.facts["withdrawn"]}
    assert len(open_headers) == runs, arena.story(number)


def _mark(body: str) -> Any:
    from aiflow.domain.issues.marks import find_mark

    return find_mark(body)


def check(arena: Arena, number: int, runs: int) -> None:
    for door in arena.doors:
        door.lag = Lag()
    for _ in range(10):
        arena.both("issues", "sync")
        if arena.finished(number):
            break
    arena.both("issues", "sync")
    check_one_at_a_time(arena, number, runs)
    check_issue(arena, number, runs)


def check_clean_start(arena: Arena, number: int) -> None:
    """The newest run began with nothing of the one before, but with what the person said."""
    calls = [call for each in arena.checkouts for call in each.bench.agent.calls]
    mine = [call for call in calls if call["document"]["request"]["id"] == f"GH-{number}"]
    first = next(call for call in mine if call["document"]["run_id"] == max(c["document"]["run_id"] for c in mine))
    assert first["document"]["role"] == "planner"
    assert first["document"]["planning"] is None
    assert "S01.txt" not in first["files"]
    assert "once more" in [told["summary"] for told in first["document"]["feedback"]]


@pytest.mark.faults
@pytest.mark.spec("ISS-3", "ISS-4", "ISS-6")
@pytest.mark.parametrize("arena", [(RUNNER, RUNNER), (RUNNER, "aiflow-two")], indirect=True, ids=["one", "two"])
@pytest.mark.parametrize("names", PAIRS, ids=" and ".join)
def test_two_starts_at_once_make_one_run(arena: Arena, names: tuple[str, str]) -> None:
    for _ in range(rounds(1, 12)):
        for name in names:
            lag = LAGS[name]
            arena.lag(lag)
            number = arena.queued()
            arena.race(number)
            check(arena, number, 1)
            if name == "a stale list":
                arena.say(number, "/retry once more")
                arena.lag(lag)
                arena.race(number)
                check(arena, number, 2)
                check_clean_start(arena, number)
