"""An issue as a request (ISS-2): `GH-<n>`, in one order with the files, and what its next run is given.

The body and what people said are given as they were written: whatever an agent gets is cleaned in one place, which also
counts what was hidden (`domain/untrusted/calls.py`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.claims import Refusal
from aiflow.domain.issue_ways import issue_number, request_id_of
from aiflow.domain.issues.commands import words_of
from aiflow.domain.issues.headers import RunHeader
from aiflow.domain.issues.labels import agent_label, closed_status, priority_of
from aiflow.domain.issues.prose import lines_with, readable, readable_line
from aiflow.domain.issues.standing import Reading, stand
from aiflow.domain.issues.tending import overdue_since
from aiflow.domain.issues.trust import is_word, text_hash
from aiflow.domain.request import DEFAULT_PRIORITY, Request, RequestId, RequestStatus

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from aiflow.domain.issues.issue import Blocker, Issue, Story
    from aiflow.domain.issues.view import IssueView

_NUMBERS = r"#[1-9][0-9]{0,9}(?![0-9])"
_DEPENDS = re.compile(
    rf"^[ \t]*(?:[-*+][ \t]+)?(?:\[[ xX]\][ \t]+)?(?P<it>depends on:?[ \t]+{_NUMBERS}[^\n]*)",
    re.MULTILINE | re.IGNORECASE,
)
_NUMBER = re.compile(r"(?<![\w/#])#([1-9][0-9]{0,9})(?![\w])")


class Dependencies(NamedTuple):
    """What an issue waits for.

    Issues of its own repository, open ones of others (`owner/name#5`), how many could not be read; and those that it no
    longer waits for because they were closed as not planned.
    """

    waits_for: tuple[RequestId, ...] = ()
    elsewhere: tuple[str, ...] = ()
    unread: int = 0
    freed: tuple[str, ...] = ()


def request_of(view: IssueView, repo: str, known: Mapping[int, Issue]) -> Request:
    """Return an issue as selection sees it; `known` are the repository's issues by number."""
    read = Reading(view)
    issue, standing = view.story.issue, stand(view)
    waiting = dependencies_of(view.story, repo, known)
    held = _held_elsewhere(waiting) if standing.status is RequestStatus.READY else None
    return Request(
        id=request_id_of(issue.number),
        where=issue.url,
        title=title_of(issue),
        priority=priority_of(issue.labels) or DEFAULT_PRIORITY,
        status=standing.status,
        depends_on=waiting.waits_for,
        labels=tuple(label for label in issue.labels if agent_label(label) is None),
        created_at=issue.created_at,
        updated_at=issue.updated_at,
        kept=standing.kept or held,
        freed=waiting.freed,
        is_overdue=overdue_since(read, standing) is not None,
    )


def title_of(issue: Issue) -> str:
    """Return an issue's title as it is shown and given to agents."""
    return readable_line(issue.title) or f"#{issue.number}"


def _held_elsewhere(waiting: Dependencies) -> Refusal | None:
    """Say what an issue waits for that is no request here: issues of other repositories, and what cannot be read."""
    if not waiting.elsewhere and not waiting.unread:
        return None
    form = "both" if waiting.elsewhere and waiting.unread else "elsewhere" if waiting.elsewhere else "unread"
    ids = ", ".join((*waiting.elsewhere, *("?" for _ in range(waiting.unread))))
    names = ", ".join(waiting.elsewhere)
    return Refusal("DEPENDS_NOT_DONE", (("form", form), ("ids", ids), ("names", names), ("count", str(waiting.unread))))


def dependencies_of(story: Story, repo: str, known: Mapping[int, Issue]) -> Dependencies:
    """Read what an issue waits for: GitHub's own relation, and "Depends on #n" lines of its body.

    That a blocker is closed does not change the issue that it blocks. So the blockers of its own repository are as the
    repository's list has them now, or as they were when they were read if that was later.
    """
    blockers = [_newest(each, repo, known) for each in story.blockers or ()]
    own = [blocker for blocker in blockers if blocker.repo.lower() == repo.lower()]
    named = [number for number in _named(story.issue.body) if number not in {blocker.number for blocker in own}]
    closed = {n: known[n].state_reason for n in named if n in known and not known[n].is_open}
    freed = [n for n, reason in closed.items() if closed_status(reason) is RequestStatus.ARCHIVED]
    waits_for = [*(blocker.number for blocker in own if blocker.is_open), *(n for n in named if n not in freed)]
    others = [blocker for blocker in blockers if blocker not in own]
    dropped = [b for b in blockers if not b.is_open and closed_status(b.state_reason) is RequestStatus.ARCHIVED]
    return Dependencies(
        waits_for=tuple(request_id_of(number) for number in dict.fromkeys(waits_for)),
        elsewhere=tuple(f"{blocker.repo}#{blocker.number}" for blocker in others if blocker.is_open),
        unread=max(story.issue.blocker_count - len(blockers), int(story.blockers is None), 0),
        freed=(
            *(f"#{b.number}" if b in own else f"{b.repo}#{b.number}" for b in dropped),
            *(f"#{number}" for number in freed),
        ),
    )


def unmet(story: Story, repo: str, known: Mapping[int, Issue]) -> Refusal | None:
    """Say what an issue that was just read waits for: what is open or not there, here or elsewhere; None if nothing.

    Selection knew its blockers as they were before, and still may know them so.
    """
    waiting = dependencies_of(story, repo, known)
    own = (each for each in story.blockers or () if each.repo.lower() == repo.lower())
    blocking = {each.number for each in own if _newest(each, repo, known).is_open}
    numbers = [number for each in waiting.waits_for if (number := issue_number(each)) is not None]
    here = [n for n in numbers if n in blocking or n not in known or known[n].is_open]
    ids = ", ".join(map(request_id_of, here))
    return Refusal("DEPENDS_NOT_DONE", (("ids", ids),)) if here else _held_elsewhere(waiting)


def _newest(blocker: Blocker, repo: str, known: Mapping[int, Issue]) -> Blocker:
    """Return a blocker as it was seen last: with the issue that it blocks, or in the list of its repository."""
    listed = known.get(blocker.number) if blocker.repo.lower() == repo.lower() else None
    is_older = listed is None or (blocker.updated_at is not None and listed.updated_at < blocker.updated_at)
    if listed is None or is_older:
        return blocker
    return blocker._replace(is_open=listed.is_open, state_reason=listed.state_reason)


def start_header(view: IssueView, run_id: str, runner: str) -> RunHeader:
    """Return the Run Header of the next run of an issue that is ready."""
    standing, of = stand(view), view.rules.of
    wish = standing.wish
    trigger = "" if wish is None else "/retry" if wish.is_firm else wish.label.value
    return RunHeader(run_id, runner, Reading(view).attempts + 1, of, trigger, text_hash(view.story.issue.body))


def said_since(view: IssueView, since: datetime | None, *, with_strangers: bool = False) -> tuple[str, ...]:
    """Return what people said since a moment, without their commands; of those who may not decide only if asked for."""
    counted = (c for c in view.story.comments if with_strangers or view.trust.may_decide(c.author))
    words = (words_of(comment.body) for comment in counted if is_word(comment, since))
    return tuple(each for each in words if each)


def _named(body: str) -> tuple[int, ...]:
    """Return the issues that a body names in "Depends on #n" lines, each once."""
    lines = lines_with(_DEPENDS, readable(body), in_lists=True)
    return tuple(dict.fromkeys(int(number) for match in lines for number in _NUMBER.findall(match["it"])))
