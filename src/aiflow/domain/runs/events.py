"""What happens to a run (RUN-2): one function for each event."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.call import Feedback
from aiflow.domain.agents.plan import after
from aiflow.domain.agents.usage import Usage
from aiflow.domain.details import detail, flat
from aiflow.domain.lifecycle import RUN_TRANSITIONS, RunEvent, RunState, advance
from aiflow.domain.reasons import reason_for
from aiflow.domain.runs.retry import StepStop, StopRun, after_failure
from aiflow.domain.runs.run import NOTHING_CHANGED, PUSH_FAILED, PUSHED, Evidence, Happening, Run, RunError, Visit
from aiflow.domain.runs.spending import spent
from aiflow.domain.runs.step_record import footprint_of, recorded
from aiflow.domain.runs.step_work import StepWork
from aiflow.domain.runs.warned import warned

if TYPE_CHECKING:
    from datetime import datetime

    from aiflow.domain.agents.plan import PlanStep
    from aiflow.domain.runs.run_limits import RunLimits
    from aiflow.domain.runs.worktree import Changes, Unfinished


SETUP = "SETUP"
# Lines of the history that change no state: the tests of the base begin, and have passed (RUN-17).
BASELINE = "BASELINE"
TESTED = "TESTED"
KNOWN = "known"
RESULT_STOPS = {RunState.NEEDS_INPUT: RunEvent.NEEDS_INPUT, RunState.FAILED: RunEvent.FAILED}


def happen(run: Run, event: RunEvent, now: datetime, reason_code: str | None = None, note: str | None = None) -> Run:
    """Follow the table and write the history."""
    # The table distinguishes the last step from the others; the history has one name for all finished steps (D34 §3).
    name = RunEvent.STEP_DONE if event in (RunEvent.LAST_STEP_DONE, RunEvent.IN_LINE) else event
    line = Happening(now, name.value, run.current_step_id, reason_code, note)
    return replace(run, state=advance(RUN_TRANSITIONS, run.state, event), history=(*run.history, line))


def prepared(run: Run, now: datetime) -> Run:
    """The worktree is there and set up; a new run begins to plan."""
    ready = replace(run, is_prepared=True)
    return happen(ready, RunEvent.PLANNING_STARTED, now) if run.state is RunState.INIT else ready


def base_tested(run: Run, now: datetime, note: str | None = None) -> Run:
    """The tests pass on the base; with a note they did before, and were not run again (RUN-17)."""
    return noted(replace(run, base_tested=run.place.base_commit), TESTED, now, note=note)


def called(run: Run, role: Role) -> Run:
    """A role is about to be called: it is counted before it is launched (RUN-14)."""
    visit = replace(run.visit, calls={**run.visit.calls, role.value: run.calls_of(role) + 1}, calling=role)
    if role is Role.IMPLEMENTER:
        visit = replace(visit, is_tested=False, is_reviewed=False)
    return _count(spent(replace(run, visit=visit), role, Usage(calls=1)), role.value, 1)


def _count(run: Run, what: str, by: int) -> Run:
    """Count a call in the run's own totals."""
    if what == Role.PLANNER:
        return replace(run, planning_calls=run.planning_calls + by)
    calls = {**run.work.calls, what: run.work.calls.get(what, 0) + by}
    return with_work(run, replace(run.work, calls=calls))


def with_work(run: Run, work: StepWork) -> Run:
    """Put what became of the current step in place of what was known of it."""
    return replace(run, steps={**run.steps, run.current_step_id or "": work})


def planned(run: Run, plan: tuple[PlanStep, ...], now: datetime) -> Run:
    """The plan is there; the first step begins."""
    begun = happen(replace(run, plan=after(run.plan, plan)), RunEvent.PLANNED, now)
    return enter(begun, begun.plan[len(run.plan)].id, begun.start)


def enter(run: Run, step_id: str, base: str) -> Run:
    """Begin a visit of a step on top of a commit."""
    work = replace(run.steps.get(step_id, StepWork()), base=base)
    return replace(run, current_step_id=step_id, steps={**run.steps, step_id: work}, visit=Visit())


def implemented(run: Run, changes: Changes, summary: str, now: datetime) -> Run:
    """The implementer has changed the files, and the step is not too large."""
    known = measured(run, changes)
    visit = replace(known.visit, calling=None, summary=summary)
    return happen(replace(known, visit=visit), RunEvent.IMPLEMENTED, now)


def measured(run: Run, changes: Changes) -> Run:
    """The size of a step's changes is known."""
    files, lines = len(changes.files), changes.lines
    known = replace(run, visit=replace(run.visit, changed_files=files, changed_lines=lines, areas=changes.areas))
    return recorded(known, footprint=footprint_of(changes))


