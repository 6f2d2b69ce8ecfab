"""Answers (AGT-3, RUN-10): each role's JSON becomes a value, each defect has its reason code, nothing raises."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from aiflow.domain.agents.answers import Answer, Implemented, Planned, Question, Reviewed, Role, Spoiled, read_answer
from aiflow.domain.agents.plan import MAX_TEXT, PlanStep
from aiflow.domain.reasons import CATALOGUE
from aiflow.messages.details import ENGLISH

PLANNER, IMPLEMENTER, QA = Role
PLAN: dict[str, Any] = {"steps": [{"id": "S01", "title": "First"}]}


def read(role: Role, raw: object) -> Answer:
    return read_answer(role, json.dumps(raw).encode())


def defect(role: Role, data: bytes | None) -> str:
    answer = read_answer(role, data)
    assert isinstance(answer, Spoiled), answer
    assert answer.reason_code in CATALOGUE
    assert ENGLISH.has(answer.detail.key)
    return answer.reason_code


# --- what is an answer -----------------------------------------------------------------------------------------------


@pytest.mark.spec("AGT-3")
@pytest.mark.parametrize(
    ("role", "raw", "answer"),
    [
        (PLANNER, PLAN, Planned((PlanStep("S01", "First"),))),
        (PLANNER, PLAN | {"status": "done", "more": 1}, Planned((PlanStep("S01", "First"),))),
        (IMPLEMENTER, {"status": "done", "summary": " did it \n"}, Implemented("did it")),
        (IMPLEMENTER, {"status": "done"}, Implemented("")),
        (IMPLEMENTER, {"status": "done", "summary": "", "question": None}, Implemented("")),
        (IMPLEMENTER, {"status": "done", "question": "unused"}, Implemented("")),
        (QA, {"verdict": "pass", "findings": []}, Reviewed(is_passed=True)),
        (QA, {"verdict": "pass"}, Reviewed(is_passed=True)),
        (QA, {"verdict": "pass", "findings": ["a nit"]}, Reviewed(True, ("a nit",))),
        (QA, {"verdict": "fail", "findings": ["a", "b"]}, Reviewed(False, ("a", "b"))),
        (QA, {"verdict": "fail", "findings": [{"file": "ä"}, 1]}, Reviewed(False, ('{"file": "ä"}', "1"))),
    ],
)
def test_every_role_has_its_answer(role: Role, raw: object, answer: Answer) -> None:
    assert read(role, raw) == answer


@pytest.mark.spec("AGT-3", "RUN-10")
@pytest.mark.parametrize("role", Role)
def test_any_role_may_ask_instead(role: Role) -> None:
    assert read(role, {"status": "needs_input", "question": " Which? "}) == Question("Which?")
    everything = {**PLAN, "verdict": "pass", "summary": "x", "status": "needs_input", "question": "Which?"}
    assert read(role, everything) == Question("Which?")


@pytest.mark.spec("AGT-3")
def test_a_byte_order_mark_and_blanks_around_it_do_no_harm() -> None:
    assert read_answer(QA, b'\xef\xbb\xbf\n {"verdict": "pass"} \r\n') == Reviewed(is_passed=True)


@pytest.mark.spec("AGT-3")
def test_half_characters_do_not_reach_logs_and_files() -> None:
    answers = (
        read(IMPLEMENTER, {"status": "done", "summary": "a\ud800b"}),
        read(IMPLEMENTER, {"status": "needs_input", "question": "a\udfffb"}),
        read(QA, {"verdict": "fail", "findings": ["a\ud800", {"x": "\udc00"}]}),
    )
    assert answers == (Implemented("a?b"), Question("a?b"), Reviewed(False, ("a?", '{"x": "?"}')))


@pytest.mark.spec("AGT-3")
def test_a_summary_is_not_kept_longer_than_a_person_reads() -> None:
    answer = read(IMPLEMENTER, {"status": "done", "summary": "x" * (MAX_TEXT + 1)})
    assert isinstance(answer, Implemented)
    assert len(answer.summary) == MAX_TEXT


# --- what is none ----------------------------------------------------------------------------------------------------

NOT_JSON = [
    None,
    b"",
    b" \n",
    b"{",
    b"done",
    b"{'status': 'done'}",
    b'{"status": "done"} trailing',
    b'```json\n{"status": "done"}\n```',
    b'{"status": "done",}',
    b'{"a": NaN}',
    b'{"a": Infinity}',
    b'{"a": -Infinity}',
    b"\xff\xfe{\x00}\x00",
    b'{"summary": "\xe9"}',
    b"\x00",
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b"1" * 10_000,
]


@pytest.mark.spec("AGT-3")
@pytest.mark.parametrize("data", NOT_JSON, ids=lambda data: repr(data)[:30])
@pytest.mark.parametrize("role", Role)
def test_what_is_not_json_is_a_parse_error(role: Role, data: bytes | None) -> None:
    assert defect(role, data) == "JSON_PARSE_ERROR"


@pytest.mark.spec("AGT-3")
def test_what_is_wrong_is_told_briefly() -> None:
    answer = read_answer(QA, b'{"verdict": "pass", ' + b"x" * 100_000)
    assert isinstance(answer, Spoiled)
    assert "line 1" in ENGLISH.say(answer.detail)
    assert len(ENGLISH.say(answer.detail)) < 300


@pytest.mark.spec("AGT-3")
@pytest.mark.parametrize("raw", [None, [], "done", 5, True, {}, [PLAN]])
@pytest.mark.parametrize("role", Role)
def test_json_of_another_shape_is_invalid(role: Role, raw: object) -> None:
    assert defect(role, json.dumps(raw).encode()) == "JSON_SCHEMA_INVALID"


@pytest.mark.spec("AGT-3")
@pytest.mark.parametrize(
    ("role", "raw", "where"),
    [
        (PLANNER, {"steps": []}, "steps"),
        (PLANNER, {"status": "done", "summary": "x"}, "steps"),
        (IMPLEMENTER, {"status": "ok"}, "status"),
        (IMPLEMENTER, {"status": "DONE"}, "status"),
        (IMPLEMENTER, {"status": ["done"]}, "status"),
        (IMPLEMENTER, {"summary": "x"}, "status"),
        (IMPLEMENTER, {"status": "done", "summary": None}, "summary"),
        (IMPLEMENTER, {"status": "done", "summary": ["x"]}, "summary"),
        (IMPLEMENTER, PLAN, "status"),
        (QA, {"verdict": "passed"}, "verdict"),
        (QA, {"verdict": True}, "verdict"),
        (QA, {"verdict": {}}, "verdict"),
        (QA, {"status": "done"}, "verdict"),
        (QA, {"verdict": "fail", "findings": "x"}, "findings"),
        (QA, {"verdict": "fail", "findings": None}, "findings"),
        *[(role, {"status": "needs_input"}, "question") for role in Role],
        *[(role, {"status": "needs_input", "question": q}, "question") for role in Role for q in ("", " ", 5, None)],
        (QA, {"status": "needs_input", "question": "x" * (MAX_TEXT + 1)}, "question"),
    ],
)
def test_the_place_of_a_flaw_is_told(role: Role, raw: object, where: str) -> None:
    answer = read(role, raw)
    assert isinstance(answer, Spoiled)
    assert answer.reason_code == "JSON_SCHEMA_INVALID"
    assert ENGLISH.say(answer.detail).startswith(f"{where}: ")


@pytest.mark.spec("AGT-3")
def test_a_finding_as_deep_as_can_be_read_at_all_can_be_told_or_is_a_defect() -> None:
    for depth in range(800, 1000):
        data = b'{"verdict": "fail", "findings": [' + b"[" * depth + b"]" * depth + b"]}"
        assert isinstance(read_answer(QA, data), (Reviewed, Spoiled))


# --- nothing raises --------------------------------------------------------------------------------------------------

KEYS = st.sampled_from(
    ["steps", "id", "title", "status", "verdict", "question", "findings", "targets", "paths", "tests"]
)
WORDS = st.sampled_from(["done", "needs_input", "pass", "fail", "S01", "unit", "src"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS | st.text(max_size=3), inner, max_size=6),
    max_leaves=20,
)


@pytest.mark.spec("AGT-3")
@settings(max_examples=60)
@given(st.sampled_from(Role), JSON)
@example(QA, {"verdict": "fail", "findings": ["\ud800"]})
def test_no_json_raises(role: Role, raw: object) -> None:
    answer = read_answer(role, json.dumps(raw).encode())
    assert isinstance(answer, get_args(Answer))
    if isinstance(answer, Spoiled):
        assert answer.reason_code in ("JSON_PARSE_ERROR", "JSON_SCHEMA_INVALID")


@pytest.mark.spec("AGT-3")
@settings(max_examples=60)
@given(st.sampled_from(Role), st.binary(max_size=200))
def test_no_bytes_raise(role: Role, data: bytes) -> None:
    assert isinstance(read_answer(role, data), get_args(Answer))


@pytest.mark.spec("AGT-3", "RUN-10")
@pytest.mark.parametrize("role", list(Role))
def test_a_question_brings_its_choices(role: Role) -> None:
    told = {"status": "needs_input", "question": "Which?", "choices": ["a\nb ", "", "c", "c", "x" * 300, *"defghijkl"]}
    answer = read_answer(role, json.dumps(told).encode())
    assert isinstance(answer, Question)
    assert answer.choices[:3] == ("a b", "c", "x" * 200)
    assert len(answer.choices) == 9


@pytest.mark.spec("AGT-3")
@pytest.mark.parametrize("choices", ["a", {"a": 1}, ["a", 1], None])
def test_choices_of_another_shape_are_refused(choices: object) -> None:
    told = {"status": "needs_input", "question": "Which?", "choices": choices}
    answer = read_answer(Role.QA, json.dumps(told).encode())
    assert isinstance(answer, Spoiled)
    assert answer.reason_code == "JSON_SCHEMA_INVALID"
