"""A step's log (RUN-1, AGT-4): live, appended to, no secret in it however it arrives, never larger than it should be."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aiflow.adapters.run_folders.run_log import (
    LEFT_OUT,
    LONGEST_SECRET,
    MAX_CALL_BYTES,
    MAX_LINE_BYTES,
    TAIL_BYTES,
    StepLogFile,
)
from aiflow.adapters.secrets import Masker
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