def testing(run: Run) -> Run:
    """The tests are about to run."""
    return recorded(_count(run, "tests", 1), tests=())


def tested(run: Run, now: datetime | None = None) -> Run:
    """The tests have passed; without a moment there are none."""
    passed = replace(run, visit=replace(run.visit, is_tested=True))
    return with_work(passed, replace(run.work, tested_at=(*run.work.tested_at, now))) if now else passed


def reviewed(run: Run) -> Run:
    """The reviewer has passed the step."""
    return replace(run, visit=replace(run.visit, is_reviewed=True, calling=None))


def step_done(run: Run, commit: str | None, now: datetime) -> Run:
    """A step is finished, with a commit or (None) without any change; the next one begins on top of it."""
    work = replace(run.work, commit=commit, is_done=True, summary=run.visit.summary, kept=None)
    note = None if commit else "no changes"
    index = run.current_index
    assert index is not None, run.run_id
    base = commit or run.step_base
    following = next((step for step in run.plan[index + 1 :]), None)
    last = RunEvent.LAST_STEP_DONE if run.is_planned else RunEvent.IN_LINE
    done = happen(with_work(run, work), RunEvent.STEP_DONE if following else last, now, note=note)
    done = replace(done, has_edits=False, visit=Visit())
    if following:
        return enter(done, following.id, base)
    return done if run.is_planned else replace(done, current_step_id=None, begun_at=base)


def reported(run: Run, now: datetime, code: str | None = None) -> Run:
    """The report is written: the run is done, and says so if there is nothing in it (REQ-6)."""
    return happen(replace(run, error=RunError(code, "") if code else None), RunEvent.REPORTED, now, code)


def attempt_failed(run: Run, role: Role, why: RunError, limits: RunLimits, now: datetime) -> Run:
    """A role's work failed: it is tried again with this as feedback, or the run stops (RUN-4)."""
    failures = (*run.visit.failures.get(role, ()), why.reason_code)
    visit = replace(
        run.visit,
        calling=None,
        failures={**run.visit.failures, role.value: failures},
        feedback=(*run.visit.feedback, told_of(why)),
    )
    failed = replace(run, visit=visit)
    decision = after_failure(failures, limits.role_attempts)
    if why.reason_code == "QA_REJECTED" and not isinstance(decision, StopRun) and run.is_spent(Role.QA, limits):
        decision = StopRun("QA_REJECTED")  # there is no review of what the implementer would fix
    elif role is Role.QA and not isinstance(decision, StopRun) and run.is_spent(role, limits):
        decision = StopRun(why.reason_code)  # its call before this one counted, though it did not fail
    if isinstance(decision, StopRun):
        return stopped(failed, replace(why, reason_code=decision.reason_code, cause=decision.cause), now)
    event = RunEvent.REVIEW_FAILED if role is Role.QA else RunEvent.ATTEMPT_FAILED
    return happen(failed, event, now, why.reason_code, why.summary)


# Their summary says everything: what the log ends with is only the talk of the agent itself.
_SAY_ALL = frozenset(
    ("QA_REJECTED", "STEP_TOO_LARGE", "MERGE_CONFLICT", "FILE_TOO_LARGE", "SUBMODULE_CHANGED", "CHANGES_REFUSED")
)


def told_of(why: RunError) -> Feedback:
    """Describe a failure for the next call: with a program's output, if the program failed."""
    code = why.cause or why.reason_code
    return Feedback(code, why.summary, "" if code in _SAY_ALL else why.output or why.evidence.stderr_snippet)


def asked(run: Run, role: Role, why: RunError, now: datetime) -> Run:
    """A role asks a person: the run stops, and the call is no attempt (RUN-10)."""
    return stopped(given_back(run, role), why, now)


def given_back(run: Run, role: Role) -> Run:
    """A call was no attempt: a question, or a quota that is used up (RUN-4, RUN-13)."""
    calls = {**run.visit.calls, role.value: run.calls_of(role) - 1}
    return _count(replace(run, visit=replace(run.visit, calls=calls, calling=None)), role.value, -1)


