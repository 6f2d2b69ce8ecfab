"""Locks in memory: who holds what."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiflow.domain.lock import Lock
    from aiflow.domain.request import RequestId


@dataclass
class MemoryLocks:
    """Locks that somebody holds."""

    requests: dict[RequestId, Lock] = field(default_factory=dict)
    queue: Lock | None = None

    def held(self) -> tuple[dict[RequestId, Lock], Lock | None]:
        """Return the request locks by request, and the queue lock."""
        return dict(self.requests), self.queue

    def holder(self) -> Lock | None:
        """Return the lock of whatever run is in progress in this checkout."""
        return next(iter(self.held()[0].values()), None)

    def holder_of(self, request_id: RequestId) -> Lock | None:
        """Return a request's lock."""
        return self.held()[0].get(request_id)

    def queue_holder(self) -> Lock | None:
        """Return the queue lock."""
        return self.held()[1]

    def turn_holder(self) -> Lock | None:
        """Return the turn of a runner that is about to claim a task: none here."""
        return None
