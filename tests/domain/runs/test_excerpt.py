"""What an agent is told of a long output: its beginning, its end, and how much is missing between."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiflow.domain.runs.excerpt import HEAD_BYTES, TAIL_BYTES, excerpt

pytestmark = pytest.mark.spec("RUN-3")


def of(output: bytes) -> str:
    """The excerpt of a whole output."""
    return excerpt(output[:HEAD_BYTES], output[-TAIL_BYTES:], len(output))


@given(st.integers(0, HEAD_BYTES + TAIL_BYTES))
def test_what_is_short_enough_is_told_whole(size: int) -> None:
    output = (b"".join(b"%d\n" % number for number in range(2000)) + b"x")[:size]
    assert of(output) == output.decode().rstrip()


def test_of_a_long_output_its_ends_are_told_in_whole_lines_and_what_is_left_out() -> None:
    output = b"".join(b"line %d\n" % number for number in range(5000))
    first, cut, last = re.split(r"\n(\[aiflow\] .*)\n", of(output))
    assert first.startswith("line 0\nline 1\n")
    assert last.endswith("line 4998\nline 4999")
    assert all(re.fullmatch(r"line \d+", line) for line in (*first.splitlines(), *last.splitlines()))
    left_out = int(re.sub(r"\D", "", cut))
    assert left_out == len(output) - len(f"{first}\n{last}\n") + 1
    assert len(of(output)) <= HEAD_BYTES + TAIL_BYTES + 100


def test_a_line_without_an_end_is_cut_where_it_must_be() -> None:
    told = of(b"x" * 10_000 + b"the end")
    assert told.startswith("x" * HEAD_BYTES + "\n[aiflow]")
    assert told.endswith("the end")
