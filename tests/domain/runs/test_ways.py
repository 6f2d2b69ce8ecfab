"""What a run's page offers in each state (D34 §6.2, DESIGN §4): which buttons, in which order, which one is filled."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aiflow.domain.request import RequestStatus
from aiflow.domain.run_summary import FROM_NEWER
from aiflow.domain.runs.events import stopped
from aiflow.domain.runs.run import RunError
from aiflow.domain.runs.ways import RunSurroundings, ways_on
from builders import typed
from run_builders import at, in_step, planning, why
from run_page_runs import MADE, WORKED_ON

pytestmark = pytest.mark.spec("WEB-1", "RUN-8")


def said(name: str, around: RunSurroundings | None = None) -> str:
    """The ways on as one line: `*` is recommended, `!` only by force, `+` keeps what was changed by hand."""
    ways = ways_on(MADE[name](), around or RunSurroundings(is_worked_on=name in WORKED_ON))
    marks = ("*" * way.is_recommended + "!" * way.is_forced + "+" * way.keeps_changes for way in ways)
    return " ".join(f"{way.kind}{mark}" for way, mark in zip(ways, marks, strict=True))


@pytest.mark.parametrize(
    ("name", "offered"),
    [
        ("planning", "cancel"),
        ("running", "cancel"),
        ("waiting", "cancel"),
        ("question", "answer* retry_step replan"),
        ("tests_failed", "retry_step* resume+ replan"),
        ("over_the_limit", "retry_step* resume+ replan"),
        ("retried_out", "replan* resume! retry_step!"),
        ("too_large", "replan* resume! retry_step!"),
        ("disk_full", "resume* retry_step replan"),
        ("settings", "resume retry_step replan"),
        ("cancelled", "resume* retry_step replan"),
        ("auto_cut_off", "resume* retry_step replan"),
        ("done", "accept* send_back"),
        ("conflicting", "update* accept send_back"),
        ("accepted", ""),
        ("failed", "set* resume!"),
        ("sent_back", "set*"),
        ("replaced", "show*"),
    ],
)
def test_each_state_has_its_ways(name: str, offered: str) -> None:
    assert said(name) == offered


def test_a_failed_run_of_a_request_that_is_ready_can_be_followed_at_once() -> None:
    assert said("failed", RunSurroundings(status=RequestStatus.READY)) == "run* resume!"
    assert said("sent_back", RunSurroundings(status=RequestStatus.READY)) == "run*"


@pytest.mark.parametrize("name", ["tests_failed", "done", "failed"])
def test_what_a_newer_run_followed_leads_there(name: str) -> None:
    assert said(name, RunSurroundings(newer_run_id="RUN-2")) == "show*"


def test_what_nobody_works_on_any_more_can_be_resumed() -> None:
    assert said("running", RunSurroundings()) == "resume* retry_step replan"


def test_what_is_being_accepted_offers_nothing() -> None:
    assert said("done", RunSurroundings(is_worked_on=True)) == ""


def test_without_a_step_no_step_can_be_retried() -> None:
    run = stopped(planning(), why("AGENT_FAILED"), at(3))
    assert [way.kind for way in ways_on(run, RunSurroundings())] == ["resume", "replan"]
    assert ways_on(run, RunSurroundings())[0].is_recommended


def test_what_a_newer_aiflow_wrote_is_only_planned_anew() -> None:
    run = MADE["disk_full"]()
    assert run.error is not None
    newer = replace(run, error=replace(run.error, reason_code=FROM_NEWER))
    assert [way.kind for way in ways_on(newer, RunSurroundings())] == ["replan"]


def test_each_way_is_the_command_that_a_person_would_type() -> None:
    def lines(name: str) -> list[str | None]:
        return list(typed(*(way.action for way in ways_on(MADE[name](), RunSurroundings()))))

    assert lines("question") == [
        'aiflow resume RQ-1 --answer "…"',
        "aiflow retry-step RQ-1",
        "aiflow replan RQ-1",
    ]
    assert lines("tests_failed")[:2] == ["aiflow retry-step RQ-1", "aiflow resume RQ-1 --keep-changes"]
    assert lines("retried_out")[1:] == ["aiflow resume RQ-1 --force", "aiflow retry-step RQ-1 --force"]
    assert lines("done") == ["aiflow accept RQ-1", 'aiflow send-back RQ-1 -m "…"']
    assert lines("conflicting")[0] == "aiflow resume RQ-1 --update"
    assert lines("failed")[0] == "aiflow set RQ-1 status=ready"


def test_a_question_that_was_not_kept_can_still_be_answered() -> None:
    run = stopped(in_step(), RunError("NEEDS_CLARIFICATION", "Which word?"), at(3))
    assert [way.kind for way in ways_on(run, RunSurroundings())] == ["answer", "retry_step", "replan"]


def test_an_issue_is_retried_on_its_issue_only() -> None:
    assert ways_on(stopped(in_step(), why("ISSUE_RETRY_ONLY"), at(3)), RunSurroundings()) == ()


@pytest.mark.parametrize("name", ["disk_full", "running"])
def test_what_the_next_auto_run_continues_asks_nothing_of_a_person(name: str) -> None:
    assert said(name, RunSurroundings(is_continued=True)) == "resume retry_step replan"
