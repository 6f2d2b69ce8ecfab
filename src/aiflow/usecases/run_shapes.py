"""Runs as plain data (SPEC §11, §13), the same for CLI, API and UI."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from aiflow.domain.lifecycle import RunState
from aiflow.domain.reasons import exit_code, mending_command, way_on
from aiflow.domain.run import recommended

if TYPE_CHECKING:
    from aiflow.domain.health import Finding
    from aiflow.domain.lock import LockStatus
    from aiflow.domain.run import Run
    from aiflow.messages import Texts


def run_result(run: Run) -> dict[str, Any]:
    """What `run` and `resume` answer: where the run stands, why, and what to do next."""
    why = run.error
    code, cause = outcome_code(run), why.cause if why else None
    return {
        "request_id": run.request_id,
        "run_id": run.run_id,
        "state": run.state.value,
        "reason_code": why.reason_code if why else None,
        "cause": cause,
        "summary": why.summary if why else None,
        "question": why.question if why else None,
        "choices": list(why.choices) if why else [],
        "current_step_id": run.current_step_id,
        "branch": run.place.branch,
        "base_branch": run.place.base_branch,
        "worktree": run.place.path,
        "compare_url": run.compare_url,
        "usage": asdict(run.usage) | {"tokens": run.usage.tokens},
        "waits_until": run.quota.until.isoformat() if run.is_active and run.quota and not run.quota.is_over else None,
        "warnings": list(run.warnings),
        "replaces": run.replaces,
        "replaced_by": run.replaced_by,
        "accepted_as": run.accepted_as,
        "task": run.task._asdict() if run.task else None,
        "created_at": run.created_at.isoformat(),
        "changed_at": run.changed_at.isoformat(),
        "steps": [
            {
                "step_id": step.id,
                "title": step.title,
                "is_done": step.id in run.steps and run.steps[step.id].is_done,
                "commit": run.steps[step.id].commit if step.id in run.steps else None,
            }
            for step in run.plan
        ],
        "suggested_next": {
            "way_on": (recommended(run) or way_on(code, cause)).value if code else None,
            "command": mending_command(code, run.request_id, cause, recommended(run)) if code else None,
        },
    }


def outcome_code(run: Run) -> str | None:
    """Return the reason code that says what is to be done now; a DONE run waits for acceptance."""
    if run.error is not None:
        return run.error.reason_code
    return "AWAITING_ACCEPTANCE" if run.state is RunState.DONE and not run.accepted_as else None


def exit_code_of(run: Run) -> int:
    """Return the exit code of a run's end: 0 at DONE, else that of its reason or its cause (SPEC §13)."""
    if run.error is None or run.state is RunState.DONE:
        return 0
    return int(exit_code(run.error.reason_code, run.error.cause))


def finding_shape(finding: Finding, texts: Texts) -> dict[str, Any]:
    """One finding of the doctor (DOC-1)."""
    return {
        "id": finding.check_id,
        "result": finding.health.value,
        "reason_code": finding.reason_code,
        "message": texts(f"check.{finding.message}", **dict(finding.facts)),
        "evidence": list(finding.evidence),
        "fix": finding.fix,
    }


def lock_shape(status: LockStatus) -> dict[str, Any]:
    """One lock, with what is known of its holder."""
    lock = status.lock
    return {
        "lock_type": lock.lock_type.value,
        "request_id": lock.request_id,
        "run_id": lock.run_id,
        "pid": lock.pid,
        "host": lock.host,
        "fence": lock.fence,
        "created_at": lock.created_at.isoformat() if lock.created_at else None,
        "expires_at": lock.expires_at.isoformat() if lock.expires_at else None,
        "liveness": status.liveness.value,
        "verdict": status.verdict.value,
        "is_stale": status.verdict.is_stale,
    }
