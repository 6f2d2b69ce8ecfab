"""Everything in memory: the ports' simplest adapters, for tests of use cases and for trying a decision out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aiflow.adapters.markdown_requests.edit import Edit, apply_edit, apply_values
from aiflow.adapters.markdown_requests.patch import body_start
from aiflow.adapters.markdown_requests.scan import read_request
from aiflow.domain.request import InvalidRequest, Request, RequestId
from aiflow.domain.run_summary import RunSummary, latest_run
from aiflow.errors import ConflictError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from aiflow.domain.activity import Activity
    from aiflow.domain.change import Change
    from aiflow.domain.lock import Lock
    from aiflow.domain.request import Value


@dataclass
class MemoryRequests:
    """Request files as texts by id."""

    texts: dict[RequestId, str] = field(default_factory=dict)

    def load(self) -> tuple[list[Request], list[InvalidRequest]]:
        """Read every request; a broken one stops nothing."""
        results = [read_request(i, f"requests/{i}.md", text.encode()) for i, text in self.texts.items()]
        valid = [result for result in results if isinstance(result, Request)]
        return valid, [result for result in results if isinstance(result, InvalidRequest)]

    def read(self, request_id: RequestId) -> Request | InvalidRequest:
        """Read one request as it is now."""
        return read_request(request_id, f"requests/{request_id}.md", self._text(request_id).encode())

    def body(self, request_id: RequestId) -> str:
        """Return a request's text without its metadata."""
        text = self._text(request_id)
        return text[body_start(text) :]

    def edit(
        self, request_id: RequestId, changes: Mapping[str, Change], body: tuple[str, str] | None = None
    ) -> dict[str, tuple[Value, Value]]:
        """Change keys (and the body), return key -> (old, new) of what really changed."""
        self.texts[request_id], changed = apply_edit(self._text(request_id), Edit(request_id, changes, body))
        return changed

    def create(self, propose: Callable[[frozenset[str]], RequestId], text: str, values: Mapping[str, Value]) -> str:
        """Create a request under an id that is free, return its path."""
        taken = frozenset(request_id.casefold() for request_id in self.texts)
        request_id = propose(taken)
        path = f"requests/{request_id}.md"
        if request_id.casefold() in taken:
            raise ConflictError(reason_code="REQUEST_EXISTS", request_id=request_id, path=path)
        self.texts[request_id] = apply_values(text, values, request_id)
        return path

    def _text(self, request_id: RequestId) -> str:
        try:
            return self.texts[request_id]
        except KeyError:
            raise NotFoundError(request_id=request_id) from None


@dataclass
class MemoryRuns:
    """Runs by request."""

    runs: dict[RequestId, tuple[RunSummary, ...]] = field(default_factory=dict)

    def latest(self, request_ids: Iterable[RequestId] | None = None) -> dict[RequestId, RunSummary]:
        """Return the run that speaks for each request, for those asked for or all."""
        wanted = self.runs if request_ids is None else set(request_ids) & self.runs.keys()
        found = {request_id: latest_run(self.runs[request_id]) for request_id in wanted}
        return {request_id: run for request_id, run in found.items() if run is not None}

    def all_of(self, request_id: RequestId) -> tuple[RunSummary, ...]:
        """Return every run of one request, newest first."""
        return tuple(sorted(self.runs.get(request_id, ()), key=lambda run: run.run_id, reverse=True))


@dataclass
class MemoryLocks:
    """Locks that somebody holds."""

    requests: dict[RequestId, Lock] = field(default_factory=dict)
    queue: Lock | None = None

    def held(self) -> tuple[dict[RequestId, Lock], Lock | None]:
        """Return the request locks by request, and the queue lock."""
        return dict(self.requests), self.queue


@dataclass
class MemoryJournal:
    """A journal as a list."""

    entries: list[Activity] = field(default_factory=list)

    def append(self, activity: Activity) -> None:
        """Add one entry."""
        self.entries.append(activity)
