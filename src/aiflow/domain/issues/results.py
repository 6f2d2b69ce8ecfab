"""What follows a result (ISS-9): its acceptance is shown, the issue closed where that is wanted, its pull requests too.

The mark of a result names the pull request of its run, so the issue itself is the record. What this checkout remembers
of pull requests only saves calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.issues.headers import holder, last_stop
from aiflow.domain.issues.labels import closed_status
from aiflow.domain.issues.marks import MarkKind
from aiflow.domain.issues.standing import Reading
from aiflow.domain.issues.view import Amend, CloseIssue, ClosePull, JudgeMerge, NotePull, Post
from aiflow.domain.lifecycle import RunOutcome
from aiflow.domain.request import RequestStatus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiflow.domain.issues.issue import IssueComment
    from aiflow.domain.issues.marks import CommentMark
    from aiflow.domain.issues.standing import IssueStanding
    from aiflow.domain.issues.view import IssueView

    Result = tuple[IssueComment, CommentMark]

_ACCEPTED = RunOutcome.ACCEPTED


def results_of(view: IssueView) -> tuple[Result, ...]:
    """Return the results that an issue shows, in their order, each run's once."""
    found: dict[str, Result] = {}
    for comment, mark in view.trust.marks(view.story):
        if mark.kind is MarkKind.RESULT and mark.text("run_id"):
            found.setdefault(mark.key, (comment, mark))
    return tuple(found.values())


def shown_pull(view: IssueView, run_id: str) -> str | None:
    """Return the address of the pull request that a run's result names."""
    return next((mark.text("pull_url") for _, mark in results_of(view) if mark.text("run_id") == run_id), None)


def current_run(view: IssueView) -> str | None:
    """Return the run that an issue shows as the one that counts: at work, or the last one that ended; None if none."""
    read = Reading(view)
    has_it = holder(read.trails)
    if has_it is not None:
        return has_it.run_id
    stop = last_stop(view.story, view.trust, read.trails)
    return stop.run_id if stop is not None else None


def awaits_acceptance(standing: IssueStanding, run_id: str) -> bool:
    """Return whether an issue shows this run as finished, and nothing was asked for since."""
    stop, is_kept = standing.stop, standing.kept is not None or standing.wish is not None
    is_its = stop is not None and stop.run_id == run_id and stop.outcome is RunOutcome.AWAITING_ACCEPTANCE
    return is_its and not is_kept and standing.status in (RequestStatus.BLOCKED, RequestStatus.RUNNING)


def after_results(view: IssueView) -> Iterator[Amend | NotePull]:
    """Bring what the issue says about this checkout's runs in line with them, and them with what it says."""
    for comment, mark in results_of(view):
        own = view.own(mark.text("run_id"))
        if own is None:
            continue
        is_ours = comment.author == view.me and not comment.is_gone
        if own.outcome is _ACCEPTED and mark.text("ended") != _ACCEPTED and is_ours:
            yield Amend(comment.id, Post(mark.kind, mark.key, {**mark.facts, "ended": _ACCEPTED.value}))
        url = mark.text("pull_url")
        if url is not None and url != own.pull_url:
            yield NotePull(own.run_id, url)


def last_deeds(view: IssueView, standing: IssueStanding) -> Iterator[JudgeMerge | ClosePull | CloseIssue]:
    """Ask about a merge, and close what is over; last, so that a missing right keeps nothing else from being done."""
    yield from _judge(view, standing)
    results = results_of(view)
    newest = results[-1][1] if results else None
    for _, mark in results:
        number, run_id = mark.number("pull"), mark.text("run_id") or ""
        if newest is None or not number or number in view.memory.settled_pulls:
            continue
        # The checkout of the newest run closes what it replaces, that of an accepted run its own: no other does.
        own, is_replaced = view.own(newest.text("run_id")), mark is not newest
        if own is not None and is_replaced:
            yield ClosePull(number, run_id, "replaced", newest.text("pull_url") or view.story.issue.url)
        elif own is not None and own.outcome is _ACCEPTED:
            yield ClosePull(number, run_id, "accepted", view.story.issue.url)
    if view.rules.accept_closes and _awaits_close(view, standing):
        yield CloseIssue(standing.run_id or "")


def _awaits_close(view: IssueView, standing: IssueStanding) -> bool:
    """Return whether an issue whose run was accepted here is open only because it was not closed yet."""
    own = view.own(standing.stop.run_id) if standing.stop is not None else None
    is_waiting = standing.kept is not None and standing.kept.reason_code == "AWAITING_CLOSE"
    return view.story.issue.is_open and is_waiting and own is not None and own.outcome is _ACCEPTED


def _judge(view: IssueView, standing: IssueStanding) -> Iterator[JudgeMerge]:
    """Ask whether a merge on GitHub closed an issue whose run still waits here; once each time it is closed."""
    issue, run_id = view.story.issue, standing.stop.run_id if standing.stop is not None else None
    own = view.own(run_id)
    is_done = not issue.is_open and closed_status(issue.state_reason) is RequestStatus.DONE
    if own is not None and is_done and own.outcome is RunOutcome.AWAITING_ACCEPTANCE:
        closed = [event.id for event in view.story.events if event.kind == "closed"]
        deed = JudgeMerge(own.run_id, str(closed[-1] if closed else ""))
        if deed.key != view.memory.judged:
            yield deed
