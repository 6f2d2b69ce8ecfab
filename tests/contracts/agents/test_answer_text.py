"""An agent's answer is found in what it said, and a person sees it without braces (AGT-3)."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiflow.adapters.agents.call.answer_text import answer_in, has_answer, readable

DONE = '{"status": "done", "summary": "It is \\"so\\"", "question": ""}'


@pytest.mark.spec("AGT-3")
@pytest.mark.parametrize(
    "text",
    [
        DONE,
        f"\n  {DONE}\n",
        f"```json\n{DONE}\n```",
        f"```\n{DONE}\n```",
        f"I have done it.\n\n```json\n{DONE}\n```\nThat is all.",
        f"I have done it: {DONE} That is all.",
        f"A function {{ return 1 }} and an empty {{}} before it: {DONE}",
    ],
)
def test_the_one_object_is_the_answer(text: str) -> None:
    assert json.loads(answer_in(text)) == json.loads(DONE)
    assert has_answer(text)
    assert "{" not in readable(text).replace("{ return 1 }", "").replace("{}", "")


@pytest.mark.parametrize("text", ["", "Done.", "{}", "[1]", f"{DONE} {DONE}", DONE[:-1], '{"a": {"b"'])
def test_no_object_or_several_are_left_to_the_reader(text: str) -> None:
    assert answer_in(text) == text.encode()
    assert not has_answer(text)
    assert readable(text) == text


def test_a_person_sees_what_is_in_an_answer() -> None:
    plan = {
        "status": "planned",
        "question": "",
        "steps": [{"id": "S01", "title": "Write it", "targets": {"paths": []}}],
    }
    assert readable(json.dumps(plan)) == "status: planned\nsteps:\n  - S01 Write it"
    review = {"verdict": "fail", "findings": ["a.py: wrong", {"file": "b.py", "lines": [1, 2]}]}
    assert readable(json.dumps(review)) == "verdict: fail\nfindings:\n  - a.py: wrong\n  - file: b.py, lines: 1, 2"
    assert readable(f"Done.\n```json\n{DONE}\n```") == 'Done.\nstatus: done\nsummary: It is "so"'


@pytest.mark.parametrize("piece", ["{", '{"a":', '{"a":1,', "```json\n", '[{"a":1}', "`", "{}", '"{'])
def test_no_text_takes_long(piece: str) -> None:
    text = piece * 200_000
    began = time.process_time()
    answer_in(text)
    readable(text)
    assert time.process_time() - began < 2


@given(
    st.text() | st.builds(lambda a, b, c: a + b + c, st.text(), st.sampled_from([DONE, "```json\n", "{"]), st.text())
)
def test_any_text_is_taken(text: str) -> None:
    assert isinstance(answer_in(text), bytes)
    assert isinstance(readable(text), str)
