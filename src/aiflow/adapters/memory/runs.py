"""The runs of a checkout in memory, as the backlog sees them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aiflow.domain.run_summary import RunSummary, latest_run

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aiflow.domain.request import RequestId


@dataclass
class MemoryRuns:
    """Runs by request."""

    runs: dict[RequestId, tuple[RunSummary, ...]] = field(default_factory=dict)
    drafts: set[RequestId] = field(default_factory=set)

    def latest(self, request_ids: Iterable[RequestId] | None = None) -> dict[RequestId, RunSummary]:
        """Return the run that speaks for each request, for those asked for or all."""
        wanted = self.runs if request_ids is None else set(request_ids) & self.runs.keys()
        found = {request_id: latest_run(self.runs[request_id]) for request_id in wanted}
        return {request_id: run for request_id, run in found.items() if run is not None}

    def all_of(self, request_id: RequestId) -> tuple[RunSummary, ...]:
        """Return every run of one request, newest first."""
        return tuple(sorted(self.runs.get(request_id, ()), key=lambda run: run.run_id, reverse=True))

    def has_draft(self, request_id: RequestId) -> bool:
        """Return whether a run was written down for a request and not made yet."""
        return request_id in self.drafts

    def page(
        self,
        request_id: RequestId | None = None,
        limit: int | None = None,
        after: str | None = None,
        *,
        since: str = "",
    ) -> tuple[tuple[tuple[RequestId, RunSummary], ...], int]:
        """Return runs of one request or of all, newest first, those after a run id, and how many there are in all."""
        owners = self.runs if request_id is None else self.runs.keys() & {request_id}
        found = [(owner, run) for owner in owners for run in self.runs[owner]]
        found.sort(key=lambda pair: (pair[1].run_id, pair[0]), reverse=True)
        ids = [(pair, pair[1].run_id) for pair in found]
        wanted = [pair for pair, run_id in ids if (after is None or run_id < after) and run_id >= since]
        return tuple(wanted[:limit]), len(found)
