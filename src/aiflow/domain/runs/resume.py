"""Where a stopped run continues (D34 §4 to §7; RUN-5, RUN-6): resume, retry a step, or make a new plan."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from aiflow.domain.details import Detail, detail
from aiflow.domain.lifecycle import ACTIVE_RUN_STATES, RunEvent, RunState
from aiflow.domain.run_summary import FROM_NEWER
from aiflow.domain.runs.retry import may_retry_step

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiflow.domain.runs.retry import ReplanSignal


# The name under which the plan's own retries are counted: no step has it.
PLANNING = "planning"


class ResumeMode(StrEnum):
    """The three ways on that a person can choose (D34 §4.3)."""

    RESUME = "resume"
    RETRY_STEP = "retry_step"
    REPLAN = "replan"


@dataclass(frozen=True, slots=True)
class StoppedRun:
    """What the decision needs to know of a run."""

    run_id: str
    state: RunState
    step_ids: tuple[str, ...] = ()
    done_step_ids: frozenset[str] = frozenset()
    current_step_id: str | None = None
    # How often each step was done again after it had failed; that of `PLANNING` is the plan's.
    retries: Mapping[str, int] = field(default_factory=dict)
    # Whether it stopped because its work failed, not for a question, a cancel, a crash or the environment (RUN-4).
    has_failed: bool = False
    # Whether a person says that they fixed it by hand: then earlier failures no longer count.
    is_mended: bool = False
    replan_signal: ReplanSignal | None = None
    replaced_by: str | None = None
    newer_run_id: str | None = None
    is_work_done: bool = False
    is_from_newer: bool = False
    is_planned: bool = True


@dataclass(frozen=True, slots=True)
class Goal:
    """What the person asked for (D34 §4.2)."""

    mode: ResumeMode = ResumeMode.RESUME
    target_step_id: str | None = None
    is_forced: bool = False


@dataclass(frozen=True, slots=True)
class GoOn:
    """The same run continues: at PLANNING, at a step, or at REPORTING; `is_again` if what failed is done again."""

    event: RunEvent
    step_id: str | None = None
    is_from_start: bool = False
    is_again: bool = False


@dataclass(frozen=True, slots=True)
class StartAnew:
    """This run is closed as FAILED with its report, and a new run replaces it (RUN-6)."""

    replaces: str


@dataclass(frozen=True, slots=True)
class Refused:
    """Not this way; the reason code says why, `advice` which way instead."""

    reason_code: str
    detail: Detail | str
    advice: ResumeMode | None = None


Decision = GoOn | StartAnew | Refused


def decide_resume(run: StoppedRun, goal: Goal, step_retries: int) -> Decision:
    """Decide whether and where a stopped run continues; a refusal names what is possible instead."""
    if refusal := _refuse_run(run, goal):
        return refusal
    if goal.mode is ResumeMode.REPLAN:
        return StartAnew(replaces=run.run_id)
    way = _retry_step(run, goal) if goal.mode is ResumeMode.RETRY_STEP else _resume(run, goal)
    if goal.is_forced or not isinstance(way, GoOn):  # what cannot be done is no matter of a new plan
        return way
    if not run.is_mended and (refusal := over_the_limit(run, way, step_retries)):
        return refusal
    if run.replan_signal is not None:
        return Refused("REPLAN_REQUIRED", detail(f"replan.{run.replan_signal}"), ResumeMode.REPLAN)
    return way


def over_the_limit(run: StoppedRun, way: GoOn, step_retries: int) -> Refused | None:
    """Refuse to do a step, or the plan, once more than `step_retries` times after it had failed (RUN-4)."""
    name = way.step_id or PLANNING
    count = run.retries.get(name, 0)
    if not way.is_again or may_retry_step(count, step_retries):
        return None
    facts = {"count": count, "limit": step_retries}
    told = detail("refused.retried", step_id=name, **facts) if way.step_id else detail("refused.planned_again", **facts)
    return Refused("RETRY_LIMIT_EXCEEDED", told, ResumeMode.REPLAN)


def _refuse_run(run: StoppedRun, goal: Goal) -> Refused | None:
    """Refuse a run that cannot continue in any way."""
    if run.state in ACTIVE_RUN_STATES:
        return Refused("RUN_IN_PROGRESS", detail("refused.state", run_id=run.run_id, state=run.state.value))
    if run.state is RunState.DONE:
        return Refused("RUN_NOT_RESUMABLE", detail("refused.state", run_id=run.run_id, state=run.state.value))
    if run.replaced_by is not None:
        return Refused("RUN_NOT_RESUMABLE", detail("refused.replaced", run_id=run.run_id, newer=run.replaced_by))
    if run.newer_run_id is not None:
        return Refused("RUN_NOT_RESUMABLE", detail("refused.newer", run_id=run.run_id, newer=run.newer_run_id))
    return None if goal.mode is ResumeMode.REPLAN else _refuse_same_run(run, goal)


def _refuse_same_run(run: StoppedRun, goal: Goal) -> Refused | None:
    """Refuse a run that only a new one can replace, even by force: this version does not understand it."""
    if run.is_from_newer:
        return Refused(FROM_NEWER, run.run_id)
    if run.state is RunState.FAILED and not goal.is_forced:
        return Refused("RUN_NOT_RESUMABLE", detail("refused.failed", run_id=run.run_id), ResumeMode.REPLAN)
    return None


def _resume(run: StoppedRun, goal: Goal) -> Decision:
    """Continue at the current step; without one, at PLANNING, the first unfinished step or the report (D34 §6.1)."""
    step_id = _current_step(run)
    if goal.target_step_id not in (None, step_id):
        where = detail("refused.resumes_at", step_id=step_id) if step_id else detail("refused.resumes_at_report")
        return Refused("INPUT_INVALID", where, ResumeMode.RETRY_STEP)
    if _is_to_be_planned(run):
        return GoOn(RunEvent.RESUMED_AT_PLANNING, is_again=run.has_failed)
    if step_id is None:
        return GoOn(RunEvent.RESUMED_AT_REPORT)
    # The implementer's work has not failed yet: continue with tests and review, and do nothing twice.
    is_at_tests = run.is_work_done and step_id == run.current_step_id
    is_again = run.has_failed and step_id == run.current_step_id
    event = RunEvent.RESUMED_AT_TESTS if is_at_tests else RunEvent.RESUMED_AT_STEP
    return GoOn(event, step_id, is_again=is_again)


def _current_step(run: StoppedRun) -> str | None:
    """Return the run's current step, or the first unfinished one."""
    if run.current_step_id in run.step_ids and run.current_step_id not in run.done_step_ids:
        return run.current_step_id
    return next((step for step in run.step_ids if step not in run.done_step_ids), None)


