"""A step's log (RUN-1, AGT-4): live, appended to, no secret in it however it arrives, never larger than it should be."""

from __future__ import annotations

import io
import itertools
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aiflow.adapters.run_folders import log_marks
from aiflow.adapters.run_folders.log_marks import read_marks
from aiflow.adapters.run_folders.run_log import (
    LEFT_OUT,
    LONGEST_SECRET,
    MAX_CALL_BYTES,
    MAX_LINE_BYTES,
    StepLogFile,
)
from aiflow.adapters.secrets import Masker
from aiflow.domain.agents.plain_text import plain_bytes
from aiflow.domain.runs.excerpt import TAIL_BYTES
from aiflow.domain.runs.log_marks import LogMark, line_times, with_looks
from aiflow.errors import EnvironmentProblemError
from aiflow.ports import StepLog

SECRET = "s3cret/Value+with=signs"
LINES = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\nAQEFAASCBKcwggSjAgEAAoIB\n-----END PRIVATE KEY-----\n"
TOKEN = b"ghp_abcdefghijklmnopqrstuvwxyz0123456789"
MASKER = Masker({"API_TOKEN": SECRET, "SIGNING_KEY": LINES, "LANG": "C.UTF-8"})


class Opened:
    """A log that is being written, and what its follower saw."""

    def __init__(self, folder: Path, name: str = "step-1.log") -> None:
        self.path = folder / name
        self.seen: list[bytes] = []
        self.log = StepLogFile(str(self.path), MASKER, self.seen.append)

    def text(self) -> bytes:
        self.log.close()
        return self.path.read_bytes()


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    return Opened(tmp_path)


# --- live, and appended to -------------------------------------------------------------------------------------------


@pytest.mark.spec("RUN-1", "AGT-2")
def test_a_line_is_in_the_file_as_soon_as_it_ends(opened: Opened) -> None:
    log: StepLog = opened.log
    log.write(b"one\ntw")
    assert opened.path.read_bytes() == b"one\n"
    log.write(b"o\n")
    assert opened.path.read_bytes() == b"one\ntwo\n" == b"".join(opened.seen)


@pytest.mark.spec("RUN-9")
def test_a_log_grows_from_call_to_call(tmp_path: Path) -> None:
    for number in range(3):
        opened = Opened(tmp_path)
        opened.log.say(f"=== call {number}")
        opened.log.write(b"output without an end")
        opened.log.close()
    assert opened.path.read_bytes() == b"".join(b"=== call %d\noutput without an end\n" % n for n in range(3))


@pytest.mark.spec("RUN-1")
def test_what_aiflow_says_stands_on_a_line_of_its_own(opened: Opened) -> None:
    opened.log.write(b"half")
    opened.log.say("[aiflow] said: 日本 \ud800 \udcff")
    opened.log.write(b"rest\n")
    assert opened.text().decode() == "half\n[aiflow] said: 日本 \\ud800 \\udcff\nrest\n"
    assert b"".join(opened.seen) == opened.path.read_bytes()


@pytest.mark.spec("RUN-1")
def test_a_log_may_be_closed_twice_and_without_anybody_following(tmp_path: Path) -> None:
    log = StepLogFile(str(tmp_path / "a.log"), MASKER)
    log.write(b"x")
    log.close()
    log.close()
    assert (tmp_path / "a.log").read_bytes() == b"x\n"


@pytest.mark.spec("AGT-4")
def test_bytes_that_are_no_text_are_kept_unless_a_terminal_obeys_them(opened: Opened) -> None:
    opened.log.write(bytes(range(256)) + b"\n")
    assert opened.text() == b"\t\n\n" + bytes([*range(0x20, 0x7F), *range(0x80, 0x100)]) + b"\n"


@pytest.mark.spec("SEC", "AGT-4")
def test_a_log_holds_no_escape_sequence_and_no_secret_that_is_coloured(opened: Opened) -> None:
    opened.log.write(b"\x1b[31mred\x1b[0m \x1b]0;title\x07 10%\r20%\r\n")
    opened.log.write(b"\x1b[1m" + TOKEN[:9] + b"\x1b[0m" + TOKEN[9:] + b"\n")
    opened.log.say("[aiflow] \x1b[2Jsaid")
    shown = b"red  10%\n20%\r\n***\n[aiflow] said\n"
    assert opened.text() == shown == b"".join(opened.seen)


# --- colours and times, beside it -------------------------------------------------------------------------------------


