"""What people want of an issue (ISS-6, ISS-8, ISS-10): the newest of their labels and commands counts.

The history since a moment is read in its order. aiflow's own label changes are no wishes, and they are known by what
they do, not by who did them: a person who works with a personal token is the same account.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.issues.commands import CommandName, find_commands
from aiflow.domain.issues.labels import ASKING, agent_label, agent_labels
from aiflow.domain.issues.trust import last_event
from aiflow.domain.lifecycle import IssueLabel

if TYPE_CHECKING:
    from collections.abc import Container, Iterator
    from datetime import datetime

    from aiflow.domain.issues.commands import SlashCommand
    from aiflow.domain.issues.issue import HistoryEvent, IssueComment, Story
    from aiflow.domain.issues.trust import Trust

_NONE, _RETRY, _RUNNING, _BLOCKED = IssueLabel.NONE, IssueLabel.RETRY, IssueLabel.RUNNING, IssueLabel.BLOCKED
_DECIDING = {CommandName.RETRY: _RETRY, CommandName.CANCEL: _NONE}


class LabelWish(NamedTuple):
    """What somebody who may decide wants the label to be; `is_firm` if it holds whatever labels are there."""

    label: IssueLabel
    at: datetime
    id: str
    is_firm: bool = True
    is_shown: bool = True


class Wishes(NamedTuple):
    """The newest wish, and every wish for a run."""

    wish: LabelWish | None
    asks: tuple[LabelWish, ...] = ()


class Window(NamedTuple):
    """Which part of the history counts: since a moment, and whether a run is on, which no wish for a run replaces.

    `expected` is the label that the issue should have without any wish. What people asked before `commands_since`, when
    the repository was not watched yet, is nothing.
    """

    since: datetime | None
    expected: IssueLabel
    is_running: bool = False
    commands_since: datetime | None = None

    def has(self, at: datetime) -> bool:
        """Return whether a moment is in it; what led to a run may be of the same second as its header."""
        return self.since is None or (at > self.since if self.is_running else at >= self.since)


def refusal_key(wish_id: str) -> str:
    """Return the key of the comment that refuses a wish."""
    return f"refusal:{wish_id}"


def find_wishes(story: Story, trust: Trust, window: Window, answered: Container[str]) -> Wishes:
    """Read what people want since a moment; a command that was refused is none any more."""
    wish: LabelWish | None = None
    asks: list[LabelWish] = []
    for moment in _moments(story, trust, window, answered):
        if isinstance(moment, LabelWish) and moment.label in ASKING:
            asks.append(moment)
            wish = wish if window.is_running else moment
        elif isinstance(moment, LabelWish):
            wish = moment
        else:
            newer = _followed(wish, moment, trust, window)
            is_ask = newer is not None and newer.id == _id(moment) and newer.label in ASKING
            asks += [newer] if newer is not None and is_ask else []
            wish = wish if is_ask and window.is_running else newer
    known = agent_labels(story.issue.labels)
    present = frozenset(label for label in known if label is window.expected or _counts(story, trust, label))
    asks = [ask for ask in asks if ask.is_firm or ask.label in present]
    return Wishes(wish if wish is not None and _holds(wish, present, window) else None, tuple(asks))


def asking_comments(
    story: Story, trust: Trust, since: datetime | None
) -> Iterator[tuple[IssueComment, tuple[SlashCommand, ...]]]:
    """Yield the comments with commands; on an issue that aiflow has nothing to do with they are another bot's."""
    is_ours = any(agent_label(event.label) for event in story.events) or any(trust.marks(story))
    for comment in story.comments if is_ours else ():
        if not comment.is_gone and (since is None or comment.created_at >= since):
            commands = find_commands(comment.body)
            if commands:
                yield comment, commands


def _moments(
    story: Story, trust: Trust, window: Window, answered: Container[str]
) -> Iterator[LabelWish | HistoryEvent]:
    """Yield the commands and label events of a window in their order; in one second a command comes last."""
    commands = [
        LabelWish(_DECIDING[command.name], comment.created_at, f"comment:{comment.id}", is_shown=False)
        for comment, said in asking_comments(story, trust, window.commands_since)
        if window.has(comment.created_at)
        and trust.may_decide(comment.author)
        and refusal_key(f"comment:{comment.id}") not in answered
        for command in [each for each in said if each.name in _DECIDING][-1:]
    ]
    events = [event for event in story.events if window.has(event.at)]
    moments: list[LabelWish | HistoryEvent] = [*events, *commands]
    for moment in sorted(moments, key=lambda each: (each.at, isinstance(each, LabelWish))):
        if isinstance(moment, LabelWish):
            yield moment
        elif moment.kind == "closed":
            yield LabelWish(_NONE, moment.at, _id(moment))
        elif moment.kind in ("labeled", "unlabeled") and agent_label(moment.label) and trust.may_decide(moment.actor):
            yield moment


def _followed(wish: LabelWish | None, event: HistoryEvent, trust: Trust, window: Window) -> LabelWish | None:
    """Return what is wished after a label was set or taken away."""
    label = agent_label(event.label) or _NONE
    if event.kind == "unlabeled":
        is_undone = wish is not None and wish.label is label and wish.is_shown and wish.label is not _NONE
        is_first = wish is None and label is window.expected
        return LabelWish(_NONE, event.at, _id(event), is_firm=False) if is_undone or is_first else wish
    if label is _RUNNING or (label is _BLOCKED is window.expected and trust.is_runner(event.actor)):
        return wish
    is_answer = wish is not None and wish.label in ASKING and not wish.id.startswith("label:")
    if wish is not None and is_answer and label in ASKING and trust.is_runner(event.actor):
        return wish._replace(is_shown=True)
    return LabelWish(label, event.at, _id(event), is_firm=False)


def _holds(wish: LabelWish, present: frozenset[IssueLabel], window: Window) -> bool:
    """Return whether the labels that are there agree with a wish by label."""
    if wish.is_firm:
        return True
    if wish.label:
        return wish.label in present
    return window.expected not in present if window.is_running else not present


def _counts(story: Story, trust: Trust, label: IssueLabel) -> bool:
    """Return whether a label that is there was set by somebody who may decide, as far as that is known yet."""
    event = last_event(story, "labeled", label)
    return event is None or trust.may_decide(event.actor)


def _id(event: HistoryEvent) -> str:
    return f"label:{event.id}"
