"""Workers that a killed server left (API-1): the very process that was written down is taken over, and no other."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from aiflow.adapters.processes.worker_notes import write_note
from aiflow.adapters.processes.workers import KEPT, WorkerProcesses
from aiflow.ports.server import Worker
from waiting import wait_until

pytestmark = pytest.mark.spec("API-1")


@pytest.fixture
def left() -> Iterator[Worker]:
    """Give a process that works, as a server before started it."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield Worker(process.pid, "left", ())
        process.kill()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / ".aiflow/workers"
    made.mkdir(parents=True)
    return made


def test_a_worker_that_was_written_down_is_taken_over_until_it_ends(folder: Path, left: Worker) -> None:
    write_note(folder, left)
    server = WorkerProcesses(folder.parents[1], {}, "PERSON")
    assert server.at_work() == ()
    assert server.adopt() == server.at_work() == (left,)
    server.end(left)
    wait_until(lambda: not server.at_work())  # as a zombie of ours it is not at work either
    server.end(left)
    assert WorkerProcesses(folder.parents[1], {}, "PERSON").adopt() == ()


def test_another_process_with_the_same_number_is_left_alone(folder: Path, left: Worker) -> None:
    write_note(folder, left)
    note = folder / "left.json"
    told = json.loads(note.read_text())
    for change in ({"started_at": told["started_at"] - 1}, {"boot_id": "another"}, {"pid": 1}, {"pid": "x"}):
        note.write_text(json.dumps({**told, **change}))
        assert WorkerProcesses(folder.parents[1], {}, "PERSON").adopt() == ()
    for text in ("", "[]", "{}", "null", "[" * 100_000):
        note.write_text(text)
        assert WorkerProcesses(folder.parents[1], {}, "PERSON").adopt() == ()


def test_a_worker_of_its_own_is_not_taken_over(folder: Path) -> None:
    server = WorkerProcesses(folder.parents[1], {}, "PERSON")
    started = server.start(("--version",))
    assert (folder / f"{started.worker_id}.json").exists()
    assert server.adopt() == ()
    wait_until(lambda: server.exit_code(started) is not None)


def test_what_is_at_work_keeps_its_files(folder: Path, left: Worker) -> None:
    write_note(folder, left)
    (folder / "left.out").write_text("")
    for number in range(KEPT + 5):
        for end in ("out", "err", "json"):
            (folder / f"old-{number}.{end}").write_text("")
    server = WorkerProcesses(folder.parents[1], {}, "PERSON")
    server.adopt()
    started = server.start(("--version",))
    wait_until(lambda: server.exit_code(started) is not None)
    kept = {path.name for path in folder.iterdir()}
    assert {"left.out", "left.json"} <= kept
    assert len([name for name in kept if name.startswith("old") and name.endswith(".json")]) <= KEPT


def test_a_file_that_another_call_tidied_away_keeps_no_worker_from_starting(folder: Path) -> None:
    for number in range(KEPT + 5):
        (folder / f"old-{number}.out").symlink_to("gone")  # is listed, and is not there when it is looked at
    server = WorkerProcesses(folder.parents[1], {}, "PERSON")
    started = server.start(("--version",))
    wait_until(lambda: server.exit_code(started) is not None)
    assert len(list(folder.glob("old-*.out"))) < KEPT + 5
