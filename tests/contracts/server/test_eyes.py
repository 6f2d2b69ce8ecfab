"""Looking at a checkout's files (API-3): whatever any process does there shows, and nothing else is looked at."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from aiflow.adapters.locks.taking import LockTaking
from aiflow.adapters.server.eyes import CheckoutFiles
from aiflow.domain.request import RequestId
from aiflow.domain.server.facts import HeldLock

pytestmark = pytest.mark.spec("API-3")

RUN = "RUN-20260101-000000-000001"


@pytest.fixture
def eyes(repository: Path) -> CheckoutFiles:
    return CheckoutFiles(str(repository), lambda: "requests", LockTaking(str(repository), 1800).survey)


def make_run(root: Path, state: str = "PLANNING", log: str = "") -> Path:
    folder = root / "runs/RQ-1" / RUN
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    (folder / "stage.json").write_text(json.dumps({"state": state}))
    (folder / "logs/step-0.log").write_text(log)
    return folder


def test_a_run_is_watched_while_its_lock_is_held_and_once_more(repository: Path, eyes: CheckoutFiles) -> None:
    make_run(repository, log="one\n")
    assert (eyes.look().runs, eyes.look().logs) == ({}, {})
    lease = LockTaking(str(repository), 1800).acquire_request(RequestId("RQ-1"), RUN)
    sight = eyes.look()
    assert sight.locks == (HeldLock("RQ-1", RUN, is_stale=False),)
    assert {key: state for key, (_, state) in sight.runs.items()} == {("RQ-1", RUN): "PLANNING"}
    assert sight.logs == {("RQ-1", RUN, 0): 4}
    make_run(repository, "DONE", log="one\ntwo\n")
    lease.release()  # type: ignore[union-attr]
    last = eyes.look()
    assert (last.locks, last.runs["RQ-1", RUN][1], last.logs["RQ-1", RUN, 0]) == ((), "DONE", 8)
    assert eyes.look().runs == {}


def test_a_holder_that_was_killed_is_seen_though_no_file_says_it(repository: Path, eyes: CheckoutFiles) -> None:
    child = os.fork()
    if child == 0:
        try:
            LockTaking(str(repository), 1800).acquire_request(RequestId("RQ-1"), RUN)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert eyes.look().locks == (HeldLock("RQ-1", RUN, is_stale=True),)


def test_a_run_that_the_journal_named_is_looked_at(repository: Path, eyes: CheckoutFiles) -> None:
    make_run(repository, "FAILED")
    sight = eyes.look([("RQ-1", RUN), ("../..", RUN), ("RQ-1", "../../x"), ("RQ-1", "RUN-gone")])
    assert {key: state for key, (_, state) in sight.runs.items()} == {("RQ-1", RUN): "FAILED"}


@pytest.mark.parametrize("text", ["", "[", "[1]", '{"state": 7}'])
def test_a_file_that_says_nothing_has_no_state(repository: Path, eyes: CheckoutFiles, text: str) -> None:
    (make_run(repository) / "stage.json").write_text(text)
    (repository / ".aiflow").mkdir()
    (repository / ".aiflow/auto.json").write_text(text)
    sight = eyes.look([("RQ-1", RUN)])
    assert (sight.runs["RQ-1", RUN][1], sight.auto[1]) == (None, None)


def test_the_state_of_auto_run_and_what_only_has_a_mark(repository: Path, eyes: CheckoutFiles) -> None:
    before = eyes.look()
    (repository / ".aiflow").mkdir(exist_ok=True)
    (repository / ".aiflow/auto.json").write_text('{"state": "RUNNING"}')
    (repository / "aiflow.toml").write_text("\n")
    (repository / "runs").mkdir()
    after = eyes.look()
    assert (before.auto[1], after.auto[1]) == (None, "RUNNING")
    assert [name for name in after.marks if after.marks[name] != before.marks[name]] == ["runs", "settings"]


def test_requests_are_told_by_their_files_and_nothing_else_is_one(repository: Path, eyes: CheckoutFiles) -> None:
    (repository / "requests").mkdir()
    for name in ("RQ-1.md", "README.md", ".RQ-2.md.swp", "note.txt"):
        (repository / "requests" / name).write_text("# One\n")
    first = eyes.look()
    assert list(first.requests) == ["RQ-1"]
    (repository / "requests/RQ-3.md").write_text("# Three\n")
    assert sorted(eyes.look().requests) == ["RQ-1", "RQ-3"]
