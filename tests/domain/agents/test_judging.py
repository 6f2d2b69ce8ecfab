"""Acceptance criteria, one by one (RUN-18, AGT-3): what a reviewer says of them, and what its verdict is worth then."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiflow.domain.agents.answers import Reviewed, Role, read_answer
from aiflow.domain.agents.judging import Criterion, Judgment, read_judgments, verdict_on

CRITERIA = ("It greets", "README says so")
MET = (Judgment(1, True, "greet.py"), Judgment(2, True))


@pytest.mark.spec("AGT-3")
def test_an_answer_says_of_each_criterion_whether_it_is_met_and_how_that_is_known() -> None:
    said = [{"number": 1, "met": True, "note": " greet.py\nsays it "}, {"number": 2, "met": False}]
    answer = read_answer(Role.QA, json.dumps({"verdict": "fail", "criteria": said}).encode())
    assert answer == Reviewed(False, judgments=(Judgment(1, True, "greet.py says it"), Judgment(2, False)))


@pytest.mark.spec("AGT-3")
@pytest.mark.parametrize(
    "odd",
    ["met", {"number": 1}, [None, "1", 1, {}], [{"number": "1", "met": True}], [{"number": 1, "met": "yes"}],
     [{"number": True, "met": True}], [{"number": 1.5, "met": True}]],
)  # fmt: skip
def test_what_cannot_be_read_of_it_is_as_if_it_were_not_said(odd: Any) -> None:
    answer = read_answer(Role.QA, json.dumps({"verdict": "pass", "criteria": odd}).encode())
    assert answer == Reviewed(True)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(
    st.sampled_from(["number", "met", "note"]), x), max_leaves=8))  # fmt: skip
def test_nothing_that_is_answered_raises(raw: Any) -> None:
    assert all(isinstance(each.is_met, bool) for each in read_judgments(raw))


@pytest.mark.spec("RUN-18")
def test_a_pass_with_every_criterion_met_is_one() -> None:
    told = verdict_on(Reviewed(True, (), (), MET), CRITERIA, may_ask=True)
    assert (told.is_passed, told.findings, told.unjudged) == (True, (), ())
    assert told.criteria == (Criterion(1, "It greets", True, "greet.py"), Criterion(2, "README says so", True))


@pytest.mark.spec("RUN-18")
@pytest.mark.parametrize("is_passed", [True, False])
@pytest.mark.parametrize("may_ask", [True, False])
def test_a_criterion_that_is_not_met_is_a_finding_whatever_the_verdict_says(is_passed: bool, may_ask: bool) -> None:
    said = (MET[0], Judgment(2, False, "no line about it"))
    told = verdict_on(Reviewed(is_passed, ("greet.py: typo",), (), said), CRITERIA, may_ask=may_ask)
    assert not told.is_passed
    assert told.findings == ("greet.py: typo", "Acceptance criterion not met: 2. README says so (no line about it)")
    assert told.unjudged == ()


@pytest.mark.spec("RUN-18")
def test_of_two_words_about_a_criterion_the_bad_one_counts() -> None:
    assert not verdict_on(Reviewed(True, (), (), (*MET, Judgment(1, False))), CRITERIA, may_ask=True).is_passed


@pytest.mark.spec("RUN-18")
@pytest.mark.parametrize("may_ask", [True, False])
def test_a_pass_that_skips_a_criterion_is_no_verdict(may_ask: bool) -> None:
    told = verdict_on(Reviewed(True, (), (), MET[:1]), CRITERIA, may_ask=may_ask)
    assert (told.is_passed, told.unjudged) == (False, (Criterion(2, "README says so"),))
    # What fails anyway goes back at once: the next review judges them all.
    assert verdict_on(Reviewed(False, ("x",), (), MET[:1]), CRITERIA, may_ask=may_ask).unjudged == ()


@pytest.mark.spec("RUN-18", "AGT-2")
def test_a_program_that_knows_nothing_of_criteria_is_asked_again_and_then_believed() -> None:
    assert len(verdict_on(Reviewed(True, (), (), ()), CRITERIA, may_ask=True).unjudged) == 2
    told = verdict_on(Reviewed(True, (), (), ()), CRITERIA, may_ask=False)
    assert told.is_passed
    assert [each.is_met for each in told.criteria] == [None, None], "and the report says that nobody judged them"


@pytest.mark.spec("RUN-18")
def test_without_criteria_what_is_said_of_any_counts_for_nothing() -> None:
    told = verdict_on(Reviewed(True, (), (), (Judgment(1, False),)), (), may_ask=True)
    assert (told.is_passed, told.criteria) == (True, ())
