"""The runs that began since a time, newest first: by their ids, so that no older one is read."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from datetime import datetime

    from aiflow.domain.backlog.selection import Backlog
    from aiflow.domain.request import RequestId
    from aiflow.domain.run_summary import RunSummary
    from aiflow.ports import RunHistory

    RecentRuns = tuple[tuple[RequestId, RunSummary], ...]


class ReadBefore(NamedTuple):
    """What a caller has read already: the backlog, and the runs of the last days."""

    backlog: Backlog
    recent: RecentRuns


def runs_since(runs: RunHistory, since: datetime) -> RecentRuns:
    """Return runs with their requests back to a time, each with its record."""
    return runs.page(since=_first_id(since))[0]


def later(recent: RecentRuns, since: datetime) -> RecentRuns:
    """Return those of some runs that began since a later time."""
    return tuple(each for each in recent if each[1].run_id >= _first_id(since))


def _first_id(since: datetime) -> str:
    """Return what the ids of all runs since a time come after."""
    return f"RUN-{since.astimezone(UTC):%Y%m%d-%H%M%S}"
