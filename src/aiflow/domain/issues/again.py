"""One more look before the first agent call (ISS-3): whether the issue is still the run's, wanted, and approved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.claims import Refusal
from aiflow.domain.issues.headers import holder, is_live, read_header, read_trails
from aiflow.domain.issues.results import awaits_acceptance
from aiflow.domain.issues.standing import stand
from aiflow.domain.issues.trust import text_hash
from aiflow.domain.issues.view import OwnRun
from aiflow.domain.lifecycle import RunOutcome

if TYPE_CHECKING:
    from aiflow.domain.issues.headers import RunTrail
    from aiflow.domain.issues.view import IssueView


def as_own(view: IssueView, run_id: str) -> IssueView:
    """Look at an issue as the checkout that has just claimed it for a run: that run may not be in `runs/` yet."""
    if view.own(run_id) is not None:
        return view
    return view._replace(runs=(*view.runs, OwnRun(run_id, RunOutcome.ACTIVE, is_working=True)))


def unbegun(view: IssueView) -> str | None:
    """Return the run that has an issue by a header of ours, but never began: GitHub's silence cut its start off.

    Nothing of it is left here, so it never will. A run that began is remembered no more.
    """
    has_it, started = holder(read_trails(view.story, view.trust)), view.memory.started
    is_ours = has_it is not None and has_it.run_id == started
    return started if is_ours and view.own(started) is None else None


def silent_run(view: IssueView) -> str | None:
    """Return the run of another checkout that has an issue and gives no sign of life; None if there is none."""
    has_it = holder(read_trails(view.story, view.trust))
    is_silent = has_it is not None and view.own(has_it.run_id) is None and not is_live(has_it, view.signs)
    return has_it.run_id if has_it is not None and is_silent else None


def why_not_begin(view: IssueView, run_id: str) -> Refusal | None:
    """Say why a run that claimed an issue may call no agent after all; None if it may."""
    view = as_own(view, run_id)
    has_it, standing = holder(read_trails(view.story, view.trust)), stand(view)
    if has_it is None and awaits_acceptance(standing, run_id):  # it continues only to be merged
        return None
    if has_it is None or has_it.run_id != run_id:
        return Refusal("LOCK_MISMATCH", (("holder", has_it.run_id if has_it else "-"),))
    if standing.wish is not None:
        return Refusal("CANCELLED")
    if _is_other_text(view, has_it):
        return Refusal("ISSUE_TEXT_CHANGED", (("approval", has_it.first.created_at.isoformat()),))
    return None


def _is_other_text(view: IssueView, trail: RunTrail) -> bool:
    """Return whether title or body were changed since the Run Header by somebody who may not decide."""
    story, trust = view.story, view.trust
    renamed = [each for each in story.events if each.kind == "renamed" and each.at >= trail.first.created_at]
    if any(not trust.may_decide(event.actor) for event in renamed):
        return True
    header = read_header(trail.header.body) if trail.header is not None else None
    is_same = header is None or header.text_hash == text_hash(story.issue.body)
    return not is_same and not trust.may_decide(story.issue.author)
