"""Shapes of issues."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiflow.domain.backlog.selection import Barrier
from aiflow.domain.issue_ways import request_id_of
from aiflow.usecases.shapes.backlog import ENGLISH, describe

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aiflow.domain.issues.repository import LookedAfter
    from aiflow.domain.issues.showing import ShownIssue
    from aiflow.domain.issues.telling import StoryLine


def looked_shape(looked: LookedAfter) -> dict[str, Any]:
    """Shape what one look at the issues came to."""
    names = {
        "changed": looked.changed,
        "gone": looked.gone,
        "tended": looked.tended,
    }
    return {"is_full": looked.is_full, **{name: [request_id_of(n) for n in them] for name, them in names.items()}}


def shown_issue(shown: ShownIssue) -> dict[str, Any]:
    """`issues show --json`: the issue, what aiflow makes of it, and its story in order of time."""
    issue, request, kept = shown.issue, shown.request, shown.request.kept
    return {
        "request_id": request.id,
        "number": issue.number,
        "title": request.title,
        "url": issue.url,
        "author": issue.author.login if issue.author else None,
        "is_open": issue.is_open,
        "state_reason": issue.state_reason,
        "labels": list(issue.labels),
        "status": request.status.value,
        "priority": request.priority.value,
        "reason_code": kept.reason_code if kept else None,
        "detail": describe(Barrier(kept.reason_code, kept.facts), ENGLISH) if kept else None,
        "attempts": shown.attempts,
        "most_attempts": shown.of,
        "is_overdue": request.is_overdue,
        "depends_on": list(shown.waits.waits_for),
        "waits_elsewhere": list(shown.waits.elsewhere),
        "unreadable_blockers": shown.waits.unread,
        "freed": list(shown.waits.freed),
        "story": list(story_shape(shown.lines)),
    }


def story_shape(lines: Iterable[StoryLine]) -> Iterable[dict[str, Any]]:
    """Shape what happened on an issue; who wrote something may be anybody, so it is data and nothing else."""
    for line in lines:
        yield {
            "at": line.at.isoformat(),
            "kind": line.kind.value,
            "who": line.who,
            "is_ours": line.is_ours,
            "may_decide": line.may_decide,
            "is_gone": line.is_gone,
            "label": line.label or None,
            "run_id": line.run_id or None,
            "url": line.url or None,
            "text": line.text or None,
        }
