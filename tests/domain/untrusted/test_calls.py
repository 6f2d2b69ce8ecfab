"""What an agent is not given (SEC): every text of a call, whoever wrote it; the run knows, and keeps the original."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.call import AgentCall, Brief, Feedback, StepDone
from aiflow.domain.agents.document import document
from aiflow.domain.agents.plan import PlanStep
from aiflow.domain.untrusted import HiddenKind, clean
from aiflow.domain.untrusted.calls import counts_in, counts_of, note_of, withheld, without_hidden
from aiflow.domain.untrusted.characters import find_invisible
from run_builders import at, in_step, planning

pytestmark = pytest.mark.spec("SEC")
STEP = PlanStep("S01", "Ti\u200btle", "Do\u202e <!-- shown in a plan -->", ("src/a\u200bb",))
CALL = AgentCall(
    role=Role.QA,
    brief=Brief(
        "RQ-1", "Fix\u200b <!-- x -->", "Body\u200b <!-- y -->\n\n```\n<!-- seen -->\n```\n", "P1", ("a\u200bb",)
    ),
    run_id="RUN-1",
    cwd="/w",
    step=STEP,
    plan=(STEP,),
    attempt=1,
    feedback=(
        Feedback("SENT_BACK", "Not\u2060 so <!-- z -->"),
        Feedback("UNIT_TEST_FAILED", "exit\x07", "\x1b[31mexpected <!-- a -->\x1b[0m\r\ngot\u202e"),
    ),
    answers=(("Which\u200b <!-- one -->?", "This\u200b one <!-- w -->"),),
    changes=lambda: "+if admin\u202e:  # <!-- b -->\r\n",
    done={"S00": StepDone("Was\u2060 done", "0123")},
    summary="Do\u2060ne",
    test_output="3 pas\u2060sed",
    whole=lambda: "+if anybody\u202e:\n",
)


def test_every_text_of_a_call_is_cleaned() -> None:
    call, _ = without_hidden(CALL)
    assert call.brief == Brief("RQ-1", "Fix ", "Body \n\n```\n<!-- seen -->\n```\n", "P1", ("ab",))
    assert call.answers == (("Which <!-- one -->?", "This one "),)
    assert call.feedback == (
        Feedback("SENT_BACK", "Not so "),
        Feedback("UNIT_TEST_FAILED", "exit", "expected <!-- a -->\r\ngot"),
    )
    assert (call.done, call.summary) == ({"S00": StepDone("Was done", "0123")}, "Done")
    assert call.test_output == "3 passed"
    assert call.step == call.plan[0] == PlanStep("S01", "Title", "Do <!-- shown in a plan -->", ("src/a\u200bb",))
    told = document(replace(call, step=None, plan=()))
    assert list(find_invisible("".join(map(str, told.values())))) == []


def test_all_else_of_a_call_stays() -> None:
    call, _ = without_hidden(CALL)
    cleaned = {"brief", "answers", "feedback", "step", "plan", "changes", "done", "summary", "test_output", "whole"}
    for field in fields(AgentCall):
        assert field.name in cleaned or getattr(call, field.name) == getattr(CALL, field.name)


def test_a_reviewer_sees_invisible_characters_of_a_change_as_numbers() -> None:
    call, _ = without_hidden(CALL)
    assert call.changes() == "+if admin⟨U+202E⟩:  # <!-- b -->\r\n"
    assert call.whole is not None
    assert call.whole() == "+if anybody⟨U+202E⟩:\n"


def test_what_people_wrote_is_counted_apart_from_what_programs_put_out() -> None:
    kept = without_hidden(CALL)[1]
    # Title, body, comment and answer: a comment each; a character each in these, and in a label.
    assert kept.written == {HiddenKind.COMMENT: 4, HiddenKind.ZERO_WIDTH: 5}
    assert kept.put_out == {HiddenKind.ZERO_WIDTH: 6, HiddenKind.DIRECTION: 3, HiddenKind.CONTROL: 10}
    plain = replace(CALL, brief=Brief("RQ-1", "Fix", "Body", "P1"), feedback=(), answers=(), step=None, plan=())
    plain = replace(plain, done={}, summary="", test_output="", whole=None)
    call, kept = without_hidden(plain)
    assert replace(call, changes=plain.changes) == plain
    assert kept == ({}, {})


def test_a_title_that_is_the_bodys_heading_is_counted_once() -> None:
    brief = Brief("RQ-1", "Fix <!-- x -->", "\n# Fix <!-- x -->\n", "P1")
    call, kept = without_hidden(replace(CALL, brief=brief, feedback=(), answers=()))
    assert (call.brief.title, call.brief.body) == ("Fix ", "\n# Fix \n")
    assert kept.written == {HiddenKind.COMMENT: 1}


def test_a_note_of_aiflows_own_is_kept_back_and_not_told() -> None:
    assert clean("a <!-- aiflow: What should be different? --> b") == ("a  b", (), {})
    assert clean("a <!-- aiflow: what\nelse --> b").counts == {HiddenKind.COMMENT: 1}
    assert clean("a <!-- aiflow: never ends").counts == {HiddenKind.COMMENT: 1}


def test_a_run_knows_once_what_is_kept_from_its_agents() -> None:
    counts = {HiddenKind.COMMENT: 2, HiddenKind.TAG: 7}
    run = withheld(planning(), counts, at(3))
    line = run.history[-1]
    assert (line.event, line.reason_code, line.note, line.at) == (
        "TEXT_WITHHELD",
        "HIDDEN_TEXT",
        "comment=2 tag=7",
        at(3),
    )
    assert run.warnings == ("HIDDEN_TEXT",)
    assert run.state is planning().state
    assert withheld(run, counts, at(4)) is run
    more = withheld(run, {HiddenKind.COMMENT: 3}, at(5))
    assert (len(more.history), more.warnings) == (len(run.history) + 1, run.warnings)
    assert (counts_of(run), counts_of(more), counts_of(planning())) == (counts, {HiddenKind.COMMENT: 3}, {})
    nothing = in_step()
    assert withheld(nothing, {}, at(3)) is nothing


def test_a_note_is_read_as_it_was_written_and_anything_else_is_nothing() -> None:
    counts = {kind: number for number, kind in enumerate(HiddenKind, 1)}
    assert counts_in(note_of(counts)) == counts
    for odd in (None, "", "comment", "comment=", "comment=x", "what=3", "=", "comment=²"):
        assert counts_in(odd) == {}
