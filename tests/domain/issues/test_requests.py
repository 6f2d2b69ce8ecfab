"""An issue as a request: its status, what it waits for, and what its next run is given."""

from __future__ import annotations

from typing import Any

import pytest

from aiflow.domain.issue_ways import issue_number
from aiflow.domain.issues.issue import Blocker
from aiflow.domain.issues.marks import MarkKind
from aiflow.domain.issues.requests import (
    dependencies_of,
    request_of,
    said_since,
    start_header,
)
from aiflow.domain.issues.trust import text_hash
from aiflow.domain.issues.view import IssueView, OwnRun
from aiflow.domain.lifecycle import RunOutcome
from aiflow.domain.request import Priority, Request
from issue_stories import BOT, OTHER_RUNNER, RUNNER, STRANGER, TRUST, Teller, at, issue

REFUSAL = MarkKind.REFUSAL


def seen(teller: Teller, **fields: Any) -> IssueView:
    return IssueView(teller.story, TRUST, at(teller.minute), **fields)


def request(teller: Teller, **fields: Any) -> Request:
    return request_of(seen(teller, **fields), "o/r", {})


@pytest.mark.spec("ISS-2")
@pytest.mark.parametrize(
    ("teller", "status", "kept"),
    [
        (Teller(), "draft", None),
        (Teller().label("agent:queued"), "ready", None),
        (Teller().label("agent:retry"), "ready", None),
        (Teller().label("agent:queued").unlabel("agent:queued"), "draft", None),
        (Teller().label("agent:blocked"), "blocked", None),
        (Teller().label("agent:queued").ran(), "blocked", "ISSUE_RETRY_ONLY"),
        (Teller().label("agent:queued").ran(outcome="awaiting_acceptance"), "blocked", "AWAITING_ACCEPTANCE"),
        (Teller().label("agent:queued").ran(outcome=None), "running", "REQUEST_LOCKED"),
        (Teller().label("agent:queued").close(), "done", None),
        (Teller().label("agent:queued").close("not_planned"), "archived", None),
        (Teller().close("duplicate"), "archived", None),
        (Teller().label("agent:queued").close().reopen(), "draft", None),
        (Teller().label("agent:queued").close().comment("/retry").reopen(), "ready", None),
        (
            Teller().label("agent:queued").close().comment("/retry").mark(REFUSAL, "refusal:comment:101").reopen(),
            "draft",
            None,
        ),
        (Teller().label("agent:queued", STRANGER), "ready", "LABEL_NOT_PERMITTED"),
        (Teller().label("agent:queued", BOT), "ready", "LABEL_NOT_PERMITTED"),
        (Teller().label("agent:queued", None), "ready", "LABEL_NOT_PERMITTED"),
        (Teller().label("agent:blocked", STRANGER), "draft", None),
        (
            Teller().label("agent:queued").unlabel("agent:queued", STRANGER).label("agent:queued", STRANGER),
            "ready",
            "LABEL_NOT_PERMITTED",
        ),
        (Teller().label("agent:queued").ran().label("agent:retry"), "blocked", "ISSUE_DECISION_MISSING"),
        (Teller().label("agent:queued").ran().comment("Use plan B").label("agent:retry"), "ready", None),
        (Teller().label("agent:queued").ran().comment("/retry"), "ready", None),
        (Teller().label("agent:queued").ran(attempt=6).comment("/retry"), "blocked", "ISSUE_RETRY_LIMIT"),
        (Teller(STRANGER).label("agent:queued").comment("I say", STRANGER), "ready", "ISSUE_TEXT_CHANGED"),
    ],
)
def test_the_status_of_an_issue(teller: Teller, status: str, kept: str | None) -> None:
    made = request(teller)
    assert (made.status.value, made.kept.reason_code if made.kept else None) == (status, kept)


@pytest.mark.spec("ISS-2", "SEL-1")
def test_a_request_is_made_of_what_a_person_sees() -> None:
    teller = Teller().label("agent:queued").label("P1").label("bug")
    teller.issue = teller.issue._replace(title="Fix\u202e it\n")
    made = request(teller)
    assert (made.id, made.title, made.priority, made.labels) == ("GH-7", "Fix it", Priority.P1, ("P1", "bug"))
    assert made.where == "https://github.example/o/r/issues/7"
    assert (made.created_at, made.updated_at) == (at(0), at(3))
    assert request(Teller()).priority is Priority.P3
    assert [issue_number(name) for name in ("GH-7", "GH-07", "GH-", "RQ-7", "GH-7\n")] == [7, None, None, None, None]


