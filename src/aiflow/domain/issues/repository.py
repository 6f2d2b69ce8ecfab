"""What GitHub has besides issues (ISS-1, ISS-9): the repository itself, its hooks and pull requests, and the limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from datetime import datetime

    from aiflow.domain.issues.issue import Issue, Right


class Listed(NamedTuple):
    """The repository's issues, or only that they are as they were when GitHub gave this tag.

    An issue that is not in a whole list may have been passed over while others moved: who misses one asks for it.
    """

    issues: tuple[Issue, ...]
    etag: str
    is_unchanged: bool = False


class Synced(NamedTuple):
    """The result of a sync: the issues that it read again, those that are gone, and whether it read all of them."""

    changed: tuple[int, ...] = ()
    gone: tuple[int, ...] = ()
    is_full: bool = False


class LookedAfter(NamedTuple):
    """The result of one look: the issues read again, those that are gone, and those about which something was done."""

    changed: tuple[int, ...]
    gone: tuple[int, ...]
    tended: tuple[int, ...]
    is_full: bool


class Repository(NamedTuple):
    """A repository, and what our account may do there; None where GitHub does not say (an App's token)."""

    name: str
    url: str
    default_branch: str
    has_issues: bool
    right: Right | None = None


class CallRate(NamedTuple):
    """How many calls are left until when, by GitHub's own clock."""

    limit: int
    remaining: int
    resets_at: datetime
    now: datetime


class Hook(NamedTuple):
    """A webhook of the repository."""

    id: int
    url: str
    events: tuple[str, ...]
    is_active: bool


class Delivery(NamedTuple):
    """One delivery of a webhook, and what the other side answered; 0 if it did not."""

    id: int
    event: str
    at: datetime
    status: int

    @property
    def is_ok(self) -> bool:
        """Whether the other side took it."""
        return 200 <= self.status < 300


class Pull(NamedTuple):
    """A pull request from a branch of this repository; `merge_commit` is what brought a merged one into its base."""

    number: int
    url: str
    title: str
    head: str
    base: str
    is_open: bool
    is_merged: bool = False
    merge_commit: str = ""
