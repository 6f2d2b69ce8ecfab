"""Colours and times of a log, laid over its plain text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiflow.domain.agents.plain_text import plain_bytes, split_looks
from aiflow.domain.runs.log_marks import LogMark, line_times, with_looks

pytestmark = pytest.mark.spec("WEB-1")

PIECES = (b"a", b"\n", b"\r", b"\x1b", b"[", b"]", b"m", b"31", b";", b"\x07", b"\xc2", b"\x9b", "日".encode())
SEQUENCES = (b"\x1b[1;31m", b"\x1b[0m", b"\x1b[2K", b"\x1b]0;t\x07")
OUTPUT = st.lists(st.sampled_from(PIECES + SEQUENCES), max_size=30).map(b"".join)


def marks(*looks: tuple[int, bytes]) -> list[LogMark]:
    return [LogMark(at, look=codes.decode()) for at, codes in looks]


def test_only_looks_are_kept_apart_from_the_text() -> None:
    text, looks = split_looks(b"\x1b[2J\x1b[1;31mred\x1b[m \x1b]0;t\x07x\x1b[38:5:9m\x1b[4my\x1b[?25h\n")
    assert (text, looks) == (b"red xy\n", [(0, b"1;31"), (3, b"0"), (5, b"38:5:9;4")])


@given(OUTPUT)
def test_the_text_is_the_same_as_without_looks_and_no_terminal_obeys_it(data: bytes) -> None:
    text, looks = split_looks(data)
    assert text == plain_bytes(data)
    assert b"\x1b" not in text
    assert b"\xc2\x9b" not in text
    assert all(0 <= at <= len(text) for at, _ in looks)
    assert plain_bytes(with_looks(text, 0, marks(*looks))) == text


def test_looks_without_any_text_stay_short() -> None:
    text, [(at, codes)] = split_looks(b"\x1b[31m" * 1000 + b"x")
    assert (text, at, codes.rpartition(b";")[2]) == (b"x", 0, b"31")
    assert len(codes) <= 64


def test_looks_are_laid_over_a_part_wherever_it_begins() -> None:
    given = marks((0, b"31"), (4, b"0"), (6, b"1"), (9, b"0"))
    assert with_looks(b"0123456789", 0, given) == b"\x1b[31m0123\x1b[0m45\x1b[1m678\x1b[0m9"
    assert with_looks(b"456", 4, given) == b"\x1b[0m45\x1b[1m6"
    assert with_looks(b"", 4, given) == b""


def test_each_line_has_the_second_in_which_it_began() -> None:
    data = b"one\ntwo\nthree\nfour\n"
    given = [LogMark(0, 10), LogMark(4, look="1"), LogMark(8, 11), LogMark(10, 12), LogMark(14, 13), LogMark(50, 14)]
    assert line_times(data, 0, given) == [(0, 10), (2, 11), (3, 12), (3, 13)]
    assert line_times(data[8:], 8, given) == [(0, 11), (1, 12), (1, 13)]
