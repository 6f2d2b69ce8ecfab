"""Texts without what a terminal obeys (SEC)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiflow.domain.agents.answers import Implemented, Planned, Question, Reviewed, Role, read_answer
from aiflow.domain.agents.plain_text import plain, plain_bytes

pytestmark = pytest.mark.spec("SEC")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[38;2;1;2;3mx\x1b[?25l\x1b[2J", "x"),
        ("\x1b]0;a title\x07x\x1b]8;;http://x\x1b\\link", "xlink"),
        ("\x1bPq#0\x1b\\x \x1bc \x1b(B \x1b", "x   "),
        ("a\x00b\x07c\x08d\x7fe\x9bf", "abcdef"),
        ("10%\r20%\r\nend\r\r\n", "10%\n20%\r\nend\r\r\n"),
        ("\x1b]0;no end\nnext line", "\nnext line"),
        ("日本語\tä\n", "日本語\tä\n"),
    ],
)
def test_what_a_terminal_obeys_is_taken_out(text: str, shown: str) -> None:
    assert plain(text) == shown
    assert plain_bytes(text.encode()).decode() == shown


@given(st.text(st.characters(codec="utf-8")))
def test_whatever_comes_nothing_of_it_is_left_and_lines_stay(text: str) -> None:
    shown = plain(text)
    assert not {each for each in shown if ord(each) < 32 or 127 <= ord(each) < 160} - set("\t\n\r")
    assert plain(shown) == shown


@given(st.binary())
def test_output_holds_no_escape_character(data: bytes) -> None:
    assert b"\x1b" not in plain_bytes(data)


def test_answers_hold_none() -> None:
    red = "\x1b[31mred\x1b[0m"
    step = {"id": "S01", "title": red, "instructions": red, "targets": {"paths": ["a"]}}
    planned = read_answer(Role.PLANNER, json.dumps({"steps": [step]}).encode())
    assert isinstance(planned, Planned)
    assert (planned.steps[0].title, planned.steps[0].instructions) == ("red", "red")
    done = read_answer(Role.IMPLEMENTER, json.dumps({"status": "done", "summary": red}).encode())
    assert done == Implemented("red")
    failed = read_answer(Role.QA, json.dumps({"verdict": "fail", "findings": [red, {"why": red}]}).encode())
    assert failed == Reviewed(is_passed=False, findings=("red", '{"why": "red"}'))
    assert read_answer(Role.QA, json.dumps({"status": "needs_input", "question": red}).encode()) == Question("red")
