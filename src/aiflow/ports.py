"""Every protocol the use cases need, on one page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from aiflow.domain.activity import Activity
    from aiflow.domain.lock import Lock
    from aiflow.domain.request import InvalidRequest, Request, RequestId, Value
    from aiflow.domain.run import RunSummary


class _Any(Enum):
    ANY = "any"


ANY = _Any.ANY


@dataclass(frozen=True, slots=True)
class Change:
    """A new value for a key; with `expected`, only if the key still says that (REQ-3)."""

    new: Value
    expected: Value | _Any = ANY


class RequestFiles(Protocol):
    """Where requests are kept as files."""

    def load(self) -> tuple[list[Request], list[InvalidRequest]]:
        """Read every request; a broken one stops nothing."""

    def body(self, request_id: RequestId) -> str:
        """Return a request's text without its metadata."""

    def edit(
        self, request_id: RequestId, changes: Mapping[str, Change], body: tuple[str, str] | None = None
    ) -> dict[str, tuple[Value, Value]]:
        """Change keys (and the body), return key -> (old, new) of what really changed."""

    def create(self, propose: Callable[[frozenset[str]], RequestId], text: str, values: Mapping[str, Value]) -> str:
        """Create a request under an id that is free, from a text and values for its keys; return its path."""


class RunHistory(Protocol):
    """What is known of past and present runs."""

    def latest(self, request_ids: Iterable[RequestId] | None = None) -> dict[RequestId, RunSummary]:
        """Return the run that speaks for each request, for those asked for or all."""

    def all_of(self, request_id: RequestId) -> tuple[RunSummary, ...]:
        """Return every run of one request, newest first."""


class LockView(Protocol):
    """Which locks exist; looking changes nothing."""

    def held(self) -> tuple[dict[RequestId, Lock], Lock | None]:
        """Return the request locks by request, and the queue lock."""


class Journal(Protocol):
    """The one record of everything that happened (ERR-4)."""

    def append(self, activity: Activity) -> None:
        """Add one entry; it is on disk when this returns."""


Clock = Callable[[], datetime]