def _is_to_be_planned(run: StoppedRun) -> bool:
    """Return whether the plan is what comes next: there is no step, or only what comes before the plan is done."""
    return not run.step_ids or (not run.is_planned and _current_step(run) is None)


def _retry_step(run: StoppedRun, goal: Goal) -> Decision:
    """Do the current step, or an earlier one, again from its start (RUN-6)."""
    if goal.target_step_id is not None and goal.target_step_id not in run.step_ids:
        key = "refused.no_such_step" if run.step_ids else "refused.no_step_at_all"
        return Refused("INPUT_INVALID", detail(key, step_id=goal.target_step_id, known=", ".join(run.step_ids)))
    if _is_to_be_planned(run) and goal.target_step_id is None:
        return GoOn(RunEvent.RESUMED_AT_PLANNING, is_from_start=True, is_again=run.has_failed)
    current = _current_step(run) or run.step_ids[-1]
    target = goal.target_step_id or current
    if run.step_ids.index(target) > run.step_ids.index(current):
        told = detail("refused.later_step", step_id=target, current=current)
        return Refused("INPUT_INVALID", told, ResumeMode.RESUME)
    is_again = run.has_failed or target != current
    return GoOn(RunEvent.RESUMED_AT_STEP, target, is_from_start=True, is_again=is_again)
