"""The journal (ERR-4): append-only, many processes at once, survives a torn line, rotated, followed by offset."""

from __future__ import annotations

import errno
import itertools
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from aiflow.adapters.files.guard_files import guarded
from aiflow.adapters.journal import ActivityLog
from aiflow.domain.activity import Activity, ActivityKind, Actor
from aiflow.errors import EnvironmentProblemError
from aiflow.ports.journal import JournalPage
from builders import NOW

pytestmark = pytest.mark.spec("ERR-4")


def entry(number: int, text: str = "") -> Activity:
    return Activity(NOW, ActivityKind.DECISION, Actor.AUTO_RUN, f"RQ-{number}", data={"number": number, "text": text})


def numbers(log: ActivityLog) -> list[int]:
    return [each.fields["data"]["number"] for each in log.read(limit=100_000).entries]


def test_an_entry_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    log = ActivityLog(tmp_path)
    log.append(
        Activity(NOW, ActivityKind.REFUSAL, Actor.RUNNER, "RQ-1", "RUN-1", "LOCK_MISMATCH", {"who": "日本語\n😀"})
    )
    (read,) = log.read().entries
    assert (read.cursor, read.cursor) == (log.end(), log.read().cursor)
    assert read.fields == {
        "at": NOW.isoformat(),
        "kind": "refusal",
        "actor": "runner",
        "request_id": "RQ-1",
        "run_id": "RUN-1",
        "reason_code": "LOCK_MISMATCH",
        "pid": os.getpid(),
        "data": {"who": "日本語\n😀"},
    }


def test_an_empty_journal_is_read_without_making_anything(tmp_path: Path) -> None:
    log = ActivityLog(tmp_path)
    assert log.read().entries == ()
    assert log.end() == "0:0"
    assert os.listdir(tmp_path) == []


def test_it_is_followed_by_offset(tmp_path: Path) -> None:
    log = ActivityLog(tmp_path)
    for number in range(5):
        log.append(entry(number))
    first = log.read(limit=2)
    assert [each.fields["data"]["number"] for each in first.entries] == [0, 1]
    rest = log.read(first.cursor)
    assert [each.fields["data"]["number"] for each in rest.entries] == [2, 3, 4]
    assert log.read(rest.cursor).entries == ()
    assert rest.cursor == log.end()
    log.append(entry(5))
    assert [each.fields["data"]["number"] for each in log.read(rest.cursor).entries] == [5]


def test_a_torn_last_line_is_waited_for_then_closed_and_skipped(tmp_path: Path) -> None:
    log = ActivityLog(tmp_path)
    log.append(entry(1))
    path = tmp_path / ".aiflow/activity/00000001.jsonl"
    with path.open("ab") as file:
        file.write(b'{"at": "2026-01-02T03:04:05+00:00", "kin')  # killed here
    page = log.read()
    assert (numbers(log), page.damaged) == ([1], 0)
    log.append(entry(2))
    page = log.read()
    assert (numbers(log), page.damaged) == ([1, 2], 1)
    assert [each.fields["data"]["number"] for each in log.read(page.cursor).entries] == []


def test_full_files_are_rotated_and_only_the_newest_kept(tmp_path: Path) -> None:
    log = ActivityLog(tmp_path, max_file_bytes=500, max_files=3)
    log.append(entry(0))
    begin = log.read().cursor
    for number in range(1, 40):
        log.append(entry(number))
    files = sorted(name for name in os.listdir(tmp_path / ".aiflow/activity") if name.endswith(".jsonl"))
    assert len(files) == 3
    kept = numbers(log)
    assert kept == list(range(kept[0], 40))
    page = log.read(begin)
    assert page.has_gap
    assert [each.fields["data"]["number"] for each in page.entries] == kept
    assert not log.read(page.cursor).has_gap


def test_following_across_a_rotation_misses_nothing(tmp_path: Path) -> None:
    log = ActivityLog(tmp_path, max_file_bytes=300, max_files=50)
    seen: list[int] = []
    cursor = log.end()
    for number in range(30):
        log.append(entry(number))
        page = log.read(cursor, limit=1)
        seen += [each.fields["data"]["number"] for each in page.entries]
        cursor = page.cursor
    assert seen == list(range(30))


WRITER = """
import sys, pathlib, datetime
from aiflow.adapters.journal import ActivityLog
from aiflow.domain.activity import Activity, ActivityKind, Actor
log = ActivityLog(pathlib.Path(sys.argv[1]), max_file_bytes=20_000)
for number in range(int(sys.argv[3])):
    log.append(Activity(datetime.datetime.now(datetime.UTC), ActivityKind.DECISION, Actor.RUNNER, data={"writer": int(sys.argv[2]), "number": number, "pad": "x" * (number % 700)}))
"""


def test_eight_processes_write_at_once_and_nothing_is_lost_or_mixed(tmp_path: Path) -> None:
    running = [subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), str(n), "60"]) for n in range(8)]
    assert [process.wait(timeout=60) for process in running] == [0] * 8
    page = ActivityLog(tmp_path).read(limit=100_000)
    assert page.damaged == 0
    for writer in range(8):
        own = [each.fields["data"]["number"] for each in page.entries if each.fields["data"]["writer"] == writer]
        assert own == list(range(60))


