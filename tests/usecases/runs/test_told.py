"""What each agent of a run is told of what happened before it: by earlier steps, by tests, by a reviewer."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from aiflow.adapters.agents.call.prompts import prompt_for
from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.call import AgentReply, Feedback, StepDone
from aiflow.domain.lifecycle import RunState
from told_scene import PASSED, Scene


@pytest.mark.spec("AGT-1")
def test_the_next_steps_agents_know_what_became_of_the_steps_before() -> None:
    scene = Scene()
    run = scene.run()
    assert run.state is RunState.DONE
    known = {"S01": StepDone("Wrote S01.txt", run.steps["S01"].commit)}
    assert [call.done for call in scene.calls] == [{}, {}, {}, known, known]
    assert [call.summary for call in scene.of(Role.QA)] == ["Wrote S01.txt", "Wrote S02.txt"]


@pytest.mark.spec("RUN-3", "AGT-1")
def test_of_a_failed_test_both_ends_are_told_and_a_reviewer_gets_what_passed() -> None:
    scene = Scene({"tests.unit": "make unit", "tests.e2e": "make e2e"})
    scene.steps, scene.exit_codes = ("S01",), [0, 1, 0]
    assert scene.run().state is RunState.DONE
    first, second = scene.of(Role.IMPLEMENTER)
    assert first.feedback == ()
    (told,) = second.feedback
    assert (told.reason_code, told.summary) == ("E2E_TEST_FAILED", "make e2e: exit code 1")
    begin, end = told.detail.split("\n[aiflow] ")
    assert begin.startswith("make e2e says\nline 0\n")
    assert "left out here" in end
    assert end.endswith("line 1999")
    (review,) = scene.of(Role.QA)
    unit, e2e = review.test_output.split("\n\n")
    assert unit.startswith("$ make unit\nmake unit says\n")
    assert e2e.startswith("$ make e2e\nmake e2e says\n")
    assert {call.test_output for call in scene.calls if call.role is not Role.QA} == {""}


@pytest.mark.spec("RUN-3")
def test_a_reviewer_gets_the_output_of_the_steps_own_tests_only() -> None:
    scene = Scene({"tests.unit": "make unit", "tests.e2e": "make e2e"})
    steps = [
        {"id": f"S0{number}", "title": "T", "tests": tests} for number, tests in enumerate((["e2e"], ["unit"], []), 1)
    ]
    scene.plan = AgentReply(json.dumps({"steps": steps}).encode())
    assert scene.run().state is RunState.DONE
    shown = [(list(call.tests), call.test_output.partition("\n")[0]) for call in scene.of(Role.QA)]
    assert shown == [(["e2e"], "$ make e2e"), (["unit"], "$ make unit"), ([], "")]
    assert "make e2e" not in scene.of(Role.QA)[1].test_output


@pytest.mark.spec("RUN-3")
def test_findings_come_without_the_reviewers_own_words() -> None:
    scene = Scene()
    scene.steps, scene.verdicts = ("S01",), [AgentReply(b'{"verdict":"fail","findings":["S01.txt: says 1"]}'), PASSED]
    assert scene.run().state is RunState.DONE
    assert scene.of(Role.IMPLEMENTER)[1].feedback == (Feedback("QA_REJECTED", "S01.txt: says 1"),)


@pytest.mark.spec("AGT-1", "RUN-3")
def test_without_tests_nothing_is_said_to_have_passed() -> None:
    scene = Scene()
    scene.run()
    assert {(*call.tests, call.test_output) for call in scene.of(Role.QA)} == {("",)}


FORGOTTEN = AgentReply(
    b'{"verdict":"fail","findings":["CHANGES.md: the request asks for an entry, and there is none"]}'
)


def changed(diff: str | None) -> list[str]:
    """The files of a diff."""
    return re.findall(r"^diff --git a/(\S+)", diff or "", re.MULTILINE)


@pytest.mark.spec("RUN-18")
def test_what_the_plan_forgot_is_found_by_the_last_review_and_done_in_the_same_run() -> None:
    scene = Scene()
    scene.verdicts = [PASSED, FORGOTTEN, PASSED]
    run = scene.run("\n## Acceptance\n\n- An entry in CHANGES.md\n")
    assert run.state is RunState.DONE
    assert [(changed(step), changed(whole)) for step, whole in scene.seen] == [
        (["S01.txt"], []),
        (["S02.txt"], ["S01.txt", "S02.txt"]),
        (["CHANGES.md", "S02.txt"], ["CHANGES.md", "S01.txt", "S02.txt"]),
    ]
    assert [call.is_at_the_end for call in scene.of(Role.QA)] == [False, True, True]
    again = scene.of(Role.IMPLEMENTER)[-1]
    assert [told.reason_code for told in again.feedback] == ["QA_REJECTED"]
    assert "also where it goes beyond the step" in prompt_for(again)
    files = scene.checkout.repository.files_of(f"refs/heads/{run.place.branch}")
    assert {"S01.txt", "S02.txt", "CHANGES.md"} <= set(files)


@pytest.mark.spec("RUN-18", "RUN-4")
def test_what_the_plan_forgot_and_nobody_does_is_a_finding_and_never_silently_done() -> None:
    scene = Scene()
    scene.verdicts, scene.obeys = [PASSED, FORGOTTEN], False
    run = scene.run("\n## Acceptance\n\n- An entry in CHANGES.md\n")
    assert run.state is RunState.NEEDS_INPUT
    assert run.error is not None
    assert (run.error.reason_code, run.error.cause) == ("RETRY_LIMIT_EXCEEDED", "QA_REJECTED")
    assert "CHANGES.md" in run.error.summary


@pytest.mark.spec("RUN-18")
def test_the_review_of_an_only_step_sees_its_change_once_and_holds_it_against_the_request() -> None:
    scene = Scene()
    scene.steps = ("S01",)
    scene.run("\n## 受け入れ条件\n\n- 挨拶する\n- 記録する\n")
    (review,) = scene.of(Role.QA)
    assert (review.is_at_the_end, review.whole) == (True, None)
    assert "1. 挨拶する\n2. 記録する\n" in prompt_for(review)
    assert not any("挨拶する\n2." in prompt_for(call) for call in scene.calls if call.role is not Role.QA)


@pytest.mark.spec("RUN-18", "RUN-6")
def test_a_step_that_is_done_again_is_held_against_the_request_only_at_the_end() -> None:
    scene = Scene()
    scene.verdicts = [FORGOTTEN, PASSED]
    assert scene.run().state is RunState.DONE
    assert [call.whole is not None for call in scene.of(Role.QA)] == [False, False, True]


@pytest.mark.spec("RUN-18")
def test_of_a_large_whole_change_each_file_has_its_beginning_and_what_was_cut_is_named() -> None:
    scene = Scene()
    scene.run()
    large = "".join(f"diff --git a/{name} b/{name}\n" + "+line\n" * 40_000 for name in ("a.py", "b.py"))
    prompt = prompt_for(replace(scene.of(Role.QA)[-1], whole=lambda: large))
    assert len(prompt) < 120_000
    assert prompt.count("diff --git a/a.py") == prompt.count("diff --git a/b.py") == 1
    assert re.search(r"read these files:\n  a\.py \(.*\)\n  b\.py \(", prompt)
