"""An issue's story (ISS-2, WEB-1): what people and aiflow said and did there, in one order of time.

What anybody wrote is text: marks are left out, and what a reader on GitHub does not see is not shown.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.issues.marks import MarkKind, find_mark
from aiflow.domain.issues.prose import readable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from aiflow.domain.issues.issue import Account, HistoryEvent, IssueComment, Story
    from aiflow.domain.issues.trust import Trust

# What is folded on GitHub stands on the run's own page, or is for machines; small print is no smaller here.
_FOLDED = re.compile(r"^<details>.*?^</details>[ \t]*$\n?", re.MULTILINE | re.DOTALL)
_SMALL = re.compile(r"</?sub>")
_NOBODY = "ghost"
_EVENTS = {"labeled": "labelled", "unlabeled": "unlabelled", "closed": "closed", "reopened": "reopened"}


class StoryKind(StrEnum):
    """What a line of a story is about: the first are people's, or label changes of anybody, the others aiflow's."""

    OPENED = "opened"
    COMMENT = "comment"
    LABELLED = "labelled"
    UNLABELLED = "unlabelled"
    CLOSED = "closed"
    REOPENED = "reopened"
    RENAMED = "renamed"
    STARTED = "started"
    WITHDRAWN = "withdrawn"
    PROGRESS = "progress"
    BLOCKED = "blocked"
    RESULT = "result"
    REFUSAL = "refusal"
    REMINDER = "reminder"
    NOTE = "note"


class StoryLine(NamedTuple):
    """One thing that happened: when, who, and what was said; `may_decide` if that person's word counts.

    It is None for people about whom GitHub was not asked, since nothing depends on what they said.
    """

    at: datetime
    kind: StoryKind
    who: str
    text: str = ""
    label: str = ""
    run_id: str = ""
    url: str = ""
    is_ours: bool = False
    may_decide: bool | None = False
    is_gone: bool = False


_OF_MARK = {MarkKind.RUN_HEADER: StoryKind.STARTED}


def tell(story: Story, trust: Trust) -> tuple[StoryLine, ...]:
    """Return an issue's story; in one second labels come first, for ids of comments and events are not comparable."""
    issue = story.issue
    opened = StoryLine(issue.created_at, StoryKind.OPENED, _name(issue.author), url=issue.url)
    opened = opened._replace(may_decide=trust.known_to_decide(issue.author))
    lines = [*_events(story, trust), *(_comment(each, trust) for each in story.comments)]
    return (opened, *sorted(lines, key=lambda line: line.at))


def _events(story: Story, trust: Trust) -> Iterator[StoryLine]:
    for event in story.events:
        kind = "renamed" if event.kind == "renamed" else _EVENTS.get(event.kind)
        if kind is not None:
            yield _event(event, StoryKind(kind), trust)


def _event(event: HistoryEvent, kind: StoryKind, trust: Trust) -> StoryLine:
    is_ours, may = trust.is_runner(event.actor), trust.known_to_decide(event.actor)
    return StoryLine(event.at, kind, _name(event.actor), label=event.label or "", is_ours=is_ours, may_decide=may)


def _comment(comment: IssueComment, trust: Trust) -> StoryLine:
    mark = find_mark(comment.body) if trust.is_runner(comment.author) else None
    if mark is None:
        kind, text, run_id = StoryKind.COMMENT, comment.body, ""
    else:
        kind = _OF_MARK.get(mark.kind) or StoryKind(mark.kind.value)
        kind = StoryKind.WITHDRAWN if kind is StoryKind.STARTED and mark.facts.get("withdrawn") else kind
        text, run_id = _SMALL.sub("", _FOLDED.sub("", comment.body)), mark.text("run_id") or ""
    return StoryLine(
        comment.created_at,
        kind,
        _name(comment.author),
        readable(text).strip(),
        run_id=run_id,
        url=comment.url,
        is_ours=mark is not None,
        may_decide=trust.known_to_decide(comment.author),
        is_gone=comment.is_gone,
    )


def _name(account: Account | None) -> str:
    return account.login if account is not None else _NOBODY
