"""Marks: what aiflow writes into a comment for machines."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiflow.domain.issues.marks import CommentMark, MarkKind, find_mark, is_marked, write_mark
from aiflow.domain.untrusted import clean

TEXTS = st.text(st.sampled_from('ab-<>!{}"\\\n日 '), max_size=12)
FACTS = st.dictionaries(
    st.text("abc_", min_size=1, max_size=5).filter(lambda name: name != "key"), TEXTS | st.integers()
)


@pytest.mark.spec("ISS-3")
@given(st.sampled_from(MarkKind), TEXTS.filter(bool), FACTS)
def test_a_mark_is_one_invisible_line_and_read_back_as_it_was_written(
    kind: MarkKind, key: str, facts: dict[str, Any]
) -> None:
    written = write_mark(CommentMark(kind, key, facts))
    assert re.fullmatch(r"<!-- (?:(?!--|>).)* -->", written), "nothing in it ends the comment"
    body = f"Run 3 of 6 has begun.\r\n\r\n{written}\r\n"
    assert find_mark(body) == CommentMark(kind, key, facts)
    assert clean(body).text.strip() == "Run 3 of 6 has begun."


@pytest.mark.spec("ISS-3")
@pytest.mark.parametrize(
    "body",
    [
        "",
        "no mark",
        "<!-- a comment -->",
        '<!-- aiflow:run-header v2 {"key": "a"} -->',
        '<!-- aiflow:no-such-kind v1 {"key": "a"} -->',
        "<!-- aiflow:run-header v1 {broken} -->",
        "<!-- aiflow:run-header v1 {} -->",
        '<!-- aiflow:run-header v1 {"key": 7} -->',
        f"<!-- aiflow:run-header v1 {'{' * 5000} -->",
        '> <!-- aiflow:run-header v1 {"key": "a"} -->',
        'text <!-- aiflow:run-header v1 {"key": "a"} -->',
        f'<!-- aiflow:run-header v1 {{"key": "{"a" * 61_000}"}} -->',
        f'<!-- aiflow:run-header v{"1" * 5000} {{"key": "a"}} -->',
        f'<!-- aiflow:run-header v1 {"[" * 20_000}{{"key": "a"}} -->',
    ],
)
def test_what_cannot_be_understood_is_no_mark(body: str) -> None:
    assert find_mark(body) is None


@pytest.mark.spec("ISS-6")
def test_a_comment_with_any_mark_at_a_lines_start_is_nobodys_word() -> None:
    assert is_marked("text\n<!-- aiflow:from-the-future v9 {} -->")
    assert not is_marked("> <!-- aiflow:blocked v1 {} -->")


@pytest.mark.spec("ISS-3")
def test_facts_of_another_type_count_as_missing() -> None:
    mark = CommentMark(
        MarkKind.RUN_HEADER, "k", {"run_id": 7, "attempt": "3", "of": True, "n": -1, "m": 3, "t": "x", "e": ""}
    )
    assert [mark.text(name) for name in ("run_id", "t", "e", "no")] == [None, "x", None, None]
    assert [mark.number(name) for name in ("attempt", "of", "n", "m", "no")] == [0, 0, 0, 3, 0]