class Marked(Opened):
    """The same with marks; a second passes when a test says so."""

    def __init__(self, folder: Path, name: str = "step-1.log") -> None:
        super().__init__(folder, name)
        self.second = 1_000
        self.log = StepLogFile(str(self.path), MASKER, self.seen.append, self._now)

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self.second, UTC)

    def marks(self, start: int = 0, end: int = 10**9) -> tuple[LogMark, ...]:
        with self.path.with_suffix(".marks").open("rb") as file:
            return read_marks(file, start, end)

    def shown(self) -> bytes:
        """What the page shows."""
        return with_looks(self.text(), 0, self.marks())


@pytest.fixture
def marked(tmp_path: Path) -> Marked:
    return Marked(tmp_path)


@pytest.mark.spec("WEB-1", "SEC")
def test_colours_are_beside_the_log_and_nothing_else_is(marked: Marked) -> None:
    marked.log.write(b"\x1b[31mred\x1b[0m \x1b]0;t\x07\x1b[2Jx\x1b[1")
    marked.log.write(b"mbold\n")
    marked.log.write(b"\xc2\x1b[0m\x9b31m\n")  # without what is between, a control that begins a sequence
    assert marked.text() == b"red xbold\n31m\n" == b"".join(marked.seen)
    assert marked.shown() == b"\x1b[31mred\x1b[0m x\x1b[1mbold\n31m\n"


@pytest.mark.spec("WEB-1")
def test_times_are_kept_by_the_second_and_grow_from_call_to_call(marked: Marked, tmp_path: Path) -> None:
    for line in (b"one\n", b"two\n"):
        marked.log.write(line)
    marked.second += 1
    marked.log.write(b"three\n")
    marked.log.close()
    again = Marked(tmp_path)
    again.second = 1_060
    again.log.say("=== again")
    again.log.close()
    assert line_times(again.text(), 0, again.marks()) == [(0, 1000), (2, 1001), (3, 1060)]


@pytest.mark.spec("WEB-1")
def test_marks_without_their_text_are_dropped_at_the_next_call(marked: Marked, tmp_path: Path) -> None:
    marked.log.write(b"\x1b[31mone\n\x1b[32mtwo\n")
    marked.log.close()
    marked.path.write_bytes(b"one\n")
    again = Marked(tmp_path)
    again.log.write(b"new\n")
    assert again.shown() == b"\x1b[31mone\nnew\n"


@pytest.mark.spec("AGT-4", "SEC")
@pytest.mark.parametrize("secret", [SECRET.encode(), TOKEN, b"postgres://me:hunter2hunter2@host"])
def test_no_colour_keeps_a_secret_apart(tmp_path: Path, secret: bytes) -> None:
    for cut in range(1, len(secret)):
        marked = Marked(tmp_path, f"{cut}.log")
        split = secret[:cut] + b"\x1b[31m" + secret[cut:]
        marked.log.write(b"\x1b[1mbefore\n" + split + b"\x1b[0m\n\x1b[2mbehind\n" + split)
        assert secret not in marked.log.tail.encode()
        assert secret not in marked.log.excerpt.encode()
        assert "\x1b" not in marked.log.tail
        assert secret not in marked.text()
        assert secret not in plain_bytes(marked.shown())
        assert marked.shown().startswith(b"\x1b[1mbefore\n")
        assert b"\n\x1b[2mbehind\n" in marked.shown()  # moved by what was masked


@pytest.mark.spec("AGT-4", "SEC")
@pytest.mark.parametrize("size", [1, 7, 40, 1000])
def test_no_colour_keeps_a_private_key_apart(marked: Marked, size: int) -> None:
    body = b"\x1b[2mc2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0\x1b[0m\n" * 5
    text = b"-----BEGIN EC \x1b[1mPRIVATE KEY-----\x1b[0m\n" + body + b"-----END EC PRIVATE KEY-----\nbehind\n"
    for start in range(0, len(text), size):
        marked.log.write(text[start : start + size])
    assert marked.text() == b"-----BEGIN EC PRIVATE KEY-----***-----END EC PRIVATE KEY-----\nbehind\n"


@pytest.mark.spec("AGT-4", "SEC")
def test_no_colour_keeps_a_secret_apart_where_a_line_without_an_end_is_cut(tmp_path: Path) -> None:
    split = SECRET[:9].encode() + b"\x1b[31m" + SECRET[9:].encode()
    for behind in range(LONGEST_SECRET - 40, LONGEST_SECRET + 10, 3):
        marked = Marked(tmp_path, f"{behind}.log")
        marked.log.write(b"\x1b[1m" + b"x" * MAX_LINE_BYTES + split + b"y" * behind + b"\x1b[3")
        marked.log.write(b"1mz\n")
        assert marked.text() == b"x" * MAX_LINE_BYTES + b"***" + b"y" * behind + b"z\n"


