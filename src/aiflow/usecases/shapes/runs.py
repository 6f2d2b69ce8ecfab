"""Runs as plain data (SPEC §11, §13), the same for CLI, API and UI."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiflow.domain.lifecycle import RunState
from aiflow.domain.reasons import exit_code
from aiflow.domain.runs.stopped import way_out
from aiflow.domain.runs.worktree import branch_name
from aiflow.messages.commands import command_line
from aiflow.messages.details import ENGLISH, said_again
from aiflow.usecases.shapes.run_report import follow_ups_shape, usage_shape, way_out_shape
from aiflow.usecases.shapes.run_summary import run_shape, stamp

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aiflow.domain.health import Finding
    from aiflow.domain.lock import LockStatus
    from aiflow.domain.run_summary import RunList, RunSummary
    from aiflow.domain.runs.log_part import LogPart
    from aiflow.domain.runs.run import Run
    from aiflow.domain.runs.worktree import RunDiff
    from aiflow.messages import Texts


def run_result(run: Run) -> dict[str, Any]:
    """What `run` and `resume` answer: the state of the run, why, and what to do next."""
    why = run.error
    return {
        "request_id": run.request_id,
        "run_id": run.run_id,
        "state": run.state.value,
        "reason_code": why.reason_code if why else None,
        "cause": why.cause if why else None,
        "summary": (said_again(why.facts, ENGLISH) or why.summary) if why else None,
        "question": why.question if why else None,
        "choices": list(why.choices) if why else [],
        "current_step_id": run.current_step_id,
        "branch": run.place.branch,
        "base_branch": run.place.base_branch,
        "worktree": run.place.path,
        "compare_url": run.compare_url,
        "is_pushed": run.is_pushed,
        "pull_url": run.pull_url,
        "usage": usage_shape(run.usage),
        "waits_until": run.waits_until.isoformat() if run.waits_until else None,
        "warnings": list(run.warnings),
        **follow_ups_shape(run.follow_ups),
        "replaces": run.replaces,
        "replaced_by": run.replaced_by,
        "continues": run.continues.run_id if run.continues else None,
        "continued_by": run.continued_by,
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
        "suggested_next": way_out_shape(way_out(run)),
    }


def exit_code_of(run: Run) -> int:
    """Return the exit code of a run's end: 0 at DONE, else that of its reason or its cause (SPEC §13)."""
    if run.error is None or run.state is RunState.DONE:
        return 0
    return int(exit_code(run.error.reason_code, run.error.cause))


def run_list(found: RunList) -> dict[str, Any]:
    """`runs --json`: runs, newest first."""
    return {"runs": [{"request_id": owner, **run_shape(run), **_record_shape(owner, run)} for owner, run in found.runs]}


def _record_shape(owner: str, run: RunSummary) -> dict[str, Any]:
    """What a list of runs says besides: its branch, when it began, how long it was worked on, what that used."""
    record = run.record
    return {
        "branch": branch_name(owner, run.run_id),
        "created_at": stamp(record.created_at) if record else None,
        "worked_seconds": record.worked_seconds if record else None,
        "cost_usd": record.cost_usd if record else None,
        "tokens": record.tokens if record else None,
        "agent_calls": record.agent_calls if record else None,
    }


def logs_shape(run: Run, logs: Iterable[LogPart]) -> dict[str, Any]:
    """`logs --json`: every log whole."""
    shapes = [{"step": log.number, "path": log.path, "text": log.text} for log in logs]
    return {"request_id": run.request_id, "run_id": run.run_id, "logs": shapes}


def log_part_shape(run: Run, part: LogPart) -> dict[str, Any]:
    """A part of one log, and the byte at which it continues."""
    return {
        "request_id": run.request_id,
        "run_id": run.run_id,
        "step": part.number,
        "path": part.path,
        "offset": part.offset,
        "text": part.text,
        "next_offset": part.next_offset,
        "size": part.size,
        "may_grow": part.may_grow,
        "was_cut": part.was_cut,
    }


def diff_shape(diff: RunDiff) -> dict[str, Any]:
    """What a run, or one step of it, changed."""
    return {
        "request_id": diff.request_id,
        "run_id": diff.run_id,
        "step_id": diff.step_id,
        "old": diff.old,
        "new": diff.new,
        "unfinished_step_id": diff.unfinished,
        "is_gone": diff.is_gone,
        "is_cut": diff.is_cut,
        "added": sum(file.added for file in diff.files),
        "deleted": sum(file.deleted for file in diff.files),
        "files": [
            {
                "path": file.path,
                "old_path": file.old_path,
                "added": file.added,
                "deleted": file.deleted,
                "is_binary": file.is_binary,
                "is_unfinished": file.path in diff.unfinished_paths,
            }
            for file in diff.files
        ],
        "diff": diff.text,
    }


def workplace_shape(run: Run, *, is_worked_on: bool) -> dict[str, Any]:
    """`shell --json`: where a run works."""
    return {
        "request_id": run.request_id,
        "run_id": run.run_id,
        "state": run.state.value,
        "worktree": run.place.path,
        "branch": run.place.branch,
        "is_worked_on": is_worked_on,
    }


def finding_shape(finding: Finding, texts: Texts) -> dict[str, Any]:
    """One finding of the doctor (DOC-1)."""
    return {
        "id": finding.check_id,
        "result": finding.health.value,
        "reason_code": finding.reason_code,
        "message": texts(f"check.{finding.message}", **dict(finding.facts)),
        "evidence": list(finding.evidence),
        "fix": command_line(finding.fix) if finding.fix else None,
    }


def lock_list(found: Iterable[LockStatus]) -> dict[str, Any]:
    """`locks --json`."""
    return {"locks": [lock_shape(status) for status in found]}


def broken_lock_shape(broken: LockStatus) -> dict[str, Any]:
    """`locks break --json`: the lock that was taken away."""
    return {"broken": lock_shape(broken)}


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
