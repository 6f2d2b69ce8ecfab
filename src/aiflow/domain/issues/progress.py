"""The sticky progress comment (ISS-4, ISS-9): who may write it, when it says something old, and its sign of life."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.issues.headers import holder, read_trails
from aiflow.domain.issues.marks import MarkKind, find_mark, write_mark
from aiflow.domain.lifecycle import RunOutcome

if TYPE_CHECKING:
    from datetime import datetime

    from aiflow.domain.issues.view import IssueView


def is_current(view: IssueView, run_id: str, *, is_active: bool) -> bool:
    """Return whether a run may still write its progress: while it works it has the issue, and no run came after it."""
    trails = read_trails(view.story, view.trust)
    has_it = holder(trails)
    if is_active:
        return has_it is not None and has_it.run_id == run_id
    begun = [trail.run_id for trail in trails if not trail.is_withdrawn]
    return begun[-1:] == [run_id]


def stale_progress(view: IssueView) -> str | None:
    """Return the ended run of this checkout whose end its progress comment does not show; None if there is none.

    A comment that is missing is worth writing only along with the run's end itself.
    """
    own = next((run for run in reversed(view.runs) if run.outcome is not RunOutcome.ACTIVE), None)
    if own is None or not is_current(view, own.run_id, is_active=False):
        return None
    marks = [mark for comment, mark in view.trust.marks(view.story) if not comment.is_gone]
    shown = next((m for m in marks if m.kind is MarkKind.PROGRESS and m.text("run_id") == own.run_id), None)
    if shown is not None:
        return own.run_id if shown.text("outcome") != own.outcome.value else None
    has_it = holder(read_trails(view.story, view.trust))
    return own.run_id if has_it is not None and has_it.run_id == own.run_id else None


def signed(body: str, at: datetime) -> str:
    """Write into a comment's mark when it was written: GitHub may take an edit that changes nothing for none."""
    mark = find_mark(body)
    if mark is None:
        return body
    words = body[: body.rindex("<!-- aiflow:")]
    return words + write_mark(mark._replace(facts={**mark.facts, "at": at.isoformat(timespec="seconds")}))