def stopped(run: Run, why: RunError, now: datetime) -> Run:
    """The run stops as the catalogue says; the step remembers it, for the limits of RUN-5."""
    row = reason_for(why.reason_code)
    event = RESULT_STOPS[row.stops_as or RunState.FAILED]
    if run.current_step is not None and run.state in (RunState.IMPLEMENTING, RunState.TESTING):
        stop = StepStop(why.reason_code, why.cause, run.visit.changed_lines, run.visit.areas)
        run = with_work(run, replace(run.work, stops=(*run.work.stops, stop)))
    evidence = replace(why.evidence, failed_at_state=why.evidence.failed_at_state or run.state.value)
    error = replace(why, evidence=replace(evidence, step_id=evidence.step_id or run.current_step_id))
    return happen(
        replace(run, error=error, stopped_in=run.state), event, now, why.reason_code, why.cause or why.summary or None
    )


def left(run: Run, unfinished: Unfinished | None) -> Run:
    """What the unfinished step left in the worktree is kept, and known again at the next start (RUN-7)."""
    if unfinished is None:
        return replace(run, left_tree=None)
    known = replace(run, left_tree=unfinished.tree)
    return with_work(known, replace(known.work, kept=unfinished.commit)) if run.current_step else known


def crashed(run: Run, now: datetime) -> Run:
    """The process crashed in this run, and a person decides how it continues."""
    return stopped(run, RunError("PROCESS_CRASHED", "", facts=flat(detail("stop.crashed"))), now)


def cancelled(run: Run, now: datetime) -> Run:
    """A person ended this run (RUN-12)."""
    return stopped(run, failure(run, "CANCELLED", ""), now)


def rebased(run: Run, commit: str) -> Run:
    """A person committed on the run's branch: the current step, or the plan, continues from there (RUN-7)."""
    if run.current_step is None:
        is_begun = run.begun_at is not None
        return replace(run, begun_at=commit) if is_begun else replace(run, place=replace(run.place, base_commit=commit))
    return with_work(run, replace(run.work, base=commit))


def replaced(run: Run, by: str, now: datetime) -> Run:
    """A new run with a new plan takes this one's place (RUN-6)."""
    cause = run.error.reason_code if run.error else None
    error = RunError("REPLANNED", "", cause, facts=flat(detail("stop.replaced", run_id=by)))
    return happen(replace(run, replaced_by=by, error=error), RunEvent.REPLACED, now, "REPLANNED", by)


def accepting(run: Run, now: datetime, place: str | None = None) -> Run:
    """The run's work is merged, and the tests of that begin; in the run's own worktree if `place` says so."""
    return happen(run, RunEvent.ACCEPTING, now, note=place)


def accepted(run: Run, commit: str, now: datetime, *, is_empty: bool = False) -> Run:
    """The run's work is in the base branch, brought in by a commit; or there was nothing to merge (REQ-6)."""
    code = NOTHING_CHANGED if is_empty else None
    return happen(replace(run, accepted_as=commit, landing=None, error=None), RunEvent.ACCEPTED, now, code, commit)


def not_accepted(run: Run, why: RunError, now: datetime) -> Run:
    """The run's work could not be brought in: it stays done, and waits with this reason (GIT-3)."""
    return happen(replace(run, error=why), RunEvent.NOT_ACCEPTED, now, why.reason_code, why.summary or None)


def sent_back(run: Run, comment: str, now: datetime, *, is_dropped: bool = False) -> Run:
    """A person sends the work back with a comment for the next run (REQ-6), which continues it if it is not dropped."""
    error = replace(failure(run, "SENT_BACK", comment), cause=run.error.reason_code if run.error else None)
    asked = run.error.question if run.error else None
    answers = (*run.answers, (asked, comment)) if asked else run.answers
    closed = replace(run, error=error, answers=answers, is_dropped=is_dropped)
    return happen(closed, RunEvent.SENT_BACK, now, "SENT_BACK", comment)


def noted(run: Run, event: str, now: datetime, reason_code: str | None = None, note: str | None = None) -> Run:
    """Something happened that changes no state, such as a lock that was reclaimed."""
    return replace(run, history=(*run.history, Happening(now, event, run.current_step_id, reason_code, note)))


def pushed(run: Run, now: datetime) -> Run:
    """The run's branch reached the remote."""
    return noted(run, PUSHED, now, note=run.place.branch)


def push_failed(run: Run, why: str, now: datetime) -> Run:
    """The run's branch did not reach the remote; its work is done anyway."""
    return noted(warned(run, PUSH_FAILED), PUSH_FAILED, now, PUSH_FAILED, why or None)


def failure(run: Run, reason_code: str, summary: str, **evidence: object) -> RunError:
    """Name a failure with what is known of where it was seen."""
    return RunError(
        reason_code,
        summary,
        evidence=Evidence(
            failed_at_state=run.state.value,
            step_id=run.current_step_id,
            **evidence,  # type: ignore[arg-type]
        ),
    )
