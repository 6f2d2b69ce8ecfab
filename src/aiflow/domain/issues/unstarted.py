"""What an issue says while no run of it can begin (ISS-3, ISS-5, ISS-12): blocked for want of a run id, else a note.

Each cause is reported once for each wish: asking again gets it again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.claims import NO_RUNNER
from aiflow.domain.issues.causes import blocked_facts, no_run_key
from aiflow.domain.issues.marks import MarkKind
from aiflow.domain.issues.standing import Reading, stand
from aiflow.domain.issues.view import Post
from aiflow.domain.lifecycle import IssueLabel, RunOutcome
from aiflow.domain.request import RequestStatus

if TYPE_CHECKING:
    from aiflow.domain.claims import NotStarted
    from aiflow.domain.issues.view import IssueView


def unstarted_post(view: IssueView, why: NotStarted) -> Post | None:
    """Return the note for a start that failed; None if it was posted, or the issue waits for none any more.

    It names no run: none began, and it counts as no attempt.
    """
    standing = stand(view)
    if standing.status is not RequestStatus.READY or standing.kept is not None or standing.wish is None:
        return None
    if why.is_blocking:
        facts = {"about": "not_started", "ended": RunOutcome.NEEDS_INPUT.value, "label": IssueLabel.BLOCKED.value}
        post = Post(MarkKind.BLOCKED, no_run_key(standing.wish), {**facts, **blocked_facts(why.reason_code)})
    else:
        facts = {"about": "no_runner" if why.reason_code == NO_RUNNER else "not_started"}
        facts["reason_code"] = why.reason_code
        post = Post(MarkKind.NOTE, f"waiting:{standing.wish.id}:{why.reason_code}", facts)
    return None if post.key in Reading(view).keys else post
