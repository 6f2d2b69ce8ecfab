"""The document an agent gets (AGT-2): the specification's fields, to the letter."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.call import AgentCall, Brief, Feedback, StepDone
from aiflow.domain.agents.document import document
from aiflow.domain.agents.plan import PlanStep, whole_request

BRIEF = Brief("RQ-1", "A title", "Body.\n", "P1", ("ui", "日本"))
PLAN = (PlanStep("S01", "First", "Do.", ("src",), ("unit",)), PlanStep("S02", "Second"))


def call(role: Role = Role.IMPLEMENTER, **fields: Any) -> AgentCall:
    usual = {"brief": BRIEF, "run_id": "RUN-1", "cwd": "/w", "step": PLAN[1], "plan": PLAN, "attempt": 1}
    return AgentCall(role, **{**usual, **fields})


@pytest.mark.spec("AGT-2")
def test_the_document_has_the_fields_of_the_specification() -> None:
    told = (Feedback("UNIT_TEST_FAILED", "2 failed", "…"), Feedback("SENT_BACK", "smaller"))
    answers = (("Which?", "This."), ("", "And this."))
    known: Any = {"tests": {"unit": "pytest -q"}, "done": {"S01": StepDone("Did it.", "0123")}}
    assert json.loads(json.dumps(document(call(attempt=2, feedback=told, answers=answers, **known)))) == {
        "version": "1.0",
        "role": "implementer",
        "request": {
            "id": "RQ-1",
            "title": "A title",
            "body": "Body.\n",
            "priority": "P1",
            "labels": ["ui", "日本"],
        },
        "run_id": "RUN-1",
        "step": {"id": "S02", "title": "Second", "instructions": "", "targets": {"paths": []}},
        "planning": {
            "steps": [
                {
                    "id": "S01",
                    "title": "First",
                    "instructions": "Do.",
                    "targets": {"paths": ["src"]},
                    "tests": ["unit"],
                },
                {"id": "S02", "title": "Second", "instructions": "", "targets": {"paths": []}},
            ]
        },
        "attempt": 2,
        "feedback": [
            {"reason_code": "UNIT_TEST_FAILED", "summary": "2 failed", "detail": "…"},
            {"reason_code": "SENT_BACK", "summary": "smaller", "detail": ""},
        ],
        "answers": [{"question": "Which?", "answer": "This."}, {"question": "", "answer": "And this."}],
        "former": None,
        "tests": {"unit": "pytest -q"},
        "done": {"S01": {"summary": "Did it.", "commit": "0123"}},
        "review": None,
    }


@pytest.mark.spec("AGT-2", "RUN-18")
def test_the_only_step_of_a_run_without_a_planner_says_what_the_request_says() -> None:
    plan = whole_request("A title")
    told = document(call(step=plan[0], plan=plan))
    whole = {"id": "S01", "title": "A title", "instructions": "Body.\n", "targets": {"paths": []}}
    assert (told["step"], told["planning"]) == (whole, {"steps": [whole]})


@pytest.mark.spec("AGT-2")
def test_a_planner_has_neither_plan_nor_step_yet() -> None:
    told = document(call(Role.PLANNER, step=None, plan=()))
    assert (told["role"], told["step"], told["planning"]) == ("planner", None, None)
    assert (told["feedback"], told["answers"]) == ([], [])


@pytest.mark.spec("AGT-2")
@pytest.mark.parametrize("role", Role)
def test_every_role_gets_the_same_keys(role: Role) -> None:
    keys = ["version", "role", "request", "run_id", "step", "planning", "attempt", "feedback", "answers", "former"]
    assert list(document(call(role))) == [*keys, "tests", "done", "review"]
    assert document(call(role))["role"] == role.value


CRITERIA = "# A title\n\n## Acceptance criteria\n\n- It greets\n- README says so\n"


@pytest.mark.spec("AGT-2", "RUN-18")
def test_a_reviewer_of_any_kind_knows_whether_it_is_the_last_one_and_what_to_hold_the_whole_change_against() -> None:
    brief = Brief("RQ-1", "A title", CRITERIA, "P1")
    more = {"brief": brief, "summary": "Did it.", "test_output": "3 passed", "began": "0123"}
    said = {"summary": "Did it.", "test_output": "3 passed", "base": "0123"}
    first, last = (document(call(Role.QA, step=step, **more))["review"] for step in PLAN)
    assert first == {**said, "is_last": False, "criteria": []}
    criteria = [{"number": 1, "text": "It greets"}, {"number": 2, "text": "README says so"}]
    assert last == {**said, "is_last": True, "criteria": criteria}
    # The step in which the base is merged in, before anything is planned, is never the last.
    assert not document(call(Role.QA, is_planned=False, **more))["review"]["is_last"]
