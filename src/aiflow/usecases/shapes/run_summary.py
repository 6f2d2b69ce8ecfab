"""One run, summed up (SPEC §11): what lists and explanations show of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datetime import datetime

    from aiflow.domain.run_summary import RunSummary


def run_shape(run: RunSummary) -> dict[str, Any]:
    """One run, summed up, as data."""
    return {
        "run_id": run.run_id,
        "state": run.state,
        "reason_code": run.reason_code,
        "cause": run.cause,
        "changed_at": stamp(run.changed_at),
        "task": run.task._asdict() if run.task else None,
    }


def stamp(moment: datetime | None) -> str | None:
    """Write an instant with its offset."""
    return moment.isoformat() if moment is not None else None