@pytest.mark.spec("AGT-4")
def test_more_colours_than_anybody_looks_at_are_not_kept(marked: Marked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_marks, "MOST_LOOKS", 3)
    for _ in range(3):
        marked.log.write(b"\x1b[31mx\x1b[0my\n")
    assert marked.shown() == b"\x1b[31mx\x1b[0my\n\x1b[31mxy\nxy\n"


@settings(max_examples=100)
@given(st.lists(st.integers(0, 300), max_size=60).map(sorted), st.integers(0, 310), st.integers(0, 310))
def test_the_marks_of_a_part_are_found_wherever_it_is(offsets: list[int], start: int, end: int) -> None:
    file = io.BytesIO(b"".join(b"%d t%d\n" % (offset, number) for number, offset in enumerate(offsets)))
    wanted = tuple(LogMark(each, number) for number, each in enumerate(offsets) if start <= each < end)
    assert read_marks(file, start, end) == wanted


def test_what_is_no_mark_is_passed_over() -> None:
    file = io.BytesIO(b"0 t5\nx\n1 m31\x1b[2J\n2 m\n3 m;;\n\n4 mxx\n5 t7\n")
    assert read_marks(file, 0, 99) == (LogMark(0, 5), LogMark(2, look=""), LogMark(3, look=";;"), LogMark(5, 7))
    huge = b"9" * 5000
    assert read_marks(io.BytesIO(b"0 t" + huge + b"\n" + huge + b" t1\n"), 1, 99) == ()


# --- secrets ---------------------------------------------------------------------------------------------------------


@pytest.mark.spec("AGT-4")
def test_a_secret_is_masked_wherever_it_is_cut_in_two(tmp_path: Path) -> None:
    line = b"before " + SECRET.encode() + b" between " + TOKEN + b" behind\n"
    for cut in range(len(line)):
        opened = Opened(tmp_path, f"{cut}.log")
        opened.log.write(line[:cut])
        opened.log.write(line[cut:])
        assert opened.text() == b"before *** between *** behind\n"


@pytest.mark.spec("AGT-4")
@settings(max_examples=50)
@given(st.lists(st.integers(0, 200), max_size=8))
def test_a_secret_of_several_lines_is_masked_however_it_arrives(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int]
) -> None:
    text = b"key:\n" + LINES.encode() + b"end " + SECRET.encode()
    opened = Opened(tmp_path_factory.mktemp("log"))
    for start, end in itertools.pairwise([0, *sorted(cuts), len(text)]):
        opened.log.write(text[start:end])
    written = opened.text()
    assert SECRET.encode() not in written
    assert not any(line.encode() in written for line in LINES.splitlines())
    assert written.startswith(b"key:\n***")
    assert written.endswith(b"end ***\n")


@pytest.mark.spec("AGT-4")
def test_neither_follower_nor_tail_nor_aiflows_own_lines_show_a_secret(opened: Opened) -> None:
    opened.log.say(f"unit tests: curl {SECRET}")
    opened.log.write(b"out " + SECRET.encode() + b"\nhalf a line with " + SECRET.encode())
    assert opened.log.tail == "out ***\nhalf a line with ***"
    opened.log.close()
    assert SECRET.encode() not in b"".join(opened.seen) + opened.text()


@pytest.mark.spec("AGT-4")
@pytest.mark.parametrize("secret", [SECRET.encode(), TOKEN, b"Authorization: Bearer abcdef0123456789"])
@pytest.mark.parametrize("filler", [b"x", b"x "], ids=["one word", "blanks"])
def test_a_secret_in_a_line_without_an_end_is_masked_wherever_the_line_is_cut(
    tmp_path: Path, filler: bytes, secret: bytes
) -> None:
    places = (MAX_LINE_BYTES, MAX_LINE_BYTES - LONGEST_SECRET)
    for before in (place + by for place in places for by in range(-60, 20, 7)):
        opened = Opened(tmp_path, f"{before}.log")
        line = (filler * before)[: before - 1] + b"," + secret + b" " + filler * MAX_LINE_BYTES
        opened.log.write(line[: MAX_LINE_BYTES + 1])
        opened.log.write(line[MAX_LINE_BYTES + 1 :])
        written = opened.text()
        assert secret[-12:] not in written
        assert b"," + (b"Authorization: Bearer ***" if b":" in secret else b"***") + b" " in written
        assert len(written) == len(line) + 1 - len(secret) + (len(secret) - 13 if b":" in secret else 3)


