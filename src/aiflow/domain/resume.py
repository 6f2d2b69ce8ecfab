"""Where a stopped run goes on (D34 §4 to §7; RUN-5, RUN-6): resume, retry a step, or plan anew."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from aiflow.domain.lifecycle import ACTIVE_RUN_STATES, RunEvent, RunState
from aiflow.domain.retry import may_retry_step

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiflow.domain.retry import ReplanSignal


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
    retries: Mapping[str, int] = field(default_factory=dict)
    replan_signal: ReplanSignal | None = None
    replaced_by: str | None = None
    newer_run_id: str | None = None
    is_work_done: bool = False


@dataclass(frozen=True, slots=True)
class Goal:
    """What the person asked for (D34 §4.2)."""

    mode: ResumeMode = ResumeMode.RESUME
    target_step_id: str | None = None
    is_forced: bool = False


@dataclass(frozen=True, slots=True)
class GoOn:
    """The same run goes on: at PLANNING, at a step, or at REPORTING."""

    event: RunEvent
    step_id: str | None = None
    is_from_start: bool = False


@dataclass(frozen=True, slots=True)
class StartAnew:
    """This run is closed as FAILED with its report, and a new run replaces it (RUN-6)."""

    replaces: str


@dataclass(frozen=True, slots=True)
class Refused:
    """Not this way; the reason code says why, `advice` which way instead."""

    reason_code: str
    detail: str
    advice: ResumeMode | None = None


Decision = GoOn | StartAnew | Refused


def decide_resume(run: StoppedRun, goal: Goal, step_retries: int) -> Decision:
    """Decide whether and where a stopped run goes on; a refusal names the way that is open."""
    if refusal := _refuse_run(run, goal):
        return refusal
    if goal.mode is ResumeMode.REPLAN:
        return StartAnew(replaces=run.run_id)
    if run.replan_signal is not None and not goal.is_forced:
        return Refused("REPLAN_REQUIRED", run.replan_signal.value, ResumeMode.REPLAN)
    if goal.mode is ResumeMode.RETRY_STEP:
        return _retry_step(run, goal, step_retries)
    return _resume(run, goal)


def _refuse_run(run: StoppedRun, goal: Goal) -> Refused | None:
    """Refuse what cannot go on at all, whatever the way."""
    if run.state in ACTIVE_RUN_STATES:
        return Refused("RUN_IN_PROGRESS", f"{run.run_id} is {run.state}")
    if run.state is RunState.DONE:
        return Refused("RUN_NOT_RESUMABLE", f"{run.run_id} is DONE")
    if run.replaced_by is not None:
        return Refused("RUN_NOT_RESUMABLE", f"{run.run_id} was replaced by {run.replaced_by}")
    if run.newer_run_id is not None:
        return Refused("RUN_NOT_RESUMABLE", f"{run.newer_run_id} is newer than {run.run_id}")
    if run.state is RunState.FAILED and goal.mode is not ResumeMode.REPLAN and not goal.is_forced:
        return Refused("RUN_NOT_RESUMABLE", f"{run.run_id} is FAILED; force resumes it", ResumeMode.REPLAN)
    return None


def _resume(run: StoppedRun, goal: Goal) -> Decision:
    """Go on at the current step; without one at PLANNING, the first unfinished step or the report (D34 §6.1)."""
    step_id = _current_step(run)
    if goal.target_step_id not in (None, step_id):
        return Refused(
            "INPUT_INVALID", f"resume goes on at {step_id or 'the report'}; retry_step chooses", ResumeMode.RETRY_STEP
        )
    if not run.step_ids:
        return GoOn(RunEvent.RESUMED_AT_PLANNING)
    if step_id is None:
        return GoOn(RunEvent.RESUMED_AT_REPORT)
    # The implementer's work was never found wanting: tests and review go on, nothing is done twice.
    is_at_tests = run.is_work_done and step_id == run.current_step_id
    return GoOn(RunEvent.RESUMED_AT_TESTS if is_at_tests else RunEvent.RESUMED_AT_STEP, step_id)


def _current_step(run: StoppedRun) -> str | None:
    """Return the step the run stands in, or the first unfinished one."""
    if run.current_step_id in run.step_ids and run.current_step_id not in run.done_step_ids:
        return run.current_step_id
    return next((step for step in run.step_ids if step not in run.done_step_ids), None)


def _retry_step(run: StoppedRun, goal: Goal, step_retries: int) -> Decision:
    """Do the current step, or an earlier one, again from its start, at most `step_retries` times (RUN-4, RUN-6)."""
    if goal.target_step_id is not None and goal.target_step_id not in run.step_ids:
        known = ", ".join(run.step_ids) or "none"
        return Refused("INPUT_INVALID", f"the plan has no step {goal.target_step_id}: it has {known}")
    if not run.step_ids:
        return GoOn(RunEvent.RESUMED_AT_PLANNING, is_from_start=True)
    current = _current_step(run) or run.step_ids[-1]
    target = goal.target_step_id or current
    if run.step_ids.index(target) > run.step_ids.index(current):
        return Refused("INPUT_INVALID", f"{target} comes after the current step {current}", ResumeMode.RESUME)
    if not may_retry_step(run.retries.get(target, 0), step_retries):
        detail = f"{target} was retried {run.retries.get(target, 0)} times, the limit is {step_retries}"
        return Refused("RETRY_LIMIT_EXCEEDED", detail, ResumeMode.REPLAN)
    return GoOn(RunEvent.RESUMED_AT_STEP, target, is_from_start=True)
