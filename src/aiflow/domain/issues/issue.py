"""An issue as GitHub has it (ISS-2): what is read of it, and nothing that aiflow decides."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from datetime import datetime


class Right(IntEnum):
    """What an account may do in the repository; `maintain` and `admin` are WRITE, `triage` is READ."""

    NONE = 0
    READ = 1
    WRITE = 2


class Account(NamedTuple):
    """Who did something; a deleted account is None wherever one may stand."""

    login: str
    id: int
    is_bot: bool = False


class IssueComment(NamedTuple):
    """One comment of an issue; `is_gone` of one that was read once and has been deleted since."""

    id: int
    author: Account | None
    body: str
    created_at: datetime
    updated_at: datetime
    url: str = ""
    is_gone: bool = False


class HistoryEvent(NamedTuple):
    """One event of an issue's history; `label` for `labeled` and `unlabeled`."""

    id: int
    kind: str
    actor: Account | None
    at: datetime
    label: str | None = None


class Blocker(NamedTuple):
    """An issue that GitHub's own relation says blocks this one; perhaps of another repository (`owner/name`)."""

    repo: str
    number: int
    is_open: bool
    state_reason: str | None = None
    updated_at: datetime | None = None


class Issue(NamedTuple):
    """An issue as the repository's list shows it; `open_blocker_count` of its blockers are open."""

    number: int
    title: str
    body: str
    url: str
    author: Account | None
    is_open: bool
    state_reason: str | None
    labels: tuple[str, ...]
    created_at: datetime
    updated_at: datetime
    comment_count: int = 0
    blocker_count: int = 0
    open_blocker_count: int = 0


class Story(NamedTuple):
    """An issue with all that was read of it.

    Comments and events are in the order of their ids. Comments with a mark that were read once stay in it when they are
    deleted (`is_gone`), for deleting one resets nothing (ISS-7). `blockers` is None where they could not be read.
    """

    issue: Issue
    comments: tuple[IssueComment, ...] = ()
    events: tuple[HistoryEvent, ...] = ()
    blockers: tuple[Blocker, ...] | None = ()

    @property
    def has_all_comments(self) -> bool:
        """Whether as many comments were read as the issue counts: a list may lag behind (ISS-3)."""
        return sum(not comment.is_gone for comment in self.comments) >= self.issue.comment_count