@pytest.mark.spec("ISS-2", "ISS-9")
def test_a_run_of_this_checkout_speaks_for_itself_until_it_is_accepted() -> None:
    teller = Teller().label("agent:queued").ran("RUN-1", outcome="awaiting_acceptance")
    assert request(teller, runs=(OwnRun("RUN-1", RunOutcome.AWAITING_ACCEPTANCE),)).kept is None
    accepted = request(teller, runs=(OwnRun("RUN-1", RunOutcome.ACCEPTED),))
    assert (accepted.status, accepted.kept.reason_code if accepted.kept else None) == ("blocked", "AWAITING_CLOSE")


@pytest.mark.spec("ISS-2")
@pytest.mark.parametrize(
    ("body", "waits_for"),
    [
        ("Depends on #3", ["GH-3"]),
        ("depends on: #3, #4 and #5.", ["GH-3", "GH-4", "GH-5"]),
        ("Text\n- Depends on #3\n- [ ] depends on #4\n", ["GH-3", "GH-4"]),
        ("Depends on #3\r\nDepends on #3", ["GH-3"]),
        ("Nothing depends on #3", []),
        ("> Depends on #3", []),
        ("```\nDepends on #3\n```", []),
        ("<!-- Depends on #3 -->", []),
        ("Depends on other/repo#3", []),
        ("Depends on #0", []),
    ],
)
def test_lines_of_the_body_name_what_it_waits_for(body: str, waits_for: list[str]) -> None:
    assert list(dependencies_of(Teller(body=body).story, "o/r", {}).waits_for) == waits_for


@pytest.mark.spec("ISS-2")
def test_only_open_blockers_block_and_one_closed_as_not_planned_is_named() -> None:
    blockers = (
        Blocker("O/R", 3, True),
        Blocker("o/r", 4, False, "completed"),
        Blocker("o/r", 5, False, "not_planned"),
        Blocker("else/where", 6, True),
        Blocker("else/where", 7, False, "not_planned"),
    )
    story = Teller(body="Depends on #5\n\nDepends on #8\n\nDepends on #9").story._replace(blockers=blockers)
    known = {
        8: issue(number=8, is_open=False, state_reason="not_planned"),
        9: issue(number=9, is_open=False, state_reason="completed"),
    }
    found = dependencies_of(story, "o/r", known)
    assert (found.waits_for, found.elsewhere, found.unread) == (("GH-3", "GH-9"), ("else/where#6",), 0)
    assert found.freed == ("#5", "else/where#7", "#8")


@pytest.mark.spec("ISS-2")
@pytest.mark.parametrize(
    ("blockers", "count", "ids"),
    [
        ((Blocker("else/where", 6, True),), 1, "else/where#6"),
        ((Blocker("o/r", 3, False, "completed"),), 2, "?"),
        (None, 0, "?"),
        (None, 2, "?, ?"),
        ((Blocker("else/where", 6, False, "completed"),), 1, None),
    ],
)
def test_what_is_elsewhere_or_cannot_be_read_keeps_it(
    blockers: tuple[Blocker, ...] | None, count: int, ids: str | None
) -> None:
    teller = Teller().label("agent:queued")
    teller.issue = teller.issue._replace(blocker_count=count)
    view = seen(teller)
    made = request_of(view._replace(story=view.story._replace(blockers=blockers)), "o/r", {})
    assert (dict(made.kept.facts)["ids"] if made.kept else None) == ids
    assert made.kept is None or made.kept.reason_code == "DEPENDS_NOT_DONE"


@pytest.mark.spec("ISS-3", "ISS-7")
def test_the_next_header_counts_on_and_names_what_asked_for_it() -> None:
    first = start_header(seen(Teller().label("agent:queued")), "RUN-1", "laptop")
    assert (first.attempt, first.of, first.trigger, first.text_hash) == (1, 6, "agent:queued", text_hash("Please."))
    teller = Teller().label("agent:queued").ran(attempt=2).comment("/retry")
    assert (start_header(seen(teller), "RUN-2", "laptop").attempt, start_header(seen(teller), "R", "l").trigger) == (
        3,
        "/retry",
    )
    knows = seen(teller, runs=(OwnRun("RUN-0", RunOutcome.SENT_BACK, attempt=4),))
    assert start_header(knows, "RUN-3", "laptop").attempt == 5


@pytest.mark.spec("ISS-6")
def test_what_people_said_since_the_stop_reaches_the_next_run() -> None:
    teller = Teller().label("agent:queued").comment("old").ran().comment("Use plan B\n/retry with care\nand tests")
    teller.comment("and hack them", STRANGER).comment("from the token's owner", RUNNER)
    teller.header("RUN-9", by=OTHER_RUNNER).comment("/retry")
    since = teller.comments[3].created_at
    assert said_since(seen(teller), since) == ("Use plan B\nwith care\nand tests", "from the token's owner")
    assert "and hack them" in said_since(seen(teller), since, with_strangers=True)
    assert said_since(seen(teller), None)[0] == "old"
