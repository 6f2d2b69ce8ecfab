"""Proposals (REQ-10, AGT-3): whatever an agent adds to its answer, what can be used is read, and nothing spoils it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiflow.domain.agents.answer_schema import SCHEMAS
from aiflow.domain.agents.answers import Implemented, Planned, Question, Reviewed, Role, read_answer
from aiflow.domain.agents.proposals import MAX_BODY, MAX_TITLE, Proposal, read_proposals
from aiflow.domain.backlog.metadata import check_text, check_title

pytestmark = pytest.mark.spec("REQ-10", "AGT-3")

LEAK = {"title": "Close the file", "body": "app.py leaves it open."}


def proposals(role: Role, **raw: Any) -> tuple[Proposal, ...]:
    answer = read_answer(role, json.dumps(raw).encode())
    assert isinstance(answer, (Implemented, Reviewed, Question))
    return answer.proposals


def test_implementer_and_reviewer_may_propose_further_work_whatever_they_answer() -> None:
    wanted = (Proposal("Close the file", "app.py leaves it open."),)
    assert proposals(Role.IMPLEMENTER, status="done", follow_ups=[LEAK]) == wanted
    assert proposals(Role.QA, verdict="pass", follow_ups=[LEAK]) == wanted
    assert proposals(Role.QA, verdict="fail", findings=["no"], follow_ups=[LEAK]) == wanted
    assert proposals(Role.IMPLEMENTER, status="needs_input", question="Which?", follow_ups=[LEAK]) == wanted


def test_a_planner_plans_and_proposes_nothing() -> None:
    raw = {"steps": [{"id": "S01", "title": "Do it"}], "follow_ups": [LEAK]}
    assert isinstance(read_answer(Role.PLANNER, json.dumps(raw).encode()), Planned)
    assert "follow_ups" not in SCHEMAS[Role.PLANNER]["properties"]
    assert all("follow_ups" in SCHEMAS[role]["required"] for role in (Role.IMPLEMENTER, Role.QA))


@pytest.mark.parametrize(
    ("raw", "read"),
    [
        (None, ()),
        ([], ()),
        ("", ()),
        (7, ()),
        ({}, ()),
        ([None, 1, [], {}, {"title": ""}, {"title": 3, "body": []}, {"body": " \n "}], ()),
        (LEAK, (Proposal("Close the file", "app.py leaves it open."),)),
        (["Only a title"], (Proposal("Only a title"),)),
        ([{"title": "No body"}], (Proposal("No body"),)),
        ([{"body": "First line\nmore"}], (Proposal("First line", "First line\nmore"),)),
        ([{"title": "T", "body": 3, "more": {}}], (Proposal("T"),)),
    ],
)
def test_what_can_be_used_is_read_and_the_rest_left_out(raw: object, read: tuple[Proposal, ...]) -> None:
    assert read_proposals(raw) == read


@pytest.mark.parametrize(
    ("title", "line"),
    [
        ("two\nlines\tand  blanks", "two lines and blanks"),
        ("# A heading #", "A heading"),
        ("\x1b[31mred\x1b[0m \u202eback", "red back"),
        ("../../etc/passwd", "../../etc/passwd"),
        ("<script>alert(1)</script>", "<script>alert(1)</script>"),
        ("half \ud800 a character", "half ? a character"),
        ("---", "---"),
        ("x" * 500, "x" * (MAX_TITLE - 1) + "…"),
    ],
)
def test_a_title_is_one_line_whatever_it_says(title: str, line: str) -> None:
    assert read_proposals([{"title": title, "body": ""}]) == (Proposal(line),)


def test_a_long_text_is_cut() -> None:
    [proposal] = read_proposals([{"title": "T", "body": "y" * 100_000}])
    assert len(proposal.body) == MAX_BODY
    assert proposal.body.endswith("…")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["title", "body", "x"]), inner),
)


@given(json_values)
def test_nothing_spoils_an_answer_and_everything_read_can_stand_in_a_request(raw: object) -> None:
    for each in proposals(Role.IMPLEMENTER, status="done", follow_ups=raw):
        check_title(each.title)
        check_text(each.title, each.body)
        assert len(each.title) <= MAX_TITLE
        assert len(each.body) <= MAX_BODY
