"""How a run continues after a stop (RUN-6, RUN-10, RUN-11, RUN-14): once after a crash, by another delivery of
its task, or because a person says so.

Only a person's word begins a new visit with new attempts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from aiflow.domain.lifecycle import RunEvent
from aiflow.domain.run_summary import LOST
from aiflow.domain.runs.events import crashed, failure, happen, told_of
from aiflow.domain.runs.retry import BASE_RED, FROM_OUTSIDE
from aiflow.domain.runs.run import Run, Visit
from aiflow.domain.runs.step_record import StepRecord
from aiflow.domain.runs.step_work import StepWork

if TYPE_CHECKING:
    from datetime import datetime

    from aiflow.domain.agents.call import Feedback
    from aiflow.domain.runs.resume import GoOn
    from aiflow.domain.runs.run_limits import RunLimits
    from aiflow.domain.runs.worktree import Place


# Reasons for a stop that agents need not know: they cannot fix them, or a person has.
_NOBODYS = FROM_OUTSIDE | {BASE_RED}


def recovered(run: Run, limits: RunLimits, now: datetime) -> Run:
    """The process crashed in this run: it continues automatically once; the second time it stops (RUN-11)."""
    visit = _with_call_cut(run.visit, "PROCESS_CRASHED")
    again = replace(run, visit=replace(visit, crashes=visit.crashes + 1))
    if visit.crashes > 0 or not run.may_call_again(limits) or not run.has_work_before_it:
        return crashed(again, now)
    return happen(again, RunEvent.RECOVERED, now, "PROCESS_CRASHED")


def lost(request_id: str, place: Place, title: str, now: datetime) -> Run:
    """Nothing is left of a run that a request was `running` for: this run records that instead (REQ-5)."""
    run = Run(request_id, place.run_id, place, now, title=title)
    return happen(replace(run, error=failure(run, LOST, "")), RunEvent.FAILED, now, LOST)


def delivered_again(run: Run, way: GoOn, now: datetime) -> Run:
    """Another delivery of its task continues a run that its runner stopped, in the same visit (RUN-14)."""
    assert run.error is not None, run.run_id
    visit = _with_call_cut(run.visit, run.error.reason_code)
    step_id = way.step_id or run.current_step_id
    fresh = replace(run, error=None, stopped_in=None, current_step_id=step_id, visit=visit)
    return happen(fresh, way.event, now, note="resume")


def _with_call_cut(visit: Visit, reason_code: str) -> Visit:
    """A call that never came back was an attempt."""
    role = visit.calling
    if role is None:
        return visit
    failures = (*visit.failures.get(role, ()), reason_code)
    return replace(visit, calling=None, failures={**visit.failures, role.value: failures})


def resumed(run: Run, way: GoOn, answer: str | None, now: datetime) -> Run:
    """A person continues the run: a new visit, with the failure it stopped for as feedback (RUN-6, RUN-10)."""
    answers = run.answers
    if answer is not None:
        answers = (*answers, (run.error.question or "" if run.error else "", answer))
    fresh = replace(run, answers=answers, error=None, stopped_in=None)
    note = "retry_step" if way.is_from_start else "resume"
    # A run cannot continue at a step that is not in the plan.
    here = run.current_step_id if run.current_step else None
    fresh = replace(fresh, current_step_id=way.step_id or here, quota=None)
    if way.is_again:
        fresh = _counted(fresh, way.step_id)
    if way.is_from_start and way.step_id is not None:
        fresh = _from_start(fresh, way.step_id)
    keeps_work = way.event is RunEvent.RESUMED_AT_TESTS
    old = run.visit
    visit = Visit(
        feedback=feedback_of(run),
        is_tested=keeps_work and old.is_tested,
        changed_files=old.changed_files if keeps_work else 0,
        changed_lines=old.changed_lines if keeps_work else 0,
        areas=old.areas if keeps_work else frozenset(),
        summary=old.summary if keeps_work else "",
    )
    return happen(replace(fresh, visit=visit), way.event, now, note=note)


def _counted(run: Run, step_id: str | None) -> Run:
    """Count that a step, or the plan (None), is done again after it failed (RUN-4)."""
    if step_id is None:
        return replace(run, planning_retries=run.planning_retries + 1)
    work = run.steps.get(step_id, StepWork())
    return replace(run, steps={**run.steps, step_id: replace(work, retries=work.retries + 1)})


def feedback_of(run: Run) -> tuple[Feedback, ...]:
    """Return the feedback on what a run stopped for; a stop that was not the agents' fault gives none."""
    why = run.error
    if why is None or why.question is not None or why.reason_code in _NOBODYS:
        return ()
    return (told_of(why),)


def _from_start(run: Run, step_id: str) -> Run:
    """Do a step again from the commit before it: what came of it and of later ones no longer counts."""
    index = run.current_index
    assert index is not None, step_id
    steps = dict(run.steps)
    for step in run.plan[index + 1 :]:
        if step.id in steps:
            later = replace(steps[step.id], base=None, commit=None, is_done=False, kept=None)
            steps[step.id] = replace(later, record=StepRecord())
    work = steps.get(step_id, StepWork())
    work = replace(work, record=StepRecord(), restarts=work.restarts + 1)
    steps[step_id] = replace(work, commit=None, is_done=False, kept=None, sessions={})
    return replace(run, steps=steps, left_tree=None)
