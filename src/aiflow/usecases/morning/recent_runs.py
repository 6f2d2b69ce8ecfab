"""The runs that began since a time, newest first: by their ids, so that no older one is read."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from aiflow.domain.request import RequestId
    from aiflow.domain.run_summary import RunSummary
    from aiflow.ports import RunHistory


def runs_since(runs: RunHistory, since: datetime) -> tuple[tuple[RequestId, RunSummary], ...]:
    """Return runs with their requests back to a time, each with its record."""
    return runs.page(since=f"RUN-{since.astimezone(UTC):%Y%m%d-%H%M%S}")[0]
