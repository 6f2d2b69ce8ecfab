"""Text in columns: nothing is lost, nothing is wider than it may be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiflow.cli.terminal.layout import cut, display_width, pad, share_out, wrap

texts = st.text(st.sampled_from("ab c`日本語、。「」ー😀é\u0301\n"), max_size=60)


@given(texts, st.integers(2, 30))
def test_wrapped_lines_fit_and_say_everything(text: str, width: int) -> None:
    lines = wrap(text, width)
    assert all(display_width(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


@given(texts.filter(lambda text: "\n" not in text), st.integers(1, 30))
def test_a_cut_text_fits_and_is_marked(text: str, width: int) -> None:
    shown = cut(text, width)
    assert display_width(shown) <= max(width, 2)
    assert shown == text or shown.endswith("…") or width == 1


def test_japanese_lines_do_not_begin_with_punctuation() -> None:
    assert wrap("あいうえお。かきくけこ", 10) == ["あいうえ", "お。かきく", "けこ"]
    assert wrap("あいうえ（お）", 10) == ["あいうえ", "（お）"]
    assert wrap("あいう（name）", 10) == ["あいう", "（name）"]
    assert wrap("after_days。次", 10) == ["after_days", "。次"]
    assert wrap("ab after_x。次", 10) == ["ab", "after_x。", "次"]
    assert wrap("あいプロジェクト", 10) == ["あいプロ", "ジェクト"]
    assert wrap("ab abcd 15秒前", 10) == ["ab abcd", "15秒前"]
    assert wrap("この中の項目: a", 10) == ["この中の項", "目: a"]


def test_a_command_stays_on_one_line_where_it_fits() -> None:
    assert wrap("next: `git add a`, then", 14) == ["next:", "`git add a`,", "then"]
    assert wrap("done  → git add a", 14) == ["done", "→ git add a"]
    assert wrap("`git add aaaa bbbb`", 10) == ["`git add", "aaaa bbbb`"]


def test_english_lines_break_at_blanks() -> None:
    assert wrap("use one of P0, P1", 10) == ["use one of", "P0, P1"]
    assert wrap("x" * 25, 10) == ["x" * 10, "x" * 10, "x" * 5]


@pytest.mark.parametrize(
    ("total", "expected"),
    [(100, [10, 5, 40, 30]), (80, [10, 5, 29, 30]), (60, [10, 5, 20, 19]), (57, [10, 5, 20, 16]), (40, [9, 5, 10, 10])],
)
def test_room_is_taken_from_titles_and_notes_first(total: int, expected: list[int]) -> None:
    assert share_out([10, 5, 40, 30], total, {2: 20, 3: 16}) == expected


def test_widths_are_counted_as_a_terminal_does() -> None:
    assert display_width("ab日本") == 6
    assert display_width("\x1b[31mab\x1b[0m") == 2
    assert pad("日", 4) == "日  "
