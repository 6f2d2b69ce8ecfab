"""The runs that began since a time, newest first: by their ids, so that no older one is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.run_summary import made_at

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from aiflow.domain.request import RequestId
    from aiflow.domain.run_summary import RunSummary
    from aiflow.ports import RunHistory

_AT_ONCE = 200


def runs_since(runs: RunHistory, since: datetime) -> Iterator[tuple[RequestId, RunSummary]]:
    """Yield runs with their requests back to a time, each with its record."""
    after: str | None = None
    while True:
        page, _ = runs.page(None, _AT_ONCE, after)
        for owner, run in page:
            began = made_at(run.run_id)
            if began is not None and began < since:
                return
            yield owner, run
        if len(page) < _AT_ONCE:
            return
        after = page[-1][1].run_id
