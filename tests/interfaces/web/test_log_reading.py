"""A log as its viewer reads it (WEB-1, WEB-3): any lines by their numbers, true counts, and nothing read twice."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiflow.domain.runs.run import Run
from aiflow.web import log_reading
from aiflow.web.log_index import LogIndex, LogSearch, shown_text
from aiflow.web.log_reading import LogReader, LogReaders, Wanted
from aiflow.web.text.log_lines import LogKind, line_kind
from real_engine import engine_at
from run_page_runs import write_run

pytestmark = pytest.mark.spec("WEB-1", "WEB-3")
PIECES = st.lists(
    st.sampled_from(
        ["a\n", "word", "\n", "FAIL: a (b)\n", "x\rFAILED x.py\n", "=== 2026-01-01T00:00:00Z commit\n", "é", "panic: "]
    ),
    max_size=30,
)


class Log:
    """A log that a test writes, and what reads it."""

    def __init__(self, root: Path, run: Run) -> None:
        self.engine, self.run = engine_at(root), run
        self.path = root / self.engine.runs.log_path(run, 2)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_bytes(b"")
        self.readers = LogReaders()

    def write(self, data: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(data)

    @property
    def reader(self) -> LogReader:
        return self.readers.of(self.engine, self.run, 2)

    def lines(self, first: int, count: int) -> list[str]:
        found: list[str] = self.reader.lines(Wanted(first, count))["lines"]
        return found

    def total(self) -> int:
        told: int = self.reader.lines(Wanted())["total"]
        return told


@pytest.fixture
def log(repository: Path) -> Log:
    return Log(repository, write_run(repository, "tests_failed"))


@given(PIECES)
def test_what_is_known_is_the_same_however_it_came(pieces: list[str]) -> None:
    whole = "".join(pieces)
    lines = whole.split("\n")
    lines = lines if lines[-1] else lines[:-1]
    index, search = LogIndex(), LogSearch("WORD")
    for piece in pieces:
        index.take(piece.encode())
    assert (index.total, index.read) == (len(lines), len(whole.encode()))
    kinds = [line_kind(shown_text(line)) for line in lines]
    assert [*index.failing] == [at for at, kind in enumerate(kinds) if kind is LogKind.FAILING]
    headings = [at for at, kind in enumerate(kinds[: index.whole]) if kind is LogKind.HEADING]
    assert [*index.headings] == headings
    ended = whole[: whole.rfind("\n") + 1]
    search.take(ended.encode())
    hits = search.with_open(whole[len(ended) :].encode())
    assert [*hits] == [at for at, line in enumerate(lines) if "word" in shown_text(line).lower()]


def test_any_lines_are_found_by_their_numbers(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_reading, "PIECE_BYTES", 1000)  # many pieces
    texts = [f"line {n} {'x' * (n % 50)}" for n in range(3000)]
    log.write("\n".join(texts).encode())  # the last one has no end
    assert log.total() == 3000
    for first in (0, 1, 255, 256, 257, 1500, 2990):
        found = log.lines(first, 10)
        assert found == texts[first : first + len(found)]
        assert found
    assert log.lines(-2, 2) == texts[-2:]
    assert log.lines(3000, 5) == []
    log.write(b" and more\nthe next")
    assert log.lines(2999, 5) == [f"{texts[-1]} and more", "the next"]


def test_counts_stay_true_while_it_grows_and_after_it_was_cut(log: Log) -> None:
    log.write(b"a Word\nb\nFAIL: one (t)\n")
    assert log.reader.find("word", 0, None) == {"total": 1, "at": 0, "line": 0}
    log.write("WORD\nwör".encode())
    assert log.reader.find("word", 1, None) == {"total": 2, "at": 1, "line": 3}
    assert log.reader.find("wör", 0, None) == {"total": 1, "at": 0, "line": 4}
    assert log.reader.lines(Wanted(words="wor"))["hits"] == 2
    assert log.reader.find("nowhere", 0, None) == {"total": 0, "at": None, "line": None}
    log.write(b"\nFAIL: two (t)\n")
    assert log.reader.find("", 0, 2) == {"total": 2, "at": 1, "line": 5}
    assert log.reader.find("", 0, 5) == {"total": 2, "at": 0, "line": 2}  # behind the last comes the first
    before = log.reader.lines(Wanted())
    log.path.write_bytes(b"word\n")
    after = log.reader.lines(Wanted(0, 5, "word"))
    assert (after["lines"], after["total"], after["hits"], after["failures"]) == (["word"], 1, 1, 0)
    assert after["turn"] != before["turn"]


def test_it_opens_at_the_first_failure_of_the_last_part_that_has_one(log: Log) -> None:
    head = "=== 2026-01-01T00:00:00Z implementer S02 attempt {}\n"
    log.write(f"{head.format(1)}FAIL: a (t)\n{head.format(2)}FAIL: b (t)\nFAIL: c (t)\n{head.format(3)}ok\n".encode())
    told = log.reader.lines(Wanted(4, 1))
    assert (told["failure"], told["failures"], told["is_headed"], told["headings"]) == (3, 3, True, 3)
    assert told["heading"] == (2, head.format(2).rstrip())


def test_a_long_line_is_cut_and_read_whole_when_asked(log: Log) -> None:
    log.write(b"x" * 50_000 + b"end\nnext\n")
    assert [len(line) for line in log.lines(0, 2)] == [4_000, 4]
    [whole] = log.reader.lines(Wanted(0, 1, is_whole=True))["lines"]
    assert whole.endswith("xend")


def test_what_was_read_is_not_read_again(log: Log) -> None:
    log.write(b"one\n" * 1000)
    log.reader.find("one", 0, None)
    known = log.reader.known
    index, search = known.index, known.searches["one"]
    log.write(b"one\n")
    assert log.reader.find("one", 1000, None)["line"] == 1000
    assert (known.index, known.searches["one"]) == (index, search)
    for number in range(10):
        log.reader.find(f"w{number}", 0, None)
    assert len(known.searches) == log_reading.MOST_SEARCHES
