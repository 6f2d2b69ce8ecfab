"""What is done about an issue: every case of the specification, once each, and nothing the second time."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from aiflow.domain.issues.issue import Account, HistoryEvent
from aiflow.domain.issues.marks import MarkKind
from aiflow.domain.issues.requests import request_of
from aiflow.domain.issues.standing import stand
from aiflow.domain.issues.tending import tend
from aiflow.domain.issues.trust import SeenText, text_hash
from aiflow.domain.issues.view import (
    CancelRun,
    CloseRun,
    Deed,
    IssueMemory,
    IssueRules,
    IssueView,
    JudgeMerge,
    OwnRun,
    Post,
    React,
    Relabel,
    RememberText,
    TakeUp,
    Unsay,
)
from aiflow.domain.lifecycle import RunOutcome
from issue_stories import BOT, OTHER_RUNNER, RUNNER, STRANGER, TRUST, WRITER, Teller, at

ACTIVE = OwnRun("RUN-1", RunOutcome.ACTIVE, is_working=True, attempt=1)
STOPPED = OwnRun("RUN-1", RunOutcome.NEEDS_INPUT, "UNIT_TEST_FAILED", attempt=1)
DONE = OwnRun("RUN-1", RunOutcome.AWAITING_ACCEPTANCE, attempt=1)


def seen(teller: Teller, *runs: OwnRun, **fields: Any) -> IssueView:
    return IssueView(teller.story, TRUST, at(teller.minute), runs=runs, me=RUNNER, **fields)


def brief(deed: Deed) -> str:
    """Write a deed in a word or two."""
    if isinstance(deed, Post):
        about = deed.facts.get("reason_code") or deed.facts.get("about") or deed.facts.get("ended") or ""
        return f"{deed.kind.value} {about}".strip()
    if isinstance(deed, Relabel):
        return f"{'+' if deed.change.is_added else '-'}{deed.change.label.value.removeprefix('agent:')}"
    if isinstance(deed, React):
        return deed.reaction.value
    return " ".join((NAMES.get(type(deed), "?"), *(str(fact) for fact in deed)))


NAMES: dict[type, str] = {CancelRun: "cancel", CloseRun: "CloseRun", TakeUp: "TakeUp", Unsay: "unsay"}
# What is asked again whenever the issue has changed, and not what is done about it.
UNTOLD = (RememberText, JudgeMerge)


def done(teller: Teller, *runs: OwnRun, **fields: Any) -> list[str]:
    """What is done, without what is remembered."""
    return [brief(deed) for deed in tend(seen(teller, *runs, **fields)) if not isinstance(deed, UNTOLD)]


def queued() -> Teller:
    return Teller().label("agent:queued")


def running() -> Teller:
    return queued().ran(outcome=None)


def blocked() -> Teller:
    return queued().ran()


def finished() -> Teller:
    return queued().ran(outcome="awaiting_acceptance")


# --- nothing to do ---------------------------------------------------------------------------------------------------


@pytest.mark.spec("ISS-10")
def test_where_all_is_well_nothing_is_done() -> None:
    assert done(Teller()) == []
    assert done(queued()) == []
    assert done(running(), ACTIVE) == []
    assert done(blocked(), STOPPED) == []
    assert done(finished(), DONE) == []
    assert done(Teller().label("bug", STRANGER).comment("/retry")) == [], "another bot's command on an issue not ours"


@pytest.mark.spec("ISS-3", "ISS-10")
def test_what_another_checkout_works_on_is_tended_there() -> None:
    teller = queued().ran(outcome=None, by=OTHER_RUNNER).comment("/cancel").label("agent:retry", STRANGER).close()
    assert done(teller) == []


@pytest.mark.spec("ISS-3")
def test_nothing_is_done_on_half_a_story() -> None:
    view = seen(running().unlabel("agent:running"), ACTIVE)
    short = view.story._replace(issue=view.story.issue._replace(comment_count=9))
    assert tend(view._replace(story=short)) == ()


# --- ends ------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("ISS-5", "ISS-9")
@pytest.mark.parametrize(
    ("run", "deeds", "reason"),
    [
        (STOPPED, ["blocked UNIT_TEST_FAILED", "+blocked", "-running"], "quality_rule_violation"),
        (STOPPED._replace(reason_code="NEEDS_CLARIFICATION"), ["blocked NEEDS_CLARIFICATION", "+blocked", "-running"], "decision_needed"),
        (STOPPED._replace(outcome=RunOutcome.CANCELLED, reason_code="CANCELLED"), ["blocked CANCELLED", "+blocked", "-running"], "decision_needed"),
        (STOPPED._replace(outcome=RunOutcome.FAILED, reason_code="INTERNAL_ERROR"), ["blocked INTERNAL_ERROR", "+blocked", "-running"], "environment_failure"),
        (DONE, ["result awaiting_acceptance"], None),
        (DONE._replace(outcome=RunOutcome.SENT_BACK), ["note sent_back", "+retry", "-running"], None),
    ],
)  # fmt: skip
def test_the_end_of_a_run_is_shown_by_a_comment_and_then_a_label(
    run: OwnRun, deeds: list[str], reason: str | None
) -> None:
    assert done(running(), run) == deeds
    (post,) = [deed for deed in tend(seen(running(), run)) if isinstance(deed, Post)]
    assert post.facts.get("blocked_reason") == reason
    assert (post.key, post.facts["run_id"], post.facts["attempt"], post.facts["of"]) == ("end:RUN-1", "RUN-1", 1, 6)


@pytest.mark.spec("ISS-10")
def test_a_label_that_did_not_follow_its_comment_follows_now() -> None:
    teller = running().mark(MarkKind.BLOCKED, "end:RUN-1", run_id="RUN-1", ended="needs_input")
    assert done(teller, STOPPED) == ["+blocked", "-running"]
    assert done(queued().header("RUN-1"), ACTIVE) == ["+running", "-queued"], "a start that was cut off"


@pytest.mark.spec("ISS-10", "ISS-3")
def test_a_run_that_nobody_works_on_is_taken_up_here_or_blocked_if_it_is_elsewhere() -> None:
    assert done(running(), ACTIVE._replace(is_working=False)) == ["TakeUp RUN-1"]
    teller = running().wait(31)
    assert done(teller) == ["blocked RUN_LOST", "+blocked", "-running"]
    assert done(teller, running_tasks=frozenset({"RUN-1"})) == []


@pytest.mark.spec("ISS-10")
@pytest.mark.parametrize(("by", "minutes", "deeds"), [
    (WRITER, 31, ["blocked RUN_LOST", "+blocked", "-running"]),
    (WRITER, 5, []),
    (STRANGER, 31, ["refusal LABEL_NOT_PERMITTED"]),
])  # fmt: skip
def test_a_running_label_that_no_run_belongs_to(by: Account, minutes: int, deeds: list[str]) -> None:
    assert done(Teller().label("agent:running", by).wait(minutes)) == deeds


@pytest.mark.spec("ISS-4")
def test_a_run_whose_end_others_have_shown_is_stopped() -> None:
    teller = running().ended("RUN-1", by=OTHER_RUNNER, reason_code="RUN_LOST")
    assert done(teller, ACTIVE) == ["cancel RUN-1 LOCK_LOST"]
    teller.comment("/retry").ran("RUN-2", 2, outcome=None, by=OTHER_RUNNER)
    assert done(teller, ACTIVE) == ["cancel RUN-1 LOCK_LOST"]
    assert done(teller, ACTIVE._replace(is_stopping=True)) == []


# --- retry -----------------------------------------------------------------------------------------------------------


@pytest.mark.spec("ISS-6")
@pytest.mark.parametrize(
    ("teller", "run", "deeds"),
    [
        (blocked().comment("/retry plan B"), STOPPED, ["+retry", "-blocked", "CloseRun RUN-1", "eyes"]),
        (blocked().comment("/retry", RUNNER), STOPPED, ["+retry", "-blocked", "CloseRun RUN-1", "eyes"]),
        (blocked().comment("/retry", STRANGER), STOPPED, ["refusal COMMAND_NOT_PERMITTED", "confused"]),
        (blocked().comment("/retry", BOT), STOPPED, ["refusal COMMAND_NOT_PERMITTED", "confused"]),
        (blocked().comment("/retry", STRANGER).comment("/retry", STRANGER), STOPPED, ["refusal COMMAND_NOT_PERMITTED", "confused", "confused"]),
        (blocked().comment("Plan B.").label("agent:retry"), STOPPED, ["-blocked", "CloseRun RUN-1"]),
        (blocked().label("agent:retry"), STOPPED, ["refusal ISSUE_DECISION_MISSING", "-retry"]),
        (blocked().comment("Plan B.", STRANGER).label("agent:retry"), STOPPED, ["refusal ISSUE_DECISION_MISSING", "-retry"]),
        (blocked().comment("Plan B.").label("agent:retry", STRANGER), STOPPED, ["refusal LABEL_NOT_PERMITTED", "-retry"]),
        (running().comment("/retry"), ACTIVE, ["refusal RUN_IN_PROGRESS", "confused"]),
        (running().label("agent:retry"), ACTIVE, ["refusal RUN_IN_PROGRESS", "-retry"]),
        (running().label("agent:queued"), ACTIVE, ["refusal RUN_IN_PROGRESS", "-queued"]),
        (finished().comment("/retry smaller"), DONE, ["+retry", "-running", "CloseRun RUN-1", "eyes"]),
        (finished().comment("smaller").label("agent:retry"), DONE, ["-running", "CloseRun RUN-1"]),
        (finished().label("agent:retry"), DONE, ["refusal ISSUE_DECISION_MISSING", "-retry"]),
        (blocked().comment("Plan B.").label("agent:queued"), STOPPED, ["-blocked", "CloseRun RUN-1"]),
    ],
)  # fmt: skip
def test_a_retry_is_obeyed_or_refused_with_the_reason(teller: Teller, run: OwnRun, deeds: list[str]) -> None:
    assert done(teller, run) == deeds


@pytest.mark.spec("ISS-6")
def test_a_retry_that_came_too_early_is_refused_after_the_end_too() -> None:
    teller = running().comment("/retry").ended("RUN-1")
    assert done(teller, STOPPED) == ["refusal RUN_IN_PROGRESS", "confused"]


@pytest.mark.spec("ISS-6")
def test_what_led_to_a_run_is_not_refused_by_it() -> None:
    teller = blocked().comment("/retry").ran("RUN-2", 2, outcome=None)
    memory = IssueMemory(reacted=frozenset({teller.comments[-2].id}))
    run = ACTIVE._replace(run_id="RUN-2", attempt=2)
    assert done(teller, STOPPED._replace(outcome=RunOutcome.SENT_BACK), run, memory=memory) == []


@pytest.mark.spec("ISS-6")
def test_a_command_of_the_second_in_which_its_run_began_is_not_refused() -> None:
    teller = queued().ran().comment("/retry").ran("RUN-2", 2, outcome=None)
    command = teller.comments[-2]
    teller.comments[-2] = command._replace(created_at=teller.comments[-1].created_at)
    memory = IssueMemory(reacted=frozenset({command.id}))
    assert done(teller, ACTIVE._replace(run_id="RUN-2"), memory=memory) == []


@pytest.mark.spec("ISS-6")
def test_a_refused_label_that_is_taken_off_after_a_command_does_not_undo_it() -> None:
    teller = blocked().label("agent:retry").comment("/retry").unlabel("agent:retry", RUNNER)
    assert done(teller, STOPPED) == ["+retry", "-blocked", "CloseRun RUN-1", "eyes"]


@pytest.mark.spec("ISS-10")
def test_a_label_that_the_issue_should_have_counts_whoever_set_it() -> None:
    teller = queued().header("RUN-1").label("agent:blocked", STRANGER).ended("RUN-1").unlabel("agent:queued", RUNNER)
    assert done(teller, STOPPED) == []
    teller.label("agent:queued").mark(MarkKind.REFUSAL, "decision:102").unlabel("agent:queued", RUNNER)
    assert done(teller, STOPPED) == []


@pytest.mark.spec("ISS-7")
@pytest.mark.parametrize("asked", ["/retry", "agent:retry", "agent:queued"])
def test_the_sixth_retry_blocks_the_issue_whoever_asks(asked: str) -> None:
    teller = queued().ran(attempt=6)
    teller = teller.comment(asked) if asked.startswith("/") else teller.comment("Plan B.").label(asked)
    deeds = done(teller, STOPPED)
    assert deeds[0] == "blocked ISSUE_RETRY_LIMIT"
    assert deeds[1:] == (["confused"] if asked.startswith("/") else [f"-{asked.removeprefix('agent:')}"])
    post = next(deed for deed in tend(seen(teller)) if isinstance(deed, Post))
    assert post.facts["blocked_reason"] == "retry_condition_unmet"
    assert done(teller, STOPPED, rules=IssueRules(retries=6))[:1] != deeds[:1], "only a higher setting lifts it"


@pytest.mark.spec("ISS-7")
def test_the_limit_holds_when_the_headers_were_deleted() -> None:
    teller = queued()
    assert done(teller, memory=IssueMemory(attempts=6)) == ["blocked ISSUE_RETRY_LIMIT", "+blocked", "-queued"]
    assert done(teller, OwnRun("RUN-0", RunOutcome.SENT_BACK, attempt=6))[0] == "blocked ISSUE_RETRY_LIMIT"
    assert done(teller, memory=IssueMemory(attempts=5)) == []


@pytest.mark.spec("ISS-6")
def test_a_label_taken_off_after_a_retry_was_shown_is_a_change_of_mind() -> None:
    teller = blocked().comment("/retry").label("agent:retry", RUNNER).unlabel("agent:blocked", RUNNER)
    memory = IssueMemory(reacted=frozenset({teller.comments[-1].id}))
    closed = STOPPED._replace(outcome=RunOutcome.SENT_BACK)
    assert done(teller, closed, memory=memory) == []
    assert done(teller.unlabel("agent:retry"), closed, memory=memory) == []
    assert done(teller.label("agent:retry", STRANGER), closed, memory=memory) == [
        "refusal LABEL_NOT_PERMITTED",
        "-retry",
    ]


# --- text ------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("ISS-2")
def test_a_changed_text_is_not_run_and_that_is_said_once() -> None:
    teller = Teller(STRANGER).label("agent:queued")
    (remember,) = tend(seen(teller))
    assert isinstance(remember, RememberText)
    memory = IssueMemory(seen_text=remember.seen)
    assert done(teller, memory=memory) == []
    teller.issue = teller.issue._replace(body="Something else")
    assert done(teller, memory=memory) == ["refusal ISSUE_TEXT_CHANGED"]
    teller.mark(MarkKind.REFUSAL, "text:label:1")
    assert done(teller, memory=memory) == []
    late = stand(seen(teller, memory=IssueMemory(seen_text=SeenText("label:1", text_hash("Something else")))))
    assert late.kept is not None, "what one runner saw changed is changed for all"
    assert late.kept.reason_code == "ISSUE_TEXT_CHANGED"
    teller.comment("/retry")
    assert done(teller, memory=memory) == ["+retry", "-queued", "eyes"]


@pytest.mark.spec("ISS-2", "ISS-6")
def test_a_text_changed_between_a_command_and_our_label_is_found() -> None:
    teller = Teller(STRANGER).label("agent:queued").ran().comment("/retry")
    remember = tend(seen(teller))[0]
    assert isinstance(remember, RememberText)
    teller.issue = teller.issue._replace(body="Something else")
    teller.label("agent:retry", RUNNER).unlabel("agent:blocked", RUNNER)
    memory = IssueMemory(seen_text=remember.seen, reacted=frozenset({103}))
    assert done(teller, memory=memory) == ["refusal ISSUE_TEXT_CHANGED"]


# --- cancel, close, labels by hand -----------------------------------------------------------------------------------


@pytest.mark.spec("ISS-8", "ISS-9", "ISS-10")
@pytest.mark.parametrize(
    ("teller", "run", "deeds"),
    [
        (running().comment("/cancel"), ACTIVE, ["cancel RUN-1 CANCELLED", "eyes"]),
        (running().comment("/cancel"), ACTIVE._replace(is_stopping=True), ["eyes"]),
        (running().comment("/cancel", STRANGER), ACTIVE, ["refusal COMMAND_NOT_PERMITTED", "confused"]),
        (running().unlabel("agent:running"), ACTIVE, ["cancel RUN-1 CANCELLED"]),
        (running().unlabel("agent:running", STRANGER), ACTIVE, ["+running"]),
        (running().label("agent:blocked"), ACTIVE, ["cancel RUN-1 CANCELLED"]),
        (running().label("agent:blocked", STRANGER), ACTIVE, ["refusal LABEL_NOT_PERMITTED", "-blocked"]),
        (running().close(), ACTIVE, ["cancel RUN-1 CANCELLED"]),
        (running().close().reopen(), ACTIVE, ["cancel RUN-1 CANCELLED"]),
        (running().unlabel("agent:running").label("agent:retry"), ACTIVE, ["refusal RUN_IN_PROGRESS", "cancel RUN-1 CANCELLED"]),
        (queued().comment("/cancel"), None, ["-queued", "eyes"]),
        (blocked().comment("/cancel"), STOPPED, ["-blocked", "eyes"]),
        (blocked().unlabel("agent:blocked"), STOPPED, []),
        (blocked().unlabel("agent:blocked", STRANGER), STOPPED, ["+blocked"]),
        (blocked().label("agent:running", STRANGER), STOPPED, ["refusal LABEL_NOT_PERMITTED", "-running"]),
        (blocked().label("agent:running"), STOPPED, ["-running"]),
        (finished().unlabel("agent:running"), DONE, []),
        (finished().close(), DONE, ["-running"]),
        (blocked().close(), STOPPED, ["-blocked"]),
        (blocked().close().comment("/retry"), STOPPED, ["refusal NOT_READY", "-blocked", "confused"]),
        (queued().label("agent:retry"), None, ["-queued"]),
        (queued().label("agent:blocked"), None, ["-queued"]),
    ],
)  # fmt: skip
def test_a_persons_newer_wish_is_obeyed_and_other_labels_are_repaired(
    teller: Teller, run: OwnRun | None, deeds: list[str]
) -> None:
    assert done(teller, *([run] if run else [])) == deeds


@pytest.mark.spec("ISS-9", "ISS-10")
@pytest.mark.parametrize("how", ["/cancel", "unlabel", "close"])
def test_what_was_cancelled_by_a_wish_is_a_draft_and_stays_one(how: str) -> None:
    teller = running()
    teller = (
        teller.unlabel("agent:running")
        if how == "unlabel"
        else teller.close()
        if how == "close"
        else teller.comment(how)
    )
    run = ACTIVE._replace(outcome=RunOutcome.CANCELLED, reason_code="CANCELLED", is_working=False)
    memory = IssueMemory(reacted=frozenset({102}))
    assert done(teller, run, memory=memory) == ["note CANCELLED", *([] if how == "unlabel" else ["-running"])]
    post = next(deed for deed in tend(seen(teller, run)) if isinstance(deed, Post))
    assert post.facts["label"] == ""
    teller.mark(post.kind, post.key, **post.facts)
    if "agent:running" in teller.issue.labels:
        teller.unlabel("agent:running", RUNNER)
    assert done(teller, run, memory=memory) == []
    if how != "close":
        assert done(teller.label("agent:queued"), run, memory=memory) == ["CloseRun RUN-1"], (
            "no decision is needed after a cancel"
        )


@pytest.mark.spec("ISS-9")
def test_a_closed_issue_cancels_before_its_event_is_there() -> None:
    teller = running()
    teller.issue = teller.issue._replace(is_open=False, state_reason="completed")
    assert done(teller, ACTIVE) == ["cancel RUN-1 CANCELLED"]


@pytest.mark.spec("ISS-9")
def test_a_run_that_was_done_before_its_cancel_shows_its_result_and_no_label() -> None:
    teller = running().unlabel("agent:running")
    assert done(teller, DONE) == ["result awaiting_acceptance"]
    (post,) = [deed for deed in tend(seen(teller, DONE)) if isinstance(deed, Post)]
    assert done(teller.mark(post.kind, post.key, **post.facts), DONE) == []


@pytest.mark.spec("ISS-10")
def test_a_label_whose_removal_nobody_is_known_for_is_waited_for() -> None:
    teller = running()
    teller.issue = teller.issue._replace(labels=(), updated_at=at(teller.minute))
    assert done(teller, ACTIVE) == []
    teller.wait(3)
    assert done(teller, ACTIVE) == ["+running"], "a label that was deleted from the repository leaves no event"


# --- reminder, answers -----------------------------------------------------------------------------------------------


@pytest.mark.spec("ISS-8")
@pytest.mark.parametrize(
    ("teller", "reminds"),
    [
        (blocked().wait(24 * 60 - 3), False),
        (blocked().wait(24 * 60 + 3), True),
        (blocked().comment("Plan B.", STRANGER).wait(24 * 60 + 3), True),
        (blocked().comment("I will look at it.").wait(24 * 60 + 3), False),
        (blocked().wait(24 * 60 + 3).unlabel("agent:blocked"), False),
        (blocked().wait(24 * 60 + 3).close(), False),
        (Teller().label("agent:blocked").wait(24 * 60 + 3), True),
        (queued().wait(24 * 60 + 3), False),
        (finished().wait(24 * 60 + 3), False),
    ],
)
def test_a_block_without_a_decision_is_recalled_after_a_day(teller: Teller, reminds: bool) -> None:
    assert ("reminder" in " ".join(done(teller))) is reminds
    assert request_of(seen(teller), "o/r", {}).is_overdue is reminds


@pytest.mark.spec("ISS-8")
def test_there_is_one_reminder_for_each_block() -> None:
    teller = blocked().wait(25 * 60)
    (post,) = tend(seen(teller))
    assert isinstance(post, Post)
    teller.mark(post.kind, post.key, **post.facts).wait(25 * 60)
    assert done(teller) == []
    assert request_of(seen(teller), "o/r", {}).is_overdue
    teller.comment("/retry").ran("RUN-2", 2).wait(25 * 60)
    memory = IssueMemory(reacted=frozenset(comment.id for comment in teller.comments))
    assert done(teller, memory=memory) == ["reminder"]


@pytest.mark.spec("ISS-8")
def test_a_day_begins_with_the_block_even_if_the_label_was_there_before() -> None:
    teller = queued().header("RUN-1").label("agent:blocked", STRANGER).wait(25 * 60).ended("RUN-1")
    teller.unlabel("agent:queued", RUNNER)
    assert done(teller, STOPPED) == []
    assert done(teller.wait(25 * 60), STOPPED) == ["reminder"]


@pytest.mark.spec("ISS-9", "ISS-10")
def test_a_progress_comment_that_was_posted_again_stays() -> None:
    teller = running().mark(MarkKind.PROGRESS, "progress:RUN-1", run_id="RUN-1").forget(1)
    assert done(teller.mark(MarkKind.PROGRESS, "progress:RUN-1", run_id="RUN-1"), ACTIVE) == []


@pytest.mark.spec("ISS-6", "ISS-8")
def test_status_and_help_are_answered_once_and_only_to_those_who_may_decide() -> None:
    teller = blocked().comment("/status\n\n/help")
    assert done(teller, STOPPED) == ["note status", "note help", "eyes"]
    assert done(blocked().comment("/status", STRANGER), STOPPED) == ["refusal COMMAND_NOT_PERMITTED", "confused"]


@pytest.mark.spec("ISS-12")
def test_where_nothing_starts_an_issue_that_is_said_once() -> None:
    rules = IssueRules(is_started=False)
    teller = queued()
    assert done(teller, rules=rules) == ["note waiting"]
    assert done(teller.mark(MarkKind.NOTE, "waiting:label:1"), rules=rules) == []
    assert done(blocked(), STOPPED, rules=rules) == []


@pytest.mark.spec("ISS-6")
def test_what_was_asked_before_the_watch_began_is_not_answered() -> None:
    teller = blocked().comment("/retry").comment("/retry", STRANGER).label("agent:retry", STRANGER).wait(5)
    assert done(teller, STOPPED, memory=IssueMemory(since=at(teller.minute))) == ["-retry"]


@pytest.mark.spec("ISS-10")
def test_what_two_runners_said_at_once_is_taken_back_by_the_later_one() -> None:
    teller = blocked().comment("/retry", STRANGER)
    for by in (OTHER_RUNNER, RUNNER, OTHER_RUNNER):
        teller.mark(MarkKind.REFUSAL, "refusal:account:2", by)
    memory = IssueMemory(reacted=frozenset({103}))
    assert done(teller, STOPPED, memory=memory) == [f"unsay {teller.comments[-2].id}"]


@pytest.mark.spec("ISS-6")
@pytest.mark.parametrize("by", [STRANGER, WRITER])
def test_a_mark_of_anybody_else_changes_nothing_and_silences_nobody(by: Account) -> None:
    teller = running().mark(MarkKind.BLOCKED, "end:RUN-1", by, run_id="RUN-1", ended="failed")
    teller.mark(MarkKind.REFUSAL, "refusal:comment:104", by).comment("/retry")
    assert done(teller, ACTIVE) == ["refusal RUN_IN_PROGRESS", "confused"]


@pytest.mark.spec("ISS-10")
def test_events_out_of_order_or_twice_change_nothing() -> None:
    view = seen(blocked().comment("Plan B.").label("agent:retry"), STOPPED)
    again = tuple(HistoryEvent(*event) for event in view.story.events for _ in range(2))
    assert tend(view._replace(story=view.story._replace(events=again))) == tend(view)
    assert tend(view._replace(now=view.now + timedelta(hours=1))) == tend(view)