def test_a_writer_killed_in_the_middle_spoils_at_most_its_own_line(tmp_path: Path) -> None:
    for turn in range(5):
        with subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), str(turn), "100000"]) as process:
            log = ActivityLog(tmp_path)
            before = len(log.read(limit=1_000_000).entries)
            while len(log.read(limit=1_000_000).entries) < before + 5:
                assert process.poll() is None
            process.kill()
    log.append(entry(7))
    page = log.read(limit=1_000_000)
    assert page.entries[-1].fields["data"]["number"] == 7
    assert page.damaged <= 5
    for turn in range(5):
        own = [each.fields["data"]["number"] for each in page.entries if each.fields["data"].get("writer") == turn]
        assert own == list(range(len(own)))


def test_writers_wait_for_each_other(tmp_path: Path) -> None:
    log = ActivityLog(tmp_path)
    log.append(entry(1))
    writer = threading.Thread(target=log.append, args=(entry(2),))
    with guarded(tmp_path / ".aiflow/activity/guard"):
        writer.start()
        writer.join(timeout=0.3)
        assert writer.is_alive()
        assert numbers(log) == [1]
    writer.join(timeout=60)
    assert numbers(log) == [1, 2]


def test_a_full_disk_leaves_no_part_of_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = ActivityLog(tmp_path)
    log.append(entry(1))
    real_write = os.write
    calls: list[int] = []

    def write_half(fd: int, data: bytes) -> int:
        calls.append(len(data))
        if len(calls) == 1:
            return real_write(fd, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "write", write_half)
    with pytest.raises(EnvironmentProblemError) as caught:
        log.append(entry(2))
    monkeypatch.undo()
    assert caught.value.reason_code == "DISK_FULL"
    log.append(entry(3))
    assert numbers(log) == [1, 3]
    assert log.read().damaged == 0


def test_lines_that_are_not_entries_are_counted_not_raised(tmp_path: Path) -> None:
    log = ActivityLog(tmp_path)
    log.append(entry(1))
    path = tmp_path / ".aiflow/activity/00000001.jsonl"
    with path.open("ab") as file:
        file.write(b"\xff\xfe\n[]\n\n" + json.dumps({"data": {"number": 2}}).encode() + b"\n")
    page = log.read()
    assert ([each.fields["data"]["number"] for each in page.entries], page.damaged) == ([1, 2], 2)


def test_a_line_that_a_killed_writer_left_in_a_full_file_is_passed_and_counted(tmp_path: Path) -> None:
    log = ActivityLog(tmp_path, max_file_bytes=200)
    log.append(entry(1, "x" * 200))
    with (tmp_path / ".aiflow/activity/00000001.jsonl").open("ab") as file:
        file.write(b'{"at": "2026-01')
    before = log.read()
    assert (numbers(log), before.damaged) == ([1], 0)
    log.append(entry(2))
    page = log.read()
    assert (numbers(log), page.damaged) == ([1, 2], 1)
    assert [each.fields["data"]["number"] for each in log.read(before.cursor).entries] == [2]
    assert log.read(page.cursor) == JournalPage((), page.cursor)
    assert [each.fields["data"]["number"] for each in log.read_back().entries] == [2, 1]


def test_a_cursor_of_a_journal_that_was_deleted_begins_anew_and_says_so(tmp_path: Path) -> None:
    log = ActivityLog(tmp_path, max_file_bytes=300)
    for number in range(9):
        log.append(entry(number))
    old = log.end()
    assert not old.startswith("1:")
    for path in (tmp_path / ".aiflow/activity").glob("*.jsonl"):
        path.unlink()
    assert log.read(old) == JournalPage((), "0:0", has_gap=True)
    log.append(entry(50))
    page = log.read(old)
    assert ([each.fields["data"]["number"] for each in page.entries], page.has_gap) == ([50], True)
    assert log.read(page.cursor) == JournalPage((), page.cursor)


def test_a_cursor_inside_a_line_is_of_another_file_and_begins_it_anew(tmp_path: Path) -> None:
    log = ActivityLog(tmp_path)
    log.append(entry(1))
    log.append(entry(2))
    for cursor in ("1:7", "1:999999"):
        page = log.read(cursor)
        assert ([each.fields["data"]["number"] for each in page.entries], page.has_gap) == ([1, 2], True)


def test_the_first_entries_of_an_empty_journal_are_no_gap(tmp_path: Path) -> None:
    log = ActivityLog(tmp_path)
    begin = log.end()
    log.append(entry(1))
    page = log.read(begin)
    assert ([each.fields["data"]["number"] for each in page.entries], page.has_gap) == ([1], False)


def test_it_is_read_backwards_across_rotated_files(tmp_path: Path) -> None:
    log = ActivityLog(tmp_path, max_file_bytes=300)
    for number in range(20):
        log.append(entry(number))
    assert len(list((tmp_path / ".aiflow/activity").glob("*.jsonl"))) > 5
    for limit in (1, 3, 100):
        seen: list[int] = []
        page = log.read_back(limit=limit)
        while page.entries:
            assert len(page.entries) <= limit
            seen += [each.fields["data"]["number"] for each in page.entries]
            page = log.read_back(page.cursor, limit)
        assert seen == list(reversed(range(20)))


def test_it_is_followed_across_a_rotation_while_others_write(tmp_path: Path) -> None:
    log = ActivityLog(tmp_path, max_file_bytes=300, wait=lambda _seconds: log.append(entry(next(coming))))
    coming = iter(range(20))
    log.append(entry(99))
    seen = [each.fields["data"]["number"] for each in itertools.islice(log.follow(None, lambda: False), 20)]
    assert seen == list(range(20))
