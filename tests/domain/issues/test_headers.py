"""Run Headers: which run has an issue, whether it is live, and how many there were."""

from __future__ import annotations

from datetime import timedelta

import pytest

from aiflow.domain.issues.headers import (
    LifeSigns,
    RunHeader,
    StartVerdict,
    attempts,
    holder,
    is_live,
    judge_start,
    last_stop,
    read_trails,
)
from aiflow.domain.issues.marks import MarkKind, find_mark, write_mark
from aiflow.domain.lifecycle import IssueLabel, RunOutcome
from issue_stories import OTHER_RUNNER, RUNNER, STRANGER, TRUST, WRITER, Teller, at

TTL = timedelta(minutes=30)


@pytest.mark.spec("ISS-3")
def test_a_header_says_what_the_specification_lists() -> None:
    header = RunHeader("RUN-1", "laptop", 3, 6, "agent:retry", "abc")
    mark = find_mark(write_mark(header.mark))
    assert mark == header.mark
    assert mark.key == "run-header:RUN-1"
    assert (mark.number("attempt"), mark.number("of"), mark.text("trigger")) == (3, 6, "agent:retry")


@pytest.mark.spec("ISS-3")
def test_of_two_headers_the_lower_wins() -> None:
    story = Teller().header("RUN-B", by=OTHER_RUNNER).header("RUN-A").story
    assert judge_start(story, TRUST, "RUN-B")[0] is StartVerdict.WON
    verdict, has_it = judge_start(story, TRUST, "RUN-A")
    assert verdict is StartVerdict.LOST
    assert has_it is not None
    assert has_it.run_id == "RUN-B"


@pytest.mark.spec("ISS-3")
def test_a_withdrawn_header_wins_nothing_and_counts_as_no_attempt() -> None:
    story = Teller().header("RUN-A", attempt=4, withdrawn=True).header("RUN-B", attempt=2).story
    assert judge_start(story, TRUST, "RUN-B")[0] is StartVerdict.WON
    assert attempts(read_trails(story, TRUST)) == 2


@pytest.mark.spec("ISS-3")
def test_the_loser_stays_lost_when_the_winner_ends_even_if_it_never_said_so() -> None:
    teller = Teller().header("RUN-A").header("RUN-B", by=OTHER_RUNNER).ended("RUN-A")
    trails = read_trails(teller.story, TRUST)
    assert [trail.is_withdrawn for trail in trails] == [False, True]
    assert holder(trails) is None
    teller.header("RUN-C", attempt=2)
    assert judge_start(teller.story, TRUST, "RUN-C")[0] is StartVerdict.WON


@pytest.mark.spec("ISS-3", "ISS-7")
def test_whoever_began_while_another_run_was_open_has_lost_even_if_the_first_header_was_deleted() -> None:
    teller = Teller().header("RUN-A").header("RUN-B", by=OTHER_RUNNER).ended("RUN-A").forget(0)
    assert [trail.is_withdrawn for trail in read_trails(teller.story, TRUST)] == [False, True]


@pytest.mark.spec("ISS-3")
@pytest.mark.parametrize("lags", [True, False])
def test_no_start_on_a_list_that_lags_or_lacks_the_header(lags: bool) -> None:
    story = Teller().header("RUN-A").story
    short = story._replace(issue=story.issue._replace(comment_count=2)) if lags else story
    assert judge_start(short, TRUST, "RUN-A" if lags else "RUN-B")[0] is StartVerdict.UNSURE


@pytest.mark.spec("ISS-3")
@pytest.mark.parametrize("author", [STRANGER, WRITER])
def test_a_header_of_anybody_but_a_runner_account_is_none(author: object) -> None:
    story = Teller().header("RUN-A", attempt=9, by=author).header("RUN-B").story  # type: ignore[arg-type]
    assert judge_start(story, TRUST, "RUN-B")[0] is StartVerdict.WON
    assert attempts(read_trails(story, TRUST)) == 1


