"""A program asks whether it may do something (RUN-10): the person sees the choices, picks one, and the agent gets it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from aiflow.domain.agents.call import AgentCall, AgentReply
from aiflow.domain.lifecycle import RunState
from aiflow.usecases.runs.resume import ResumeWish, resume_run
from e2e.bench import Bench
from e2e.night import Night, done

WHAT = "execute: npm install left-pad"
CHOICES = ("Allow once", "Always allow", "Reject")


def may_i(call: AgentCall, should_stop: Callable[[], bool]) -> AgentReply:
    """Ask once, then do it."""
    if call.answers:
        return done(call, should_stop)
    return AgentReply(reason_code="NEEDS_CLARIFICATION", detail=WHAT, choices=CHOICES, session_id="the session")


@pytest.mark.spec("RUN-10", "AUT-3")
def test_the_choices_are_shown_everywhere_and_one_is_picked_by_its_number(bench: Bench) -> None:
    night = Night(bench, answers={"RQ-1": may_i})
    summary = night.auto()
    assert (summary.waiting[0].text, summary.waiting[0].choices) == (f"May the agent do this? {WHAT}", CHOICES)

    stage = bench.stage()
    assert (stage["state"], stage["error"]["reason_code"]) == ("NEEDS_INPUT", "NEEDS_CLARIFICATION")
    assert stage["error"]["question"] == f"May the agent do this? {WHAT}"
    assert stage["error"]["choices"] == list(CHOICES)
    assert stage["attempts"]["steps"]["S01"]["implementer"] == 0  # a question is no attempt
    assert bench.aiflow.json("show", bench.run_ids()[0])["choices"] == list(CHOICES)
    for said in (
        bench.aiflow("show", "RQ-1").stdout,
        bench.aiflow("show", bench.run_ids()[0]).stdout,
        bench.report(),
        bench.log(1),
    ):
        assert WHAT in said
        for number, choice in enumerate(CHOICES, 1):
            assert f"{number}. {choice}" in said
    assert bench.aiflow.json("resume", "RQ-1", code=5)["error"]["context"]["choices"] == list(CHOICES)

    engine = night.engine()
    run = engine.runs.load("RQ-1", bench.run_ids()[0])
    assert run is not None
    assert resume_run(engine, run, ResumeWish(answer=" 2 ")).state is RunState.DONE
    assert bench.stage()["answers"] == [{"question": f"May the agent do this? {WHAT}", "answer": "Always allow"}]


@pytest.mark.spec("RUN-10", "ERR-1")
def test_the_question_is_asked_in_the_persons_language(bench: Bench) -> None:
    night = Night(bench, answers={"RQ-1": may_i}, language="ja")
    assert night.auto().waiting[0].text == f"エージェントにこれを許可しますか？ {WHAT}"
