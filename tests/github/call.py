"""One call to the hub on its way: who asks what, what stands against it, and a list cut into pages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from aiflow.adapters.github_issues.transport import Ask
from github import shapes
from github.hub import Hub, IssueRow, User

Found = tuple[int, object, dict[str, str]]


class RefusedError(Exception):
    """An answer that is none of what was asked for."""

    def __init__(self, status: int, message: str, **more: Any) -> None:
        super().__init__(message)
        self.status, self.more = (
            status,
            {"message": message, "documentation_url": "https://docs.github.com/rest", **more},
        )


@dataclass
class AppRow:
    """A GitHub App: `check` tells whether a signature is its own, and gives what was signed."""

    id: int
    slug: str
    check: Callable[[str], dict[str, Any] | None]
    tokens: dict[str, datetime] = field(default_factory=dict)
    is_installed: bool = True
    lifetime: timedelta = timedelta(hours=1)


@dataclass
class Call:
    """One call on its way: who asks what of which hub."""

    hub: Hub
    ask: Ask
    who: User | AppRow
    link_url: str
    # What is left of how many calls until when.
    rate: tuple[int, int, int]

    @property
    def by(self) -> User:
        if isinstance(self.who, AppRow):
            raise RefusedError(401, "A JSON web token could not be decoded")
        return self.who

    @property
    def query(self) -> dict[str, str]:
        return dict(self.ask.query)

    def body(self, name: str) -> Any:
        return self.ask.body.get(name) if isinstance(self.ask.body, dict) else None

    def repo(self, name: str) -> None:
        """Refuse a repository that is not here, moved, or hidden."""
        if name.casefold() != self.hub.repo.casefold() or (self.hub.is_private and self.by.permission == "none"):
            raise RefusedError(404, "Not Found")
        if self.hub.moved_to:
            raise RefusedError(301, "Moved Permanently", url=f"{shapes.API}/repositories/7{self.ask.path}")

    def issue(self, name: str, number: str) -> IssueRow:
        self.repo(name)
        if not self.hub.has_issues:
            raise RefusedError(410, "Issues are disabled for this repo")
        row = self.hub.rows.get(int(number))
        if row is None:
            raise RefusedError(404, "Not Found")
        if row.gone == "deleted":
            raise RefusedError(410, "This issue was deleted")
        if row.gone == "transferred":
            raise RefusedError(301, "Moved Permanently", url=f"{shapes.API}/repositories/9/issues/1")
        return row

    def need(self, permissions: tuple[str, ...]) -> None:
        if self.by.permission not in permissions:
            raise RefusedError(403, "Resource not accessible by personal access token")

    def page(self, items: list[Any]) -> Found:
        """Cut a list into pages, with the links to the others."""
        size, at = int(self.query.get("per_page", 30)), int(self.query.get("page", 1))
        last = max(1, -(-len(items) // size))
        links = {"next": at + 1, "last": last} if at < last else {"prev": at - 1, "first": 1}
        url = f"{self.link_url}{self.ask.path}"
        written = (f'<{url}?{urlencode({**self.query, "page": number})}>; rel="{rel}"' for rel, number in links.items())
        headers = {"link": ", ".join(written)} if last > 1 else {}
        return 200, items[(at - 1) * size : at * size], headers
