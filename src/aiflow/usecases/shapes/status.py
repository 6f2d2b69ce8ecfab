"""The state of a checkout as plain data (SPEC §11, §13), the same for CLI, API and page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiflow.usecases.shapes.auto import auto_report_shape, waiting_shape
from aiflow.usecases.shapes.backlog import next_request_result
from aiflow.usecases.shapes.run_summary import stamp

if TYPE_CHECKING:
    from aiflow.domain.auto.standing import AtWork, Standing
    from aiflow.domain.lock import Lock


def standing_shape(standing: Standing) -> dict[str, Any]:
    """`status --json`: what runs, what waits for a person, what is next, the state of auto-run, what it all cost."""
    chosen = next_request_result(standing.selection)
    return {
        "running": [_at_work_shape(each) for each in standing.running],
        "waiting": [waiting_shape(each) for each in standing.waiting],
        "turn": _turn_shape(standing.turn) if standing.turn else None,
        "continued": [{"request_id": each.id, "title": each.title} for each in standing.continued],
        "follow_ups": [
            {"request_id": each.id, "title": each.title, "found_in": each.found_in} for each in standing.follow_ups
        ],
        "next": chosen["next"],
        "stats": chosen["stats"],
        "auto": auto_report_shape(standing.auto),
        "spent": standing.spent._asdict(),
    }


def _turn_shape(turn: Lock) -> dict[str, Any]:
    """Who is about to start a run here."""
    return {"pid": turn.pid, "host": turn.host, "since": stamp(turn.created_at)}


def _at_work_shape(each: AtWork) -> dict[str, Any]:
    """One request that is worked on, by whom and how far it is."""
    at = each.progress
    return {
        "request_id": each.request_id,
        "title": each.title,
        "run_id": each.run_id,
        "state": at.state if at else None,
        "current_step_id": at.step_id if at else None,
        "steps": at.steps if at else 0,
        "steps_done": at.steps_done if at else 0,
        "since": stamp(each.since),
        "pid": each.pid,
        "host": each.host,
        "task": at.task._asdict() if at and at.task else None,
    }
