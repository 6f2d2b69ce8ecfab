"""List runs: newest first, of one request or of all, page by page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.run_summary import RunList
from aiflow.errors import NotFoundError
from aiflow.usecases.read_backlog import is_known

if TYPE_CHECKING:
    from aiflow.domain.request import RequestId
    from aiflow.usecases.read_backlog import BacklogSources


def list_runs(
    sources: BacklogSources,
    request_id: RequestId | None = None,
    *,
    limit: int | None = None,
    after: str | None = None,
) -> RunList:
    """List the runs after a run id; only those of the page are read."""
    if request_id is not None and not is_known(sources.requests, request_id):
        raise NotFoundError(request_id=request_id)
    wanted = None if limit is None else limit + 1
    runs, total = sources.runs.page(request_id, wanted, after)
    has_more = limit is not None and len(runs) > limit
    return RunList(runs[:limit], total, runs[limit - 1][1].run_id if has_more and limit else None)
