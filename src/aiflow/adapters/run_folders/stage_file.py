"""`stage.json` (RUN-1, D34 §3): a run as JSON, pure; `stage_reading` reads it back.

The first group of fields is D34's, to the letter. The rest is what the engine and the UI need besides.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from aiflow.adapters.run_folders.stage_record import follow_ups_shape, record_shape, roles_shape, usage_shape
from aiflow.domain.agents.plan import plan_shape
from aiflow.domain.reasons import WayOn, reason_for
from aiflow.domain.run_summary import STAGE_VERSION
from aiflow.domain.runs.step_work import StepWork
from aiflow.domain.runs.stopped import recommended
from aiflow.messages.details import ENGLISH, said_again

if TYPE_CHECKING:
    from aiflow.domain.agents.former import Former
    from aiflow.domain.runs.quota import QuotaWait
    from aiflow.domain.runs.run import Happening, Run, RunError, Visit

COUNTED = ("implementer", "qa", "tests")


def stage_of(run: Run) -> dict[str, Any]:
    """Write a run as the content of its stage.json."""
    return {
        "version": STAGE_VERSION,
        "request_id": run.request_id,
        "run_id": run.run_id,
        "state": run.state.value,
        "current_step_index": run.current_index,
        "current_step_id": run.current_step_id,
        "attempts": {
            "planning": run.planning_calls,
            "steps": {i: {name: w.calls.get(name, 0) for name in COUNTED} for i, w in run.steps.items() if i},
        },
        "error": {**_error_shape(run.error), "way_on": (recommended(run) or WayOn.NONE).value} if run.error else None,
        "history": [_line_shape(line) for line in run.history],
        "title": run.title,
        "agent": run.agent,
        "created_at": run.created_at.isoformat(),
        "updated_at": run.changed_at.isoformat(),
        "branch": run.place.branch,
        "base_branch": run.place.base_branch,
        "base_commit": run.place.base_commit,
        "worktree": _worktree_shape(run),
        "steps": [{**step, **_work_shape(run.steps.get(str(step["id"])))} for step in plan_shape(run.plan)],
        "visit": _visit_shape(run.visit),
        "course": asdict(run.course) | {"base_tested": run.base_tested},
        "answers": [{"question": question, "answer": answer} for question, answer in run.answers],
        "feedback": [asdict(told) for told in run.feedback],
        "warnings": list(run.warnings),
        **follow_ups_shape(run.follow_ups),
        "usage": usage_shape(run.usage),
        "roles": roles_shape(run.roles),
        "planning_session": run.planning_session,
        "planning_retries": run.planning_retries,
        "step_retries": run.step_retries,
        "quota": _quota_shape(run.quota),
        "stopped_in": run.stopped_in.value if run.stopped_in else None,
        **_links_shape(run),
        "lock": dict(run.lock),
        "task": run.task._asdict() if run.task else None,
    }


def _links_shape(run: Run) -> dict[str, Any]:
    """Write what a run has to do with others: those before and after it, where it began, and where its work went."""
    return {
        "compare_url": run.compare_url,
        "pull_url": run.pull_url,
        "replaces": run.replaces,
        "replaced_by": run.replaced_by,
        "continues": run.continues._asdict() if run.continues else None,
        "continued_by": run.continued_by,
        "begun_at": run.begun_at,
        "is_dropped": run.is_dropped,
        "former": _former_shape(run.former),
        "accepted_as": run.accepted_as,
        "merging_as": run.merging_as,
        "landing": asdict(run.landing) if run.landing else None,
    }


def _former_shape(former: Former | None) -> dict[str, Any] | None:
    return asdict(former) | {"steps": [step._asdict() for step in former.steps]} if former else None


def _worktree_shape(run: Run) -> dict[str, Any]:
    return {
        "path": run.place.path,
        "copied": list(run.place.copied),
        "is_prepared": run.is_prepared,
        "left_tree": run.left_tree,
        "has_edits": run.has_edits,
    }


def _error_shape(error: RunError) -> dict[str, Any]:
    return {
        "category": reason_for(error.reason_code).category.value,
        "reason_code": error.reason_code,
        "summary": error.summary or said_again(error.facts, ENGLISH),
        "cause": error.cause,
        "question": error.question,
        "choices": list(error.choices),
        "facts": dict(error.facts),
        "output": error.output,
        "evidence": asdict(error.evidence) | {"log_paths": list(error.evidence.log_paths)},
    }


def _quota_shape(quota: QuotaWait | None) -> dict[str, Any] | None:
    """Write what a run waits for (RUN-13)."""
    if quota is None:
        return None
    return asdict(quota) | {"since": quota.since.isoformat(), "until": quota.until.isoformat()}


def _line_shape(line: Happening) -> dict[str, Any]:
    known = {"step_id": line.step_id, "reason_code": line.reason_code, "note": line.note}
    return {
        "at": line.at.isoformat(),
        "event": line.event,
        **{name: value for name, value in known.items() if value is not None},
    }


def _work_shape(work: StepWork | None) -> dict[str, Any]:
    """Write what became of a step, with a word for the UI."""
    known = work or StepWork()
    state = "done" if known.is_done else "pending"
    return {
        "state": state,
        "base": known.base,
        "commit": known.commit,
        "summary": known.summary,
        "retries": known.retries,
        "restarts": known.restarts,
        "kept": known.kept,
        "sessions": dict(known.sessions),
        "merges": known.merges,
        "conflicts": list(known.conflicts),
        "unmarked": list(known.unmarked),
        "calls": dict(known.calls),
        "stops": [asdict(stop) | {"areas": sorted(stop.areas)} for stop in known.stops],
        "tested_at": [moment.isoformat() for moment in known.tested_at],
        **record_shape(known.record),
        "is_visited": work is not None,
    }


def _visit_shape(visit: Visit) -> dict[str, Any]:
    return {
        "calls": dict(visit.calls),
        "failures": {role: list(codes) for role, codes in visit.failures.items()},
        "feedback": [asdict(told) for told in visit.feedback],
        "calling": visit.calling.value if visit.calling else None,
        "crashes": visit.crashes,
        "is_tested": visit.is_tested,
        "is_reviewed": visit.is_reviewed,
        "changed_files": visit.changed_files,
        "changed_lines": visit.changed_lines,
        "areas": sorted(visit.areas),
        "summary": visit.summary,
    }
