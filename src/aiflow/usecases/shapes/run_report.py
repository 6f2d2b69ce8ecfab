"""What a run did as plain data (RUN-19), the same for CLI, API and UI."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from aiflow.messages.commands import command_line

if TYPE_CHECKING:
    from aiflow.domain.agents.usage import Usage
    from aiflow.domain.runs.follow_ups import FollowUps
    from aiflow.domain.runs.report import RunReport, StepReport
    from aiflow.domain.runs.step_record import Footprint
    from aiflow.domain.runs.stopped import WayOut


def report_shape(told: RunReport, text: str | None) -> dict[str, Any]:
    """`report --json`: what the run did, and `report.md` as it was written."""
    return {
        "request_id": told.request_id,
        "run_id": told.run_id,
        "report": text,
        "title": told.title,
        "state": told.state.value,
        "reason_code": told.way_out.reason_code,
        "cause": told.cause,
        "branch": told.branch,
        "base_branch": told.base_branch,
        "accepted_as": told.accepted_as,
        "steps": [_step_shape(step) for step in told.steps],
        "criteria": [each._asdict() for each in told.criteria],
        "usage": usage_shape(told.usage),
        "roles": [{"role": each.role, **usage_shape(each.usage)} for each in told.roles],
        "warnings": list(told.warnings),
        **follow_ups_shape(told.follow_ups),
        "suggested_next": way_out_shape(told.way_out),
    }


def follow_ups_shape(found: FollowUps) -> dict[str, Any]:
    """What the agents proposed beside their work, and the requests that it became (REQ-10)."""
    return {"follow_ups": [each._asdict() for each in found.kept], "follow_ups_left_out": found.left_out}


def usage_shape(usage: Usage) -> dict[str, Any]:
    """What was used, with all tokens together."""
    return asdict(usage) | {"tokens": usage.tokens}


def way_out_shape(way: WayOut) -> dict[str, Any]:
    """What is to be done now, and the command that does it."""
    return {
        "way_on": way.way_on.value if way.way_on else None,
        "command": command_line(way.action) if way.action else None,
    }


def _step_shape(step: StepReport) -> dict[str, Any]:
    return {
        "step_id": step.step_id,
        "title": step.title,
        "is_done": step.is_done,
        "commit": step.commit,
        "attempts": step.attempts,
        "test_runs": step.test_runs,
        "summary": step.summary,
        "changes": _changes_shape(step.record.footprint),
        "tests": [{**each._asdict(), "has_passed": each.has_passed} for each in step.record.tests],
        "reviews": [{"is_passed": each.is_passed, "findings": list(each.findings)} for each in step.record.reviews],
    }


def _changes_shape(changed: Footprint) -> dict[str, Any]:
    return {**changed._asdict(), "files": [asdict(file) for file in changed.files]}