# --- limits ----------------------------------------------------------------------------------------------------------


@pytest.mark.spec("AGT-4")
def test_a_line_without_an_end_is_written_as_it_grows(opened: Opened) -> None:
    for _ in range(40):
        opened.log.write(b"x" * 10_000)
        assert opened.path.stat().st_size >= sum(map(len, opened.seen)) >= 0
    assert opened.path.stat().st_size >= 400_000 - MAX_LINE_BYTES
    assert opened.text() == b"x" * 400_000 + b"\n"


@pytest.mark.spec("AGT-4")
def test_ten_megabytes_of_a_call_are_kept_and_the_rest_is_said_to_be_missing(opened: Opened) -> None:
    chunk = b"0123456789abcdef" * 4095 + b"\n"
    for _ in range(400):
        opened.log.write(chunk)
    opened.log.write(b"the very end\n")
    assert opened.log.tail.endswith("the very end")
    opened.log.say("=== aiflow goes on")
    written = opened.text()
    assert written.endswith(LEFT_OUT + b"=== aiflow goes on\n")
    assert written.count(LEFT_OUT) == 1
    assert len(written) == MAX_CALL_BYTES + len(LEFT_OUT) + len("=== aiflow goes on\n")
    assert written == b"".join(opened.seen)


@pytest.mark.spec("AGT-4")
def test_output_that_just_fits_is_whole_and_one_byte_more_is_told(opened: Opened) -> None:
    opened.log.write(b"x" * (MAX_CALL_BYTES - 1) + b"\n")
    assert opened.path.stat().st_size == MAX_CALL_BYTES
    opened.log.write(b"\n")
    assert opened.text() == b"x" * (MAX_CALL_BYTES - 1) + b"\n" + LEFT_OUT


@pytest.mark.spec("AGT-4")
def test_the_limit_is_that_of_one_call_not_of_the_file(tmp_path: Path) -> None:
    first, second = Opened(tmp_path), Opened(tmp_path)
    first.log.write(b"x" * MAX_CALL_BYTES + b"\n")
    first.log.close()
    second.log.write(b"second\n")
    assert second.text().endswith(LEFT_OUT + b"second\n")


@pytest.mark.spec("RUN-1")
def test_the_tail_is_the_end_of_the_output_and_not_more(opened: Opened) -> None:
    assert opened.log.tail == ""
    opened.log.say("=== a title is no output")
    assert opened.log.tail == ""
    opened.log.write(b"\n".join(b"line %d" % number for number in range(5000)))
    tail = opened.log.tail
    assert len(tail) <= TAIL_BYTES
    assert tail.splitlines()[-2:] == ["line 4998", "line 4999"]
    opened.log.write("日本語".encode() * 2000)
    assert opened.log.tail.endswith("日本語")


@pytest.mark.spec("RUN-2", "ERR-3")
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a disk that is full needs /dev/full")
def test_a_full_disk_has_its_name_and_the_log_is_closed_all_the_same() -> None:
    log = StepLogFile("/dev/full", MASKER)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(EnvironmentProblemError, match="DISK_FULL"):
        log.write(b"line\n")
    log.write(b"half")
    with pytest.raises(EnvironmentProblemError, match="DISK_FULL"):
        log.close()
    log.close()
    assert len(os.listdir("/proc/self/fd")) == before - 1


@pytest.mark.spec("AGT-4", "SEC")
@pytest.mark.parametrize("size", [1, 7, 40, 1000])
def test_a_private_key_of_anybody_is_masked_however_it_arrives(opened: Opened, size: int) -> None:
    body = b"c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0\n" * 5
    text = b"before\n-----BEGIN EC PRIVATE KEY-----\n" + body + b"-----END EC PRIVATE KEY-----\nbehind\n"
    for start in range(0, len(text), size):
        opened.log.write(text[start : start + size])
    shown = b"before\n-----BEGIN EC PRIVATE KEY-----***-----END EC PRIVATE KEY-----\nbehind\n"
    assert opened.text() == shown == b"".join(opened.seen)


@pytest.mark.spec("AGT-4", "SEC")
def test_a_private_key_without_an_end_is_masked_too(opened: Opened) -> None:
    opened.log.write(b"-----BEGIN RSA PRIVATE KEY-----\n" + b"c2VjcmV0c2VjcmV0c2VjcmV0\n" * 9)
    opened.log.say("[aiflow] over")
    assert opened.text() == b"-----BEGIN RSA PRIVATE KEY-----***\n[aiflow] over\n"
