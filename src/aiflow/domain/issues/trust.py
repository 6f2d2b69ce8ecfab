"""Whose word counts on an issue (ISS-2, ISS-3, ISS-6): rights, runner accounts, listed bots; and edits of its text."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.issues.issue import Right
from aiflow.domain.issues.labels import agent_label
from aiflow.domain.issues.marks import find_mark, is_marked

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from aiflow.domain.issues.issue import Account, HistoryEvent, IssueComment, Story
    from aiflow.domain.issues.marks import CommentMark
    from aiflow.domain.lifecycle import IssueLabel

# An account of a list in the settings: its login, and the id it had when the list was read.
Listed = tuple[str, int]
# GitHub writes an issue's own time a moment after that of the event that changed it.
SLACK = timedelta(seconds=2)


class Trust(NamedTuple):
    """Who may decide: what each account may do (by id), the runner accounts, and the bots of the settings."""

    rights: Mapping[int, Right]
    runners: frozenset[Listed] = frozenset()
    bots: frozenset[Listed] = frozenset()

    def is_runner(self, account: Account | None) -> bool:
        """Return whether an account is one that runners write with: its marks are believed."""
        return account is not None and (account.login.lower(), account.id) in self.runners

    def may_decide(self, account: Account | None) -> bool:
        """Return whether an account's labels and commands count: write permission, a listed bot, a runner account."""
        if account is None:
            return False
        if self.is_runner(account) or (account.login.lower(), account.id) in self.bots:
            return True
        return not account.is_bot and self.rights.get(account.id, Right.NONE) >= Right.WRITE

    def known_to_decide(self, account: Account | None) -> bool | None:
        """Return whether an account may decide; None if that was not asked, since nothing depends on it."""
        is_person = account is not None and not account.is_bot and account.id not in self.rights
        return None if is_person and not self.may_decide(account) else self.may_decide(account)

    def marks(self, story: Story) -> Iterator[tuple[IssueComment, CommentMark]]:
        """Yield the marks that are believed, with their comments."""
        for comment in story.comments:
            mark = find_mark(comment.body) if self.is_runner(comment.author) else None
            if mark is not None:
                yield comment, mark

    def decisions(self, story: Story, since: datetime | None) -> Iterator[IssueComment]:
        """Yield what people who may decide wrote since a moment."""
        return (each for each in story.comments if is_word(each, since) and self.may_decide(each.author))


def is_word(comment: IssueComment, since: datetime | None) -> bool:
    """Return whether a comment is a person's, not before a moment; aiflow's own are known by their marks (ISS-6)."""
    is_theirs = not comment.is_gone and not is_marked(comment.body)
    return is_theirs and (since is None or comment.created_at >= since)


class Approval(NamedTuple):
    """What made an issue ready: a label event or a comment, and when."""

    id: str
    at: datetime


class SeenText(NamedTuple):
    """The text an issue had when an approval was first seen; an empty hash if it could have been changed before."""

    approval: str
    text_hash: str


def last_event(story: Story, kind: str, label: IssueLabel) -> HistoryEvent | None:
    """Return the last time that a label was set (`labeled`) or taken away (`unlabeled`)."""
    return next((e for e in reversed(story.events) if e.kind == kind and agent_label(e.label) is label), None)


def text_hash(body: str) -> str:
    """Return the fingerprint of a body, as Run Headers and approvals name it."""
    return hashlib.sha256(body.replace("\r\n", "\n").encode("utf-8", "surrogatepass")).hexdigest()[:16]


def seen_text(story: Story, trust: Trust, approval: Approval, before: SeenText | None) -> SeenText:
    """Return the text that was there when an approval was seen: as it was remembered, or as it is at this first sight.

    Only its author and people with write permission can edit an issue, and GitHub names neither who edited a body nor
    when: whatever happens to the issue later hides it. So at first sight the body of an author without that permission
    is trusted only if nothing has happened since the approval, or if a run had this very text before.
    """
    if before is not None and before.approval == approval.id:
        return before
    body = text_hash(story.issue.body)
    known = {before.text_hash if before else "", *(mark.text("text_hash") for _, mark in trust.marks(story))}
    is_sure = body in known or trust.may_decide(story.issue.author)
    return SeenText(approval.id, body if is_sure or story.issue.updated_at <= approval.at + SLACK else "")


def is_text_changed(story: Story, trust: Trust, approval: Approval, seen: SeenText) -> bool:
    """Return whether title or body were changed after an approval by one who may not decide (ISSUE_TEXT_CHANGED)."""
    renamed = [event for event in story.events if event.kind == "renamed" and event.at >= approval.at]
    if any(not trust.may_decide(event.actor) for event in renamed):
        return True
    return not trust.may_decide(story.issue.author) and seen.text_hash != text_hash(story.issue.body)
