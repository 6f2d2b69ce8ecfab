"""The journal's ports (ERR-4), to add to and to read: one suite against memory and the real files."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest

from aiflow.adapters import journal as journal_module
from aiflow.adapters.journal import ActivityLog
from aiflow.adapters.memory.journal import MemoryJournal
from aiflow.domain.activity import Activity, ActivityKind, Actor
from aiflow.errors import BadInputError
from aiflow.ports.journal import Journal, JournalPage, JournalReader
from aiflow.usecases.activity import ActivityFilter, latest_activity
from builders import NOW


class WholeJournal(Journal, JournalReader, Protocol):
    """A journal to add to and to read."""


JOURNALS = pytest.mark.parametrize("make", [lambda _root: MemoryJournal(), ActivityLog])
MakeJournal = Callable[[Path], WholeJournal]


def note(number: int) -> Activity:
    return Activity(NOW, ActivityKind.DECISION, Actor.AUTO_RUN, f"RQ-{number}", data={"number": number})


def ids(page: JournalPage) -> list[str]:
    return [entry.fields["request_id"] for entry in page.entries]


@pytest.mark.spec("ERR-4")
@JOURNALS
def test_a_journal_gives_back_what_it_was_told(tmp_path: Path, make: MakeJournal) -> None:
    journal = make(tmp_path)
    assert journal.read() == JournalPage((), journal.end())
    assert journal.read_back() == JournalPage((), journal.end())
    journal.append(Activity(NOW, ActivityKind.REFUSAL, Actor.RUNNER, "RQ-1", "RUN-1", "LOCK_MISMATCH", {"who": "日本"}))
    (entry,) = journal.read().entries
    assert entry.fields == {
        "at": NOW.isoformat(),
        "kind": "refusal",
        "actor": "runner",
        "request_id": "RQ-1",
        "run_id": "RUN-1",
        "reason_code": "LOCK_MISMATCH",
        "pid": os.getpid(),
        "data": {"who": "日本"},
    }
    assert entry.cursor == journal.end()


@pytest.mark.spec("ERR-4")
@JOURNALS
def test_a_journal_is_read_on_from_every_entry(tmp_path: Path, make: MakeJournal) -> None:
    journal = make(tmp_path)
    for number in range(6):
        journal.append(note(number))
    everything = [f"RQ-{number}" for number in range(6)]
    whole = journal.read()
    assert (ids(whole), whole.has_gap, whole.damaged) == (everything, False, 0)
    for place, entry in enumerate(whole.entries):
        assert ids(journal.read(entry.cursor)) == everything[place + 1 :]
        assert ids(journal.read_back(entry.cursor)) == everything[: place + 1][::-1]
    first = journal.read(limit=4)
    assert (ids(first), ids(journal.read(first.cursor))) == (everything[:4], everything[4:])
    last = journal.read_back(limit=4)
    assert (ids(last), ids(journal.read_back(last.cursor))) == (everything[:1:-1], everything[1::-1])
    assert journal.read(whole.cursor) == JournalPage((), journal.end())


@pytest.mark.spec("ERR-4")
@JOURNALS
@pytest.mark.parametrize("cursor", ["", "x", "-1", "1:-1", "1:2:3", "٣", "9" * 30, "../1"])
def test_what_is_no_cursor_is_refused(tmp_path: Path, make: MakeJournal, cursor: str) -> None:
    journal = make(tmp_path)
    journal.append(note(1))
    for read in (journal.read, journal.read_back, lambda at: list(journal.follow(at, lambda: False))):
        with pytest.raises(BadInputError):
            read(cursor)


@pytest.mark.spec("ERR-4")
@JOURNALS
def test_a_cursor_behind_everything_there_is_begins_anew(tmp_path: Path, make: MakeJournal) -> None:
    journal = make(tmp_path)
    for number in range(3):
        journal.append(note(number))
    old = journal.end()
    (tmp_path / "other").mkdir()
    other = make(tmp_path / "other")
    other.append(note(7))
    page = other.read(old)
    assert (ids(page), page.has_gap) == (["RQ-7"], True)
    assert not other.read(page.cursor).has_gap


@pytest.mark.spec("ERR-4")
@JOURNALS
def test_a_journal_is_followed_until_told_to_stop(tmp_path: Path, make: MakeJournal) -> None:
    journal = make(tmp_path)
    journal.append(note(0))
    begin = journal.end()
    seen: list[str] = []
    is_over = threading.Event()

    def listen() -> None:
        seen.extend(entry.fields["request_id"] for entry in journal.follow(begin, is_over.is_set))

    listener = threading.Thread(target=listen)
    listener.start()
    for number in (1, 2, 3):
        journal.append(note(number))
        until = time.monotonic() + 20
        while len(seen) < number and time.monotonic() < until:
            time.sleep(0.01)
    is_over.set()
    listener.join(timeout=20)
    assert not listener.is_alive()
    assert seen == ["RQ-1", "RQ-2", "RQ-3"]


@pytest.mark.spec("ERR-4")
@pytest.mark.parametrize("block", [1, 7, 64, 65_536])
def test_a_journal_read_back_is_the_one_read_forwards_whatever_fits_into_a_block(
    tmp_path: Path, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "BLOCK_BYTES", block)
    journal = ActivityLog(tmp_path, max_file_bytes=900)
    for number in range(12):
        journal.append(
            Activity(NOW, ActivityKind.DECISION, Actor.AUTO_RUN, f"RQ-{number}", data={"x": "長い" * number})
        )
    newest = max((tmp_path / ".aiflow/activity").glob("*.jsonl"))
    with newest.open("ab") as file:
        file.write(b'\n{no json\n\r\n{"torn": ')
    forwards, back = journal.read(), journal.read_back()
    assert back.entries == forwards.entries[::-1]
    assert (back.damaged, forwards.damaged, journal.end()) == (1, 1, forwards.cursor)
    page, seen = journal.read_back(limit=1), back.entries[:0]
    while page.entries:
        seen, page = (*seen, *page.entries), journal.read_back(page.cursor, 1)
    assert seen == back.entries


@pytest.mark.spec("ERR-4")
@pytest.mark.skipif(not os.path.exists("/proc/self/io"), reason="what was read is counted by Linux")
def test_looking_back_reads_only_as_much_as_is_shown(tmp_path: Path) -> None:
    journal = ActivityLog(tmp_path)
    journal.append(note(0))
    (path,) = (tmp_path / ".aiflow/activity").glob("*.jsonl")
    line = path.read_bytes()
    path.write_bytes(line * (3_000_000 // len(line)))
    before = bytes_read()
    assert len(journal.read_back(limit=20).entries) == 20
    assert bytes_read() - before < 400_000
    # Nothing is found, so everything is looked through: each byte about once, not once a page.
    before = bytes_read()
    assert latest_activity(journal, 20, ActivityFilter(run_id="none"))[0].is_end
    assert bytes_read() - before < 3 * path.stat().st_size


def bytes_read() -> int:
    """How much this process has read since it began."""
    return int(Path("/proc/self/io").read_text().split()[1])