@pytest.mark.spec("ISS-3")
@pytest.mark.parametrize(
    ("minutes", "active", "task", "live"),
    [(30, False, False, True), (31, False, False, False), (31, True, False, True), (31, False, True, True)],
)
def test_a_run_is_live_here_for_a_task_or_by_a_sign_within_the_ttl(
    minutes: int, active: bool, task: bool, live: bool
) -> None:
    teller = Teller().header("RUN-A").wait(100).mark(MarkKind.PROGRESS, "progress:RUN-A", run_id="RUN-A")
    (trail,) = read_trails(teller.story, TRUST)
    ours = frozenset({"RUN-A"})
    signs = LifeSigns(at(teller.minute + minutes), TTL, ours if active else frozenset(), ours if task else frozenset())
    assert is_live(trail, signs) is live


@pytest.mark.spec("ISS-3")
def test_a_run_whose_end_is_shown_is_not_live_even_if_it_is_active_here() -> None:
    teller = Teller().ran("RUN-A")
    (trail,) = read_trails(teller.story, TRUST)
    assert not is_live(trail, LifeSigns(at(teller.minute), TTL, frozenset({"RUN-A"})))


@pytest.mark.spec("ISS-7")
def test_deleting_comments_resets_no_count() -> None:
    teller = Teller().ran("RUN-A", 1).ran("RUN-B", 5)
    teller.forget(2)
    assert attempts(read_trails(teller.story, TRUST)) == 5
    story = teller.story._replace(comments=teller.story.comments[:2])
    assert attempts(read_trails(story, TRUST)) == 1, "what was never read is not known"
    assert attempts(read_trails(story, TRUST), known=5) == 5, "but runs/ knows"
    only_the_end = teller.story._replace(comments=teller.story.comments[3:])
    assert attempts(read_trails(only_the_end, TRUST)) == 1, "an end tells of at least one run"


@pytest.mark.spec("ISS-2", "ISS-9")
@pytest.mark.parametrize(
    ("outcome", "label"),
    [
        ("needs_input", IssueLabel.BLOCKED),
        ("failed", IssueLabel.BLOCKED),
        ("awaiting_acceptance", IssueLabel.RUNNING),
        ("from the future", IssueLabel.BLOCKED),
    ],
)
def test_the_label_that_an_end_leaves(outcome: str, label: IssueLabel) -> None:
    story = Teller().header("RUN-A").ended("RUN-A", outcome).story
    stop = last_stop(story, TRUST, read_trails(story, TRUST))
    assert stop is not None
    assert stop.label is label
    by_header = Teller().header("RUN-A", ended=outcome).story
    stop = last_stop(by_header, TRUST, read_trails(by_header, TRUST))
    assert stop is not None
    assert stop.label is label, "an end that only the header tells of is one, too"


@pytest.mark.spec("ISS-9")
def test_an_end_may_leave_another_label_and_the_first_one_counts() -> None:
    story = Teller().header("RUN-A").ended("RUN-A", "awaiting_acceptance", label="").ended("RUN-A").story
    stop = last_stop(story, TRUST, read_trails(story, TRUST))
    assert stop is not None
    assert (stop.label, stop.outcome) == (IssueLabel.NONE, RunOutcome.AWAITING_ACCEPTANCE)


@pytest.mark.spec("ISS-9")
def test_a_header_that_says_accepted_is_believed_after_the_result() -> None:
    story = Teller().header("RUN-A", ended="accepted").ended("RUN-A", "awaiting_acceptance").story
    assert [trail.stop.label for trail in read_trails(story, TRUST) if trail.stop] == [IssueLabel.RUNNING]


@pytest.mark.spec("ISS-5")
def test_a_block_without_a_run_is_an_end_of_its_own() -> None:
    story = Teller().ran("RUN-A").mark(MarkKind.BLOCKED, "limit:1", RUNNER, reason_code="ISSUE_RETRY_LIMIT").story
    stop = last_stop(story, TRUST, read_trails(story, TRUST))
    assert stop is not None
    assert (stop.label, stop.reason_code) == (IssueLabel.BLOCKED, "ISSUE_RETRY_LIMIT")
