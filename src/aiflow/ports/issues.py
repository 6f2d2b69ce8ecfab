"""GitHub as use cases and the issues' source ask it (ISS-1): one repository's issues, and what is written to them.

A read that fails was tried again a little. A write that fails with GITHUB_UNKNOWN may have happened: its answer was
lost, and the caller checks before writing again. Any other failure changed nothing. Deleted, transferred and unknown
issues and comments raise GITHUB_GONE, but only while the repository itself can be seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from datetime import datetime

    from aiflow.domain.issues.issue import Account, Blocker, HistoryEvent, Issue, IssueComment, Right
    from aiflow.domain.issues.repository import CallRate, Delivery, Hook, Listed, Pull, Repository, Synced
    from aiflow.domain.issues.view import RunDeed


class IssueReading(Protocol):
    """What is read of a repository's issues."""

    def issues(self, since: datetime | None = None, etag: str = "") -> Listed:
        """List issues, open and closed, all or those updated since a moment; one call if none is newer than `etag`."""

    def issue(self, number: int) -> Issue:
        """Return one issue as it is now."""

    def comments(self, number: int, since: datetime | None = None) -> tuple[IssueComment, ...]:
        """Return an issue's comments in the order of their ids: all, or those updated since a moment."""

    def events(self, number: int) -> tuple[HistoryEvent, ...]:
        """Return an issue's whole history in the order of its ids."""

    def blockers(self, number: int) -> tuple[Blocker, ...] | None:
        """Return what blocks an issue by GitHub's own relation; None where GitHub does not know or show it."""

    def right(self, login: str) -> Right:
        """Return what an account may do in the repository."""

    def labels(self) -> tuple[str, ...]:
        """Return the names of the repository's labels."""


class IssueWriting(Protocol):
    """What is written to a repository's issues; single labels only, never the whole set."""

    def comment(self, number: int, body: str) -> IssueComment:
        """Post a comment."""

    def edit_comment(self, comment_id: int, body: str) -> IssueComment:
        """Replace a comment's text."""

    def delete_comment(self, comment_id: int) -> None:
        """Delete a comment of our own; one that is gone is no mistake."""

    def react(self, comment_id: int, content: str) -> None:
        """Add a reaction to a comment, by GitHub's name for it; one that is there already stays."""

    def add_label(self, number: int, name: str) -> tuple[str, ...]:
        """Add a label, return the issue's labels; one that is there already stays."""

    def remove_label(self, number: int, name: str) -> tuple[str, ...]:
        """Take a label off, return the issue's labels; one that is not there is no mistake."""

    def create_label(self, name: str, color: str, description: str) -> None:
        """Make a label of the repository; one of that name stays as it is."""

    def close(self, number: int, reason: str = "completed") -> Issue:
        """Close an issue."""


class IssueHost(IssueReading, IssueWriting, Protocol):
    """GitHub, as far as aiflow needs it."""

    def account(self) -> Account:
        """Return the account that we are."""

    def account_of(self, login: str) -> Account | None:
        """Return the account of a login; None if there is none."""

    def repository(self) -> Repository:
        """Return the repository; GITHUB_NOT_FOUND or GITHUB_MOVED if this account is shown none."""

    def rate(self) -> CallRate:
        """Return how many calls are left; this one is free."""

    def hooks(self) -> tuple[Hook, ...]:
        """Return the repository's webhooks; GITHUB_RIGHTS if we may not see them."""

    def deliveries(self, hook_id: int) -> tuple[Delivery, ...]:
        """Return the newest deliveries of a webhook, newest first."""

    def pulls(self, head: str) -> tuple[Pull, ...]:
        """Return the pull requests from a branch of this repository, open and closed, newest first."""

    def open_pull(self, head: str, base: str, title: str, body: str) -> Pull:
        """Open a pull request."""

    def close_pull(self, number: int) -> Pull:
        """Close a pull request without merging it."""


class IssueCare(Protocol):
    """What looks after the issues of a repository for a checkout."""

    def sync(self, *, is_full: bool = False) -> Synced:
        """Read what changed since the last time, or everything."""

    def looked_at(self) -> datetime | None:
        """Return when this checkout last read what changed; None if it never did."""

    def wish(self, number: int) -> str | None:
        """Return the id of what asks for a run of an issue now, as last seen; None if nothing does."""

    def pending(self) -> tuple[int, ...]:
        """Return the issues for which something is to be done, as far as is known without a call."""

    def tend(self, number: int) -> tuple[RunDeed, ...]:
        """Look at an issue and do what is to be done there; returns what concerns the runs of this checkout."""
