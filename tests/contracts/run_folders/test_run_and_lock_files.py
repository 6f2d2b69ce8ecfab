"""Reading runs and locks (REQ-7, SEL-4, LCK-1): what is missing or broken never stops anything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aiflow.adapters.locks.lock_files import LockFiles
from aiflow.adapters.run_folders.run_files import RunFiles
from aiflow.adapters.run_folders.stage_file import stage_of
from aiflow.domain.lifecycle import RunState
from aiflow.domain.lock import LockType
from aiflow.domain.request import RequestId, parse_instant
from aiflow.domain.run_summary import TaskRef
from run_builders import in_tests

RQ = RequestId("RQ-1")


def write_stage(root: Path, run_id: str, stage: Any, request_id: str = "RQ-1") -> None:
    folder = root / "runs" / request_id / run_id
    folder.mkdir(parents=True)
    (folder / "stage.json").write_text(stage if isinstance(stage, str) else json.dumps(stage))


@pytest.mark.spec("REQ-7")
def test_without_runs_everything_counts_as_never_run(tmp_path: Path) -> None:
    assert RunFiles(tmp_path).latest() == {}
    assert RunFiles(tmp_path).latest([RQ]) == {}
    assert RunFiles(tmp_path).all_of(RQ) == ()


@pytest.mark.spec("SEL-4")
def test_the_latest_run_is_not_simply_the_newest(tmp_path: Path) -> None:
    write_stage(tmp_path, "RUN-20260101-000000-aaaaaa", {"state": "NEEDS_INPUT", "error": {"reason_code": "CANCELLED"}})
    write_stage(tmp_path, "RUN-20260102-000000-aaaaaa", {"state": "FAILED"})
    write_stage(tmp_path, "RUN-20260103-000000-aaaaaa", {"state": "DONE"})
    files = RunFiles(tmp_path)
    assert files.latest()[RQ].run_id == "RUN-20260101-000000-aaaaaa"
    write_stage(tmp_path, "RUN-20251231-000000-aaaaaa", stage_of(in_tests()) | {"run_id": None})
    assert files.latest()[RQ].state is RunState.TESTING
    assert [run.run_id[4:12] for run in files.all_of(RQ)] == ["20260103", "20260102", "20260101", "20251231"]


def test_a_run_is_summed_up(tmp_path: Path) -> None:
    stage = {
        "state": "NEEDS_INPUT",
        "error": {"category": "EXECUTION", "reason_code": "RETRY_LIMIT_EXCEEDED", "cause": "UNIT_TEST_FAILED"},
        "history": [{"at": "2026-01-01T00:00:00Z"}, {"at": "2026-01-01T09:00:00+09:00", "event": "NEEDS_INPUT"}],
        "task": {"namespace": "shop", "task_id": "TASK-1"},
    }
    write_stage(tmp_path, "RUN-1", stage)
    run = RunFiles(tmp_path).latest([RQ])[RQ]
    assert (run.reason_code, run.cause) == ("RETRY_LIMIT_EXCEEDED", "UNIT_TEST_FAILED")
    assert run.changed_at == parse_instant("2026-01-01T00:00:00Z")
    assert run.task == TaskRef("shop", "TASK-1")
    odd = ("TASK-1", {"task_id": "TASK-1"}, {"namespace": 1, "task_id": "TASK-1"})
    for number, task in enumerate(odd, 2):
        write_stage(tmp_path, f"RUN-{number}", {**stage, "task": task})
    assert [run.task for run in RunFiles(tmp_path).all_of(RQ)] == [None] * 3 + [run.task]


@pytest.mark.spec("REQ-7", "REQ-5")
@pytest.mark.parametrize("stage", ["", "{", "[]", "null", '{"state": ["DONE"]}', "\x00", "[" * 100_000])
def test_a_run_whose_file_is_broken_is_a_lost_one(tmp_path: Path, stage: str) -> None:
    write_stage(tmp_path, "RUN-1", stage)
    run = RunFiles(tmp_path).latest()[RQ]
    assert (run.state, run.reason_code) == (RunState.FAILED, "RUN_LOST")


def test_odd_history_and_errors_do_no_harm(tmp_path: Path) -> None:
    write_stage(tmp_path, "RUN-1", {"state": "DONE", "error": "text", "history": ["text"]})
    assert RunFiles(tmp_path).latest()[RQ].reason_code is None
    (tmp_path / "runs/stray.txt").write_text("not a folder")
    assert list(RunFiles(tmp_path).latest()) == [RQ]


@pytest.mark.spec("LCK-1")
def test_locks_are_read_with_the_seeds_fields(tmp_path: Path) -> None:
    folder = tmp_path / ".aiflow/locks"
    folder.mkdir(parents=True)
    lock = {
        "version": "1.0",
        "lock_type": "request",
        "request_id": "RQ-1",
        "run_id": "RUN-1",
        "pid": 12345,
        "host": "127.0.0.1",
        "created_at": "2025-12-14T15:01:02+09:00",
        "expires_at": "2025-12-14T15:31:02+09:00",
        "token": "t",
        "fence": 7,
        "boot_id": "b",
        "process_started_at": 1.5,
    }
    (folder / "request.RQ-1.lock.json").write_text(json.dumps(lock))
    (folder / "queue.lock.json").write_text(json.dumps({**lock, "lock_type": "queue"}))
    (folder / "requests.guard").write_text("")
    requests, queue = LockFiles(tmp_path).held()
    read = requests[RQ]
    assert list(requests) == [RQ]
    assert (read.run_id, read.pid, read.host, read.token, read.fence) == ("RUN-1", 12345, "127.0.0.1", "t", 7)
    assert (read.created_at, read.expires_at) == tuple(map(parse_instant, (lock["created_at"], lock["expires_at"])))  # type: ignore[arg-type]
    assert queue is not None
    assert queue.lock_type is LockType.QUEUE


@pytest.mark.spec("LCK-5")
@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff", b'{"pid": "x", "host": 5, "expires_at": 7}'])
def test_a_damaged_lock_is_still_a_lock(tmp_path: Path, data: bytes) -> None:
    folder = tmp_path / ".aiflow/locks"
    folder.mkdir(parents=True)
    (folder / "request.RQ-1.lock.json").write_bytes(data)
    requests, _ = LockFiles(tmp_path).held()
    assert requests[RQ].pid is None
    assert requests[RQ].written_at is not None
    assert requests[RQ].is_readable == data.startswith(b'{"')


def test_looking_at_locks_makes_nothing(tmp_path: Path) -> None:
    assert LockFiles(tmp_path).held() == ({}, None)
    assert list(tmp_path.iterdir()) == []
