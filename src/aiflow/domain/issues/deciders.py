"""Whose rights matter on an issue (ISS-2, ISS-6): GitHub is asked only about these people's rights.

Those who set an agent label, renamed it, wrote a command, opened it, or said something that a stopped run's next one
would hear. Other people's words change no decision, and asking costs a call for each person.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.issues.headers import last_stop, read_trails
from aiflow.domain.issues.labels import agent_label
from aiflow.domain.issues.trust import is_word, last_event
from aiflow.domain.issues.wishes import asking_comments
from aiflow.domain.lifecycle import IssueLabel

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from aiflow.domain.issues.issue import Account, Story
    from aiflow.domain.issues.trust import Trust


def deciders(story: Story, trust: Trust) -> tuple[Account, ...]:
    """Return the people whose rights change what is done about an issue, each once; its author's are known already."""
    found = dict.fromkeys((story.issue.author, *_askers(story, trust), *_speakers(story, trust)))
    return tuple(each for each in found if each is not None and not each.is_bot)


def _askers(story: Story, trust: Trust) -> Iterator[Account | None]:
    """Yield who changed an agent label or the title, and who wrote a command."""
    yield from (event.actor for event in story.events if agent_label(event.label) or event.kind == "renamed")
    yield from (comment.author for comment, _ in asking_comments(story, trust, None))


def _speakers(story: Story, trust: Trust) -> Iterator[Account | None]:
    """Yield those who wrote during or after a run, and those who may have changed the text of a stranger's issue."""
    since = _last_turn(story, trust)
    if since is not None:
        yield from (comment.author for comment in story.comments if is_word(comment, since))
    asked = _first_asked(story, trust)
    if asked is not None and not trust.may_decide(story.issue.author):
        yield from (event.actor for event in story.events if event.at >= asked)
        yield from (comment.author for comment in story.comments if comment.updated_at >= asked)


def _last_turn(story: Story, trust: Trust) -> datetime | None:
    """Return when the newest run began or, if that is earlier, whatever else somebody has to decide about."""
    trails = [trail for trail in read_trails(story, trust) if not trail.is_withdrawn]
    stop, label = last_stop(story, trust, trails), last_event(story, "labeled", IssueLabel.BLOCKED)
    turns = (trails[-1].first.created_at if trails else None, stop and stop.at, label and label.at)
    return min(filter(None, turns), default=None)


def _first_asked(story: Story, trust: Trust) -> datetime | None:
    """Return when a run was asked for the first time: nothing before it can be an approval of the text."""
    labels = (event.at for event in story.events if agent_label(event.label))
    commands = (comment.created_at for comment, _ in asking_comments(story, trust, None))
    return min((*labels, *commands), default=None)
