"""The base branch merged into a run's branch (GIT-3, REQ-6a): in a step of its own, resolved where both conflict.

So a finished run is brought in line with its base (`resume --update`), and the work of a run that was sent back before
the next one plans what is left to do.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from aiflow.domain.agents.call import Feedback
from aiflow.domain.lifecycle import RunEvent
from aiflow.domain.runs.events import enter, happen, noted, with_work
from aiflow.domain.runs.run import Run, Visit
from aiflow.domain.runs.warned import FORMER_BRANCH_GONE, warned

if TYPE_CHECKING:
    from datetime import datetime

    from aiflow.domain.agents.plan import PlanStep
    from aiflow.domain.runs.merge import Update

# A line of the history that changes no state: the run begins on another's branch.
CONTINUED = "CONTINUED"


def updated(run: Run, step: PlanStep, update: Update, now: datetime) -> Run:
    """A finished run works on: the base branch is merged into its branch."""
    merging = _merging(replace(run, error=None, stopped_in=None), step, update)
    event = RunEvent.RESUMED_AT_STEP if update.conflicts else RunEvent.RESUMED_AT_TESTS
    return happen(merging, event, now, note="update")


def continued(run: Run, step: PlanStep, update: Update, now: datetime) -> Run:
    """The work that a run continues is in its branch; where the base has moved on, that is merged in first (REQ-6a)."""
    assert run.continues is not None, run.run_id
    begun = replace(run, begun_at=update.commit, is_prepared=False)
    begun = noted(begun, CONTINUED, now, note=run.continues.run_id)
    if update.commit == run.continues.commit:  # nothing has to be brought in line
        return begun
    event = RunEvent.BASE_CONFLICTS if update.conflicts else RunEvent.BASE_MERGED
    return happen(_merging(begun, step, update), event, now)


def former_gone(run: Run, former_id: str, now: datetime) -> Run:
    """The work that a run was to continue is not in git any more: it begins on its base, and says so."""
    return noted(warned(run, FORMER_BRANCH_GONE), FORMER_BRANCH_GONE, now, FORMER_BRANCH_GONE, former_id)


def _merging(run: Run, step: PlanStep, update: Update) -> Run:
    """Enter the step of a merge: conflicts are resolved; without any, there is nothing to review yet."""
    added = replace(run, plan=(*run.plan, step), is_prepared=False, left_tree=None)
    inside = enter(added, step.id, update.commit)
    work = replace(inside.work, merges=update.base, conflicts=update.conflicts, unmarked=update.unmarked)
    told = tuple(Feedback("MERGE_CONFLICT", summary) for summary in update.tasks()) if update.conflicts else ()
    return replace(with_work(inside, work), visit=Visit(feedback=told, is_reviewed=not update.conflicts))
