"""An issue as it is shown to people here (ISS-2): what aiflow makes of it, and its story."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.issues.requests import dependencies_of, request_of
from aiflow.domain.issues.standing import Reading
from aiflow.domain.issues.telling import tell

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiflow.domain.issues.issue import Issue
    from aiflow.domain.issues.requests import Dependencies
    from aiflow.domain.issues.telling import StoryLine
    from aiflow.domain.issues.view import IssueView
    from aiflow.domain.request import Request


class ShownIssue(NamedTuple):
    """An issue, the request it is, what it waits for, how many of its runs are used, and its story."""

    issue: Issue
    request: Request
    waits: Dependencies
    attempts: int
    of: int
    lines: tuple[StoryLine, ...]


def show_issue(view: IssueView, repo: str, known: Mapping[int, Issue]) -> ShownIssue:
    """Sum up all that is known of an issue here."""
    story = view.story
    return ShownIssue(
        story.issue,
        request_of(view, repo, known),
        dependencies_of(story, repo, known),
        Reading(view).attempts,
        view.rules.of,
        tell(story, view.trust),
    )
