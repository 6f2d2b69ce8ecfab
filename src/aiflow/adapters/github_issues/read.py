"""GitHub's JSON as our values (ISS-2): what is unknown is passed over, what is missing does no harm."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from aiflow.domain.issues.issue import Account, Blocker, HistoryEvent, Issue, IssueComment, Right
from aiflow.domain.issues.repository import CallRate, Delivery, Hook, Pull, Repository

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

T = TypeVar("T")
_RIGHTS = {
    "admin": Right.WRITE,
    "maintain": Right.WRITE,
    "write": Right.WRITE,
    "triage": Right.READ,
    "read": Right.READ,
}
_PERMISSIONS = (("push", Right.WRITE), ("pull", Right.READ))
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
_NOBODY = Account("", 0)


def issue_of(document: object) -> Issue | None:
    """Read an issue; None for a pull request, and for what has no number."""
    number = number_in(document, "number")
    if number < 1 or inside(document, "pull_request") is not None:
        return None
    return Issue(
        number=number,
        title=text_in(document, "title"),
        body=text_in(document, "body"),
        url=text_in(document, "html_url"),
        author=account_of(inside(document, "user")),
        is_open=inside(document, "state") != "closed",
        state_reason=text_in(document, "state_reason") or None,
        labels=tuple(filter(None, map(label_of, _items(inside(document, "labels"))))),
        created_at=time_in(document, "created_at"),
        updated_at=time_in(document, "updated_at"),
        comment_count=number_in(document, "comments"),
        blocker_count=number_in(inside(document, "issue_dependencies_summary"), "total_blocked_by"),
        open_blocker_count=number_in(inside(document, "issue_dependencies_summary"), "blocked_by"),
    )


def comment_of(document: object) -> IssueComment | None:
    """Read a comment; None for what has no id."""
    if number_in(document, "id") < 1:
        return None
    return IssueComment(
        id=number_in(document, "id"),
        author=account_of(inside(document, "user")),
        body=text_in(document, "body"),
        created_at=time_in(document, "created_at"),
        updated_at=time_in(document, "updated_at"),
        url=text_in(document, "html_url"),
    )


def event_of(document: object) -> HistoryEvent | None:
    """Read an event of an issue's history; None for what has no id."""
    if number_in(document, "id") < 1:
        return None
    return HistoryEvent(
        id=number_in(document, "id"),
        kind=text_in(document, "event"),
        actor=account_of(inside(document, "actor")),
        at=time_in(document, "created_at"),
        label=label_of(inside(document, "label")) or None,
    )


def blocker_of(document: object) -> Blocker | None:
    """Read an issue that blocks another; its repository is in its address."""
    number, path = number_in(document, "number"), urlsplit(text_in(document, "repository_url")).path
    if number < 1:
        return None
    repo = "/".join(path.rstrip("/").split("/")[-2:])
    is_open = inside(document, "state") != "closed"
    reason = text_in(document, "state_reason") or None
    return Blocker(repo, number, is_open, reason, time_in(document, "updated_at"))


def label_of(document: object) -> str:
    """Read a label's name; old answers have the name alone."""
    return document if isinstance(document, str) else text_in(document, "name")


def right_of(document: object) -> Right:
    """Read what an account may do; an unknown word is nothing."""
    return _RIGHTS.get(text_in(document, "permission"), Right.NONE)


def repository_of(document: object) -> Repository:
    """Read a repository."""
    may = inside(document, "permissions")
    held = next((right for name, right in _PERMISSIONS if inside(may, name) is True), Right.NONE)
    return Repository(
        name=text_in(document, "full_name"),
        url=text_in(document, "html_url"),
        default_branch=text_in(document, "default_branch"),
        has_issues=inside(document, "has_issues") is not False,
        right=held if isinstance(may, dict) else None,
    )


def rate_of(document: object, now: datetime) -> CallRate:
    """Read how many calls are left."""
    core = inside(inside(document, "resources"), "core")
    resets_at = datetime.fromtimestamp(number_in(core, "reset"), UTC)
    return CallRate(number_in(core, "limit"), number_in(core, "remaining"), resets_at, now)


def hook_of(document: object) -> Hook:
    """Read a webhook."""
    url = text_in(inside(document, "config"), "url")
    events = tuple(each for each in _items(inside(document, "events")) if isinstance(each, str))
    return Hook(number_in(document, "id"), url, events, inside(document, "active") is True)


def delivery_of(document: object) -> Delivery:
    """Read a webhook's delivery."""
    at, status = time_in(document, "delivered_at"), number_in(document, "status_code")
    return Delivery(number_in(document, "id"), text_in(document, "event"), at, status)


def pull_of(document: object) -> Pull:
    """Read a pull request."""
    return Pull(
        number=number_in(document, "number"),
        url=text_in(document, "html_url"),
        title=text_in(document, "title"),
        head=text_in(inside(document, "head"), "ref"),
        base=text_in(inside(document, "base"), "ref"),
        is_open=inside(document, "state") != "closed",
        is_merged=inside(document, "merged_at") is not None,
        merge_commit=text_in(document, "merge_commit_sha") if inside(document, "merged_at") is not None else "",
    )


def account_of(document: object) -> Account | None:
    """Read an account; None for one that was deleted."""
    if number_in(document, "id") < 1:
        return None
    return Account(text_in(document, "login"), number_in(document, "id"), inside(document, "type") == "Bot")


def known_account(document: object) -> Account:
    """Read an account where there has to be one."""
    return account_of(document) or _NOBODY


def each_of(documents: Iterable[object], read: Callable[[object], T | None]) -> tuple[T, ...]:
    """Read many; what cannot be read is left out."""
    return tuple(found for document in documents if (found := read(document)) is not None)


def inside(document: object, key: str) -> object:
    """Return what a document has under a key; None if it has nothing there, or is no such document."""
    return document.get(key) if isinstance(document, dict) else None


def text_in(document: object, key: str) -> str:
    """Return a text; empty if there is none."""
    value = inside(document, key)
    return value if isinstance(value, str) else ""


def number_in(document: object, key: str) -> int:
    """Return a whole number; 0 if there is none."""
    value = inside(document, key)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def time_in(document: object, key: str) -> datetime:
    """Return a moment; the beginning of all time if there is none."""
    try:
        moment = datetime.fromisoformat(text_in(document, key))
    except ValueError:
        return _BEGINNING
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _items(value: object) -> list[object]:
    return value if isinstance(value, list) else []
