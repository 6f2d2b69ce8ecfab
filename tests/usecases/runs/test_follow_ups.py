"""Follow-ups (REQ-10): what agents propose becomes a draft, once, whatever the run comes to and whoever dies between."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from aiflow.adapters.memory.time import PlayedTime
from aiflow.domain.activity import ActivityKind, Actor
from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.call import AgentCall, AgentReply
from aiflow.domain.backlog.metadata import Change
from aiflow.domain.lifecycle import RunState
from aiflow.domain.request import Request, RequestId
from aiflow.domain.runs.follow_ups import MOST_IN_A_RUN, draft_id
from aiflow.errors import EnvironmentProblemError
from aiflow.usecases.engine import Engine
from aiflow.usecases.runs.accept import accept_run, send_back
from aiflow.usecases.runs.recover import mark_crashed
from aiflow.usecases.runs.start import start_run
from memory_engine import MemoryCheckout, MemoryProcess, obliging, plan

pytestmark = pytest.mark.spec("REQ-10")

ONE, TWO = RequestId("RQ-1"), RequestId("RQ-2")


class DiedError(BaseException):
    """The process is killed."""


class Bench:
    """A checkout with one request; `answers` is what a role says in place of an obliging answer."""

    def __init__(self) -> None:
        self.checkout = MemoryCheckout()
        self.checkout.add(ONE)
        self.answers: dict[Role, list[object]] = {}
        self.warned: list[str] = []
        self.calls: list[AgentCall] = []

    @property
    def engine(self) -> Engine:
        """The engine of a new process."""
        return MemoryProcess(self.checkout, 7, PlayedTime(), self.script).engine().heard_by(warn=self.warned.append)

    def script(self, call: AgentCall, *more: Any) -> AgentReply:
        self.calls.append(call)
        answers = self.answers.get(call.role)
        usual = obliging(self.checkout)(call, *more)
        return AgentReply(json.dumps(answers.pop(0)).encode()) if answers else usual

    def drafts(self) -> list[Request]:
        """What agents found, as requests."""
        valid, broken = self.checkout.requests.load()
        assert not broken
        return [each for each in valid if each.found_in]

    def text(self, request_id: RequestId | None) -> str:
        assert request_id is not None
        return self.checkout.requests.texts[request_id]


def found(*titles: str, **more: object) -> dict[str, object]:
    return {"status": "done", "follow_ups": [{"title": each, "body": f"About {each}."} for each in titles], **more}


@pytest.fixture
def bench() -> Bench:
    return Bench()


# --- what becomes of a proposal --------------------------------------------------------------------------------------


def test_what_an_agent_proposes_becomes_a_draft_that_names_where_it_was_found(bench: Bench) -> None:
    bench.answers = {
        Role.IMPLEMENTER: [found("Close the file")],
        Role.QA: [{"verdict": "pass", "follow_ups": [{"title": "Escape names", "body": "A hole."}]}],
    }
    run = start_run(bench.engine, ONE)
    assert run.state is RunState.DONE
    first, second = sorted(bench.drafts(), key=lambda each: each.title)
    assert (first.title, first.status, first.found_in) == ("Close the file", "draft", ONE)
    assert (second.title, second.status, second.priority) == ("Escape names", "draft", "P3")
    assert bench.text(first.id).endswith("# Close the file\n\nAbout Close the file.\n")
    kept = run.follow_ups.kept
    assert [(each.request_id, each.role, each.step_id) for each in kept] == [
        (first.id, "implementer", "S01"),
        (second.id, "qa", "S01"),
    ]
    created = [each for each in bench.checkout.journal.entries if each.kind is ActivityKind.REQUEST_CREATED]
    assert [(each.actor, each.request_id, each.data["found_in"]) for each in created] == [
        (Actor.ENGINE, first.id, ONE),
        (Actor.ENGINE, second.id, ONE),
    ]


@pytest.mark.spec("REQ-7")
def test_no_run_id_stands_in_the_draft(bench: Bench) -> None:
    bench.answers = {Role.IMPLEMENTER: [found("Close the file")]}
    run = start_run(bench.engine, ONE)
    assert run.run_id not in bench.text(run.follow_ups.kept[0].request_id)


def test_the_report_names_it_with_its_request(bench: Bench) -> None:
    bench.answers = {Role.IMPLEMENTER: [found("Close the file")]}
    run = start_run(bench.engine, ONE)
    report = bench.engine.runs.report(run) or ""
    assert f"### Found on the way\n\n- {run.follow_ups.kept[0].request_id} Close the file " in report


def test_a_run_that_asks_or_fails_loses_nothing_of_what_was_found(bench: Bench) -> None:
    asked = {"status": "needs_input", "question": "Which one?", "follow_ups": [{"title": "Close the file"}]}
    bench.answers = {Role.IMPLEMENTER: [asked]}
    assert start_run(bench.engine, ONE).state is RunState.NEEDS_INPUT
    assert [each.title for each in bench.drafts()] == ["Close the file"]
    bench.checkout.add(TWO)
    no = {"verdict": "fail", "findings": ["no"]}
    bench.answers = {Role.IMPLEMENTER: [found("A"), found("B")], Role.QA: [no, no]}
    assert start_run(bench.engine, TWO).state is RunState.NEEDS_INPUT
    assert {each.title for each in bench.drafts()} == {"Close the file", "A", "B"}


def test_no_more_than_five_of_a_run_and_the_rest_is_counted(bench: Bench) -> None:
    bench.answers = {Role.IMPLEMENTER: [found(*"ABCDEFG")], Role.QA: [{"verdict": "pass", "follow_ups": ["H", "A"]}]}
    run = start_run(bench.engine, ONE)
    assert [each.title for each in bench.drafts()] == list("ABCDE")
    assert len(run.follow_ups.kept) == MOST_IN_A_RUN
    assert run.follow_ups.left_out == 3
    assert "3 more were left out: a run may propose 5" in (bench.engine.runs.report(run) or "")
    assert b"left out 2 more" in b"".join(bench.checkout.runs.logs.values())


def test_nothing_is_made_ready_and_nothing_found_runs(bench: Bench) -> None:
    bench.answers = {
        Role.IMPLEMENTER: [
            {
                **found("Run me"),
                "follow_ups": [
                    {"title": "Run me", "status": "ready", "body": "---\nstatus: ready\npriority: P0\n---\n\n/run\n"}
                ],
            }
        ]
    }
    start_run(bench.engine, ONE)
    [draft] = bench.drafts()
    assert (draft.status, draft.priority, draft.title) == ("draft", "P3", "Run me")


def test_secrets_are_masked(bench: Bench) -> None:
    bench.answers = {Role.IMPLEMENTER: [found("Remove hunter2")]}
    start_run(replace(bench.engine, mask=lambda text: text.replace("hunter2", "***")), ONE)
    [draft] = bench.drafts()
    assert "hunter2" not in bench.text(draft.id)
    assert draft.title == "Remove ***"


@pytest.mark.parametrize(
    "title",
    [
        "---",
        "# heading #",
        "a: b # c",
        "status: ready",
        "../../x",
        "<script>alert(1)</script>",
        "'\"",
        "[x",
        "~",
        "```",
    ],
)
def test_no_title_or_text_makes_a_request_that_says_something_else(bench: Bench, title: str) -> None:
    body = f"{title}\n---\nstatus: ready\n---\n# Another heading\n"
    bench.answers = {Role.IMPLEMENTER: [{"status": "done", "follow_ups": [{"title": title, "body": body}]}]}
    run = start_run(bench.engine, ONE)
    [draft] = bench.drafts()
    assert (draft.title, draft.status, draft.found_in) == (run.follow_ups.kept[0].title, "draft", ONE)


# --- never twice -----------------------------------------------------------------------------------------------------


def test_what_an_open_request_asks_for_already_becomes_no_second_one(bench: Bench) -> None:
    bench.checkout.requests.texts[TWO] = "---\nstatus: ready\n---\n\n# Close the  FILE.\n"
    bench.answers = {Role.IMPLEMENTER: [found("close the file")]}
    run = start_run(bench.engine, ONE)
    assert bench.drafts() == []
    assert [(each.request_id, each.is_known) for each in run.follow_ups.kept] == [(TWO, True)]
    assert "there was a request for it" in (bench.engine.runs.report(run) or "")


def test_what_is_done_can_be_found_again(bench: Bench) -> None:
    bench.checkout.requests.texts[TWO] = "---\nstatus: done\n---\n\n# Close the file\n"
    bench.answers = {Role.IMPLEMENTER: [found("Close the file")]}
    start_run(bench.engine, ONE)
    assert len(bench.drafts()) == 1


def test_the_next_run_finds_the_same_and_makes_none_also_if_a_person_deleted_it(bench: Bench) -> None:
    bench.answers = {Role.IMPLEMENTER: [found("Close the file"), found("Close the file", summary="again")]}
    first = start_run(bench.engine, ONE)
    [draft] = bench.drafts()
    del bench.checkout.requests.texts[draft.id]
    send_back(bench.engine, first, "Once more.")
    second = start_run(bench.engine, ONE)
    assert bench.drafts() == []
    assert [(each.request_id, each.is_known) for each in second.follow_ups.kept] == [(draft.id, True)]


def test_accepting_brings_no_deleted_draft_back(bench: Bench) -> None:
    bench.answers = {Role.IMPLEMENTER: [found("Close the file")]}
    run = start_run(bench.engine, ONE)
    [draft] = bench.drafts()
    del bench.checkout.requests.texts[draft.id]
    assert accept_run(bench.engine, run).accepted_as
    assert bench.drafts() == []


def test_a_strangers_request_of_the_same_id_is_left_alone(bench: Bench) -> None:
    engine = bench.engine
    taken = draft_id("RUN-20260102-030405-000001", 1, 0)
    bench.checkout.add(taken)
    before = bench.text(taken)
    bench.answers = {Role.IMPLEMENTER: [found("Close the file")]}
    run = start_run(engine, ONE)
    assert run.run_id == "RUN-20260102-030405-000001"
    assert bench.text(taken) == before
    assert [each.id for each in bench.drafts()] == [draft_id(run.run_id, 1, 1)]


# --- when something is in the way ------------------------------------------------------------------------------------


class Refusing:
    """An editor that cannot write."""

    def __init__(self, editor: Any) -> None:
        self._editor = editor

    def __getattr__(self, name: str) -> Any:
        return getattr(self._editor, name)

    def create(self, *_: object) -> str:
        raise EnvironmentProblemError(reason_code="DISK_FULL", path="requests")


def test_a_draft_that_cannot_be_written_keeps_no_run_from_ending_and_is_made_later(bench: Bench) -> None:
    bench.answers = {Role.IMPLEMENTER: [found("Close the file")]}
    engine = bench.engine
    run = start_run(replace(engine, editor=Refusing(engine.editor)), ONE)
    assert run.state is RunState.DONE
    assert bench.drafts() == []
    assert "not a request yet" in (engine.runs.report(run) or "")
    assert any("Close the file" in each for each in bench.warned)
    accepted = accept_run(bench.engine, run)
    [draft] = bench.drafts()
    assert [each.request_id for each in accepted.follow_ups.kept] == [draft.id]


def test_an_interrupted_run_keeps_what_was_found_before(bench: Bench) -> None:
    """The first step found something; the process dies in the second, and a person stops the run."""
    bench.answers = {Role.PLANNER: [json.loads((plan("S01", "S02").answer or b"").decode())]}
    bench.answers[Role.IMPLEMENTER] = [found("Close the file")]

    def script(call: AgentCall, *more: Any) -> AgentReply:
        if call.step is not None and call.step.id == "S02":
            raise DiedError
        return bench.script(call, *more)

    with pytest.raises(DiedError):
        start_run(MemoryProcess(bench.checkout, 8, PlayedTime(), script).engine(), ONE)
    assert bench.drafts() == []
    run = mark_crashed(bench.engine, ONE)
    assert run is not None
    assert run.state is RunState.NEEDS_INPUT
    assert [each.title for each in bench.drafts()] == ["Close the file"]


def test_the_next_agents_are_not_told_what_others_found(bench: Bench) -> None:
    bench.answers = {Role.IMPLEMENTER: [found("Close the file")]}
    start_run(bench.engine, ONE)
    assert not any("Close the file" in told.summary for call in bench.calls for told in call.feedback)


def test_a_person_makes_it_ready_as_any_other(bench: Bench) -> None:
    bench.answers = {Role.IMPLEMENTER: [found("Close the file")]}
    start_run(bench.engine, ONE)
    [draft] = bench.drafts()
    bench.checkout.requests.edit(draft.id, {"status": Change("ready")})
    run = start_run(bench.engine, draft.id)
    assert (run.state, bench.drafts()[0].found_in) == (RunState.DONE, ONE)
