"""GitHub as far as aiflow sees it: one repository with issues and all that hangs on them, people, and their deeds.

State only: no HTTP, no threads of its own, and the time it is given. `answering.py` is its API, `server.py` its port.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

# As GitHub's documentation has it; where it leaves something open, the reading that closes more.
CLOSING = re.compile(
    r"\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?)\b:?[\s*_`>(\[]*"
    r"(?:(?:octo/demo)?#|GH-|https://github\.com/octo/demo/issues/)(\d+)",
    re.IGNORECASE,
)
WRITERS = ("admin", "maintain", "write")
LABELLERS = (*WRITERS, "triage")


def system_clock() -> datetime:
    return datetime.now(UTC)


@dataclass
class User:
    login: str
    id: int
    permission: str = "none"
    is_bot: bool = False


@dataclass
class LabelRow:
    id: int
    name: str
    color: str = "ededed"
    description: str | None = None


@dataclass
class CommentRow:
    id: int
    number: int
    author: User | None
    body: str
    created_at: datetime
    updated_at: datetime
    reactions: list[tuple[str, str]] = field(default_factory=list)
    # The calls that have not listed it yet: a list may lag behind, for everybody or for all but its author.
    unseen: int = 0
    unseen_by_others: int = 0


@dataclass
class EventRow:
    id: int
    kind: str
    actor: User | None
    at: datetime
    label: LabelRow | None = None
    renamed: tuple[str, str] = ("", "")
    # The calls that have not listed it yet.
    unseen: int = 0


@dataclass
class IssueRow:
    number: int
    id: int
    title: str
    body: str
    author: User | None
    created_at: datetime
    updated_at: datetime
    is_open: bool = True
    reason: str | None = None
    closed_at: datetime | None = None
    labels: list[LabelRow] = field(default_factory=list)
    comments: list[CommentRow] = field(default_factory=list)
    events: list[EventRow] = field(default_factory=list)
    blocked_by: list[tuple[str, int]] = field(default_factory=list)
    is_pull: bool = False
    # "deleted" (410), "transferred" (301) or "" while it is here.
    gone: str = ""

    def label_names(self) -> list[str]:
        return [label.name for label in self.labels]


@dataclass
class PullRow:
    number: int
    head: str
    base: str
    title: str
    body: str
    author: User
    created_at: datetime
    is_open: bool = True
    merged_at: datetime | None = None
    merge_commit: str | None = None


@dataclass
class HookRow:
    id: int
    url: str
    events: list[str]
    is_active: bool = True
    deliveries: list[tuple[int, str, datetime, int]] = field(default_factory=list)


@dataclass
class Hub:
    """One repository, its people and their tokens. What a person does is a method that names who does it."""

    repo: str = "octo/demo"
    clock: Callable[[], datetime] = system_clock
    is_private: bool = False
    has_issues: bool = True
    has_dependencies: bool = True
    moved_to: str = ""
    users: dict[str, User] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)
    labels: dict[str, LabelRow] = field(default_factory=dict)
    rows: dict[int, IssueRow] = field(default_factory=dict)
    elsewhere: dict[tuple[str, int], tuple[bool, str | None]] = field(default_factory=dict)
    pulls: list[PullRow] = field(default_factory=list)
    branches: set[str] = field(default_factory=lambda: {"main"})
    # Branches that have nothing that their base has not, and a repository whose branches count besides.
    empty: set[str] = field(default_factory=set)
    origin: Path | None = None
    hooks: list[HookRow] = field(default_factory=list)
    lag_calls: int = 0
    # So many lists of pull requests have none yet.
    lag_pulls: int = 0
    lag_for_others: int = 0
    event_lag_calls: int = 0
    lag_seconds: float = 0.0
    _last_id: int = 1000
    _last_number: int = 0

    # -- people

    def person(self, login: str, permission: str = "write", *, is_bot: bool = False) -> str:
        """Add an account, or change what it may do; return its token."""
        known = self.users.get(login.casefold())
        if known is None:
            self.users[login.casefold()] = User(login, self.new_id(), permission, is_bot)
        else:
            known.permission = permission
        token = f"ghp_{login}00000000000000000000"
        self.tokens[token] = login
        return token

    def revoke(self, login: str) -> None:
        """Make every token of an account worthless."""
        self.tokens = {token: owner for token, owner in self.tokens.items() if owner != login}

    def user(self, login: str) -> User:
        return self.users[login.casefold()]

    def now(self) -> datetime:
        """GitHub's time: whole seconds."""
        return self.clock().astimezone(UTC).replace(microsecond=0)

    def new_id(self) -> int:
        self._last_id += 1
        return self._last_id

    # -- deeds

    def open_issue(self, title: str, body: str = "", by: str = "owner", labels: tuple[str, ...] = ()) -> int:
        """Open an issue; labels are set by the same person (as a form sets them)."""
        self._last_number += 1
        now = self.now()
        row = IssueRow(self._last_number, self.new_id(), title, body, self.user(by), now, now)
        self.rows[row.number] = row
        for name in labels:
            self.label(row.number, name, by=by)
        return row.number

    def open_pull_issue(self, title: str, by: str = "owner") -> int:
        """Open a pull request that only shows in the list of issues."""
        number = self.open_issue(title, by=by)
        self.rows[number].is_pull = True
        return number

    def merge_pull(self, number: int, by: str, commit: str = "f" * 40) -> None:
        """Merge a pull request: GitHub closes every issue that its text says it closes, be it by mistake."""
        pull = next(pull for pull in self.pulls if pull.number == number)
        pull.is_open, pull.merged_at, pull.merge_commit = False, self.now(), commit
        self.close(number, by)
        for named in CLOSING.findall(f"{pull.title}\n{pull.body}"):
            if int(named) in self.rows:
                self.close(int(named), by)

    def close_pull(self, number: int, by: str) -> None:
        """Close a pull request without merging it."""
        next(pull for pull in self.pulls if pull.number == number).is_open = False
        self.close(number, by, "not_planned")

    def open_pulls(self) -> list[PullRow]:
        return [pull for pull in self.pulls if pull.is_open]

    def has_branch(self, name: str) -> bool:
        """Tell whether a branch was pushed."""
        shown = ["git", "-C", str(self.origin), "show-ref", "--verify", "-q", f"refs/heads/{name}"]
        return name in self.branches or (self.origin is not None and subprocess.run(shown, check=False).returncode == 0)

    def comment(self, number: int, body: str, by: str) -> CommentRow:
        row, now = self.rows[number], self.now()
        lags = {"unseen": self.lag_calls, "unseen_by_others": self.lag_for_others}
        comment = CommentRow(self.new_id(), number, self.user(by), body, now, now, **lags)  # type: ignore[arg-type]
        row.comments.append(comment)
        self.touch(row)
        return comment

    def edit_comment(self, comment_id: int, body: str) -> CommentRow:
        comment = self.find_comment(comment_id)
        assert comment is not None
        if body != comment.body:  # an edit that changes nothing may count as none
            comment.body, comment.updated_at = body, self.now()
            self.touch(self.rows[comment.number])
        return comment

    def delete_comment(self, comment_id: int) -> None:
        for row in self.rows.values():
            if any(comment.id == comment_id for comment in row.comments):
                row.comments = [comment for comment in row.comments if comment.id != comment_id]
                self.touch(row)

    def label(self, number: int, name: str, by: str) -> None:
        """Put a label on; it is made if the repository has none of that name."""
        row, label = self.rows[number], self.make_label(name)
        if label not in row.labels:
            row.labels.append(label)
            self._event(row, "labeled", by, label)

    def unlabel(self, number: int, name: str, by: str) -> bool:
        """Take a label off; tell whether it was there."""
        row = self.rows[number]
        label = next((label for label in row.labels if label.name.casefold() == name.casefold()), None)
        if label is not None:
            row.labels.remove(label)
            self._event(row, "unlabeled", by, label)
        return label is not None

    def make_label(self, name: str, color: str = "ededed", description: str | None = None) -> LabelRow:
        return self.labels.setdefault(name.casefold(), LabelRow(self.new_id(), name, color, description))

    def edit(self, number: int, by: str, title: str | None = None, body: str | None = None) -> None:
        """Change the title, which the history shows, or the body, which it does not."""
        row = self.rows[number]
        if title is not None and title != row.title:
            old, row.title = row.title, title
            self._event(row, "renamed", by).renamed = (old, title)
        row.body = row.body if body is None else body
        self.touch(row)

    def close(self, number: int, by: str, reason: str = "completed") -> None:
        row = self.rows[number]
        if row.is_open:
            row.is_open, row.reason, row.closed_at = False, reason, self.now()
            self._event(row, "closed", by)

    def reopen(self, number: int, by: str) -> None:
        row = self.rows[number]
        if not row.is_open:
            row.is_open, row.reason, row.closed_at = True, "reopened", None
            self._event(row, "reopened", by)

    def transfer(self, number: int) -> None:
        """Move an issue to another repository: here it only redirects, and what it blocks is blocked from there."""
        row, moved = self.rows[number], ("octo/moved", number)
        row.gone = "transferred"
        self.elsewhere[moved] = (row.is_open, row.reason)
        for each in self.rows.values():
            each.blocked_by = [moved if blocker == (self.repo, number) else blocker for blocker in each.blocked_by]

    def delete(self, number: int) -> None:
        """Delete an issue: it blocks none any more."""
        self.rows[number].gone = "deleted"
        for each in self.rows.values():
            each.blocked_by = [blocker for blocker in each.blocked_by if blocker != (self.repo, number)]

    def block(self, number: int, by_issue: int, repo: str = "") -> None:
        """Say that an issue is blocked by another one; nothing shows that the issue was updated."""
        self.rows[number].blocked_by.append((repo or self.repo, by_issue))

    def unblock(self, number: int, by_issue: int, repo: str = "") -> None:
        """Take that back."""
        self.rows[number].blocked_by.remove((repo or self.repo, by_issue))

    def forget_author(self, number: int) -> None:
        """Delete the account that opened an issue."""
        self.rows[number].author = None

    # -- what the API needs

    def shown(self) -> list[IssueRow]:
        return [row for row in self.rows.values() if not row.gone]

    def find_comment(self, comment_id: int) -> CommentRow | None:
        every = (comment for row in self.shown() for comment in row.comments)
        return next((comment for comment in every if comment.id == comment_id), None)

    def listed_comments(self, row: IssueRow, reader: User | None = None) -> list[CommentRow]:
        """The comments as the list has them now; each call lets a lagging one come nearer."""
        now, listed = self.clock(), []
        for comment in row.comments:
            is_late = (now - comment.created_at).total_seconds() < self.lag_seconds
            if comment.unseen > 0:
                comment.unseen -= 1
            elif comment.unseen_by_others > 0 and comment.author is not reader:
                comment.unseen_by_others -= 1
            elif not is_late:
                listed.append(comment)
        return listed

    def listed_events(self, row: IssueRow) -> list[EventRow]:
        """The history as the list has it now: a label is there before the event that tells who set it."""
        listed = [event for event in row.events if event.unseen <= 0]
        for event in row.events:
            event.unseen -= 1
        return listed

    def touch(self, row: IssueRow) -> None:
        row.updated_at = self.now()

    def _event(self, row: IssueRow, kind: str, by: str, label: LabelRow | None = None) -> EventRow:
        event = EventRow(self.new_id(), kind, self.user(by), self.now(), label, unseen=self.event_lag_calls)
        row.events.append(event)
        self.touch(row)
        return event
