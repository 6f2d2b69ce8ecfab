"""The last review judges the request's acceptance criteria one by one (RUN-18), and the run goes by that."""

from __future__ import annotations

import json

import pytest

from aiflow.adapters.agents.call.prompts import prompt_for
from aiflow.adapters.run_folders.stage_file import stage_of
from aiflow.adapters.run_folders.stage_reading import run_of
from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.call import AgentReply
from aiflow.domain.agents.document import document
from aiflow.domain.agents.judging import Criterion
from aiflow.domain.lifecycle import RunState
from aiflow.domain.runs.report import criteria_of, report_of
from aiflow.domain.runs.run import Run
from aiflow.usecases.runs.report import read_report
from aiflow.usecases.shapes.run_report import report_shape
from told_scene import PASSED, Scene, judging

BODY = "\n## Acceptance\n\n- It greets\n- An entry in CHANGES.md\n"
UNMET = AgentReply(
    json.dumps(
        {
            "verdict": "pass",
            "criteria": [{"number": 1, "met": True}, {"number": 2, "met": False, "note": "CHANGES.md is not there"}],
        }
    ).encode()
)
SKIPS = AgentReply(b'{"verdict":"pass","criteria":[{"number":1,"met":true}]}')
MISSING = "Acceptance criterion not met: 2. An entry in CHANGES.md (CHANGES.md is not there)"
NOT_SAID = 'the verdict is "pass", but `criteria` says nothing of these acceptance criteria: '


def errors(run: Run) -> tuple[str | None, str | None]:
    return (run.error.reason_code, run.error.cause) if run.error else (None, None)


@pytest.mark.spec("RUN-18", "RUN-19")
def test_criteria_that_are_met_are_named_in_the_report_its_data_and_the_kept_run() -> None:
    scene = Scene()
    run = scene.run(BODY)
    assert run.state is RunState.DONE
    assert criteria_of(run) == (
        Criterion(1, "It greets", True, "seen"),
        Criterion(2, "An entry in CHANGES.md", True, "seen"),
    )
    told, text = read_report(scene.engine(), run)
    assert "### Acceptance criteria\n\n- 1. met: It greets (seen)\n- 2. met: An entry in CHANGES.md (seen)\n" in text  # type: ignore[operator]
    assert report_shape(told, text)["criteria"][1] == {
        "number": 2, "text": "An entry in CHANGES.md", "is_met": True, "note": "seen",
    }  # fmt: skip
    again = run_of(json.loads(json.dumps(stage_of(run))))
    assert again is not None
    assert report_of(again) == report_of(run)


@pytest.mark.spec("RUN-18", "RUN-4")
def test_a_pass_with_a_criterion_that_is_not_met_goes_back_to_the_implementer() -> None:
    scene = Scene()
    scene.verdicts = [PASSED, UNMET, PASSED]
    run = scene.run(BODY)
    assert run.state is RunState.DONE
    again = scene.of(Role.IMPLEMENTER)[-1]
    assert [(told.reason_code, told.summary) for told in again.feedback] == [("QA_REJECTED", MISSING)]
    assert [review.is_passed for review in run.steps["S02"].record.reviews] == [False, True]
    assert all(each.is_met for each in criteria_of(run))


@pytest.mark.spec("RUN-18", "RUN-4")
def test_a_criterion_that_nobody_meets_stops_the_run_and_the_report_says_which() -> None:
    scene = Scene()
    scene.verdicts, scene.obeys = [PASSED, UNMET], False
    run = scene.run(BODY)
    assert errors(run) == ("RETRY_LIMIT_EXCEEDED", "QA_REJECTED")
    text = read_report(scene.engine(), run)[1] or ""
    assert "- 2. not met: An entry in CHANGES.md (CHANGES.md is not there)\n" in text


@pytest.mark.spec("RUN-18", "RUN-4")
def test_a_pass_that_skips_a_criterion_is_asked_for_it_once_more() -> None:
    scene = Scene()
    scene.verdicts = [PASSED, SKIPS, PASSED]
    run = scene.run(BODY)
    assert run.state is RunState.DONE
    assert len(scene.of(Role.IMPLEMENTER)) == 2, "nobody has to do anything again"
    again = scene.of(Role.QA)[-1]
    assert [(told.reason_code, told.summary) for told in again.feedback] == [
        ("JSON_SCHEMA_INVALID", f"{NOT_SAID}2. An entry in CHANGES.md")
    ]
    assert "Judge each acceptance criterion again" in prompt_for(again, goes_on=True)
    assert run.steps["S02"].record.reviews[0].findings == (f"{NOT_SAID}2. An entry in CHANGES.md",)


@pytest.mark.spec("RUN-18", "RUN-4")
def test_a_reviewer_that_skips_it_again_leaves_nothing_done() -> None:
    scene = Scene()
    scene.verdicts = [PASSED, SKIPS]
    run = scene.run(BODY)
    assert errors(run) == ("RETRY_LIMIT_EXCEEDED", "JSON_SCHEMA_INVALID")
    assert "- 2. not judged: An entry in CHANGES.md\n" in (read_report(scene.engine(), run)[1] or "")


@pytest.mark.spec("RUN-18", "RUN-4")
def test_where_the_reviewers_attempts_were_used_up_by_findings_what_it_skips_then_is_the_reason() -> None:
    scene = Scene()
    scene.verdicts = [PASSED, UNMET, SKIPS]
    assert errors(scene.run(BODY)) == ("JSON_SCHEMA_INVALID", None)


@pytest.mark.spec("RUN-18", "AGT-2")
def test_a_program_that_never_heard_of_criteria_is_asked_once_more_and_what_it_did_not_judge_is_said() -> None:
    scene = Scene()
    scene.judges = False
    run = scene.run(BODY)
    assert run.state is RunState.DONE
    assert len(scene.of(Role.QA)) == 3
    text = read_report(scene.engine(), run)[1] or ""
    assert "- 1. not judged: It greets\n- 2. not judged: An entry in CHANGES.md\n" in text


@pytest.mark.spec("RUN-18", "SEC")
def test_the_criteria_are_those_that_the_reviewer_was_shown() -> None:
    """What is hidden from an agent is no criterion of it: else the numbers would not be the same."""
    scene = Scene()
    run = scene.run("\n## Acceptance\n\n<!--\n- Hidden\n-->\n- It greets\n")
    (*_, last) = scene.of(Role.QA)
    assert last.criteria == ("It greets",)
    assert [each.text for each in criteria_of(run)] == ["It greets"]


@pytest.mark.spec("AGT-2", "RUN-18")
def test_a_program_of_any_kind_can_see_what_all_steps_changed() -> None:
    """`git diff BASE` is from the commit before the first step, for each review of the run."""
    scene = Scene()
    run = scene.run(BODY)
    reviews = [document(call)["review"] for call in scene.of(Role.QA)]
    assert [each["base"] for each in reviews] == [run.place.base_commit] * 2
    assert [(each["is_last"], len(each["criteria"])) for each in reviews] == [(False, 0), (True, 2)]
    assert judging(scene.of(Role.QA)[1]).answer
