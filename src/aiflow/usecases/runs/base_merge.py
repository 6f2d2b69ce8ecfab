"""Merge the base branch into the branch of a run that is finished (GIT-3), or that continues another (REQ-6a)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.agents.plan import merging_step
from aiflow.domain.runs.base_merging import continued, former_gone
from aiflow.domain.runs.merge import merge_ref
from aiflow.domain.runs.undoing import undone_of
from aiflow.domain.runs.worktree import retry_ref

if TYPE_CHECKING:
    from aiflow.domain.agents.former import Continued
    from aiflow.domain.agents.plan import PlanStep
    from aiflow.domain.runs.merge import Landing, Update
    from aiflow.domain.runs.run import Run
    from aiflow.usecases.engine import Engine
    from aiflow.usecases.runs.work import Work


class BaseMerge(NamedTuple):
    """A merge of the base that is made and not laid out, and the step in which that happens."""

    step: PlanStep
    update: Update


def merge_base(engine: Engine, run: Run, undone: Landing | None) -> BaseMerge | None:
    """Merge the base into a run's branch, which stays as it is; None if its plan has no number left for the step.

    What was accepted and `undone` stays in the branch.
    """
    free = merging_step(run.plan, run.place.base_branch, ())
    if free is None:
        return None
    update = engine.merging.update(run.place, merge_ref(run.run_id, free.id), undone)
    step = merging_step(run.plan, run.place.base_branch, update.conflicts)
    assert step is not None, run.run_id
    return BaseMerge(step, update)


def continue_work(work: Work) -> None:
    """Begin on the branch of the run that was sent back, in line with the base (REQ-6a).

    The merge is laid out when the worktree is prepared. A kill on the way leaves what does the same again.
    """
    run, now = work.run, work.engine.time.now()
    assert run.continues is not None, run.run_id
    commit = run.continues.commit
    if work.workspace.compare(commit, commit) is None:
        work.save(former_gone(replace(run, continues=None), run.continues.run_id, now))
        return
    work.workspace.prepare(run.place, commit)
    if work.workspace.tip(run.place) != commit:  # its base was tested there
        work.workspace.go_back(run.place, commit, retry_ref(run.run_id, "former", 1))
    merge = merge_base(work.engine, run, _undone(work, run.continues))
    assert merge is not None, run.run_id
    work.save(continued(run, merge.step, merge.update, now))
    if work.run.plan:
        work.engine.runs.write_planning(work.run)


def _undone(work: Work, continues: Continued) -> Landing | None:
    """Return how the work had come into the base, if that was undone since, and the branch has not seen it yet."""
    old = work.engine.runs.load(work.run.request_id, continues.run_id)
    landing = undone_of(old) if old else None
    if landing is None or landing.undone_as is None:
        return None
    has_seen = work.workspace.is_ancestor(work.run.place, landing.undone_as, continues.commit)
    return None if has_seen else landing
