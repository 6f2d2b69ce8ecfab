"""How a run ends on disk (RUN-1, RUN-7, RUN-9): unfinished work kept, `errors.json`, the report, then `stage.json`.

`stage.json` comes last: a kill before it leaves an active run that is recovered, and every file here can be written
again without saying anything twice.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from aiflow.domain.lifecycle import RunState
from aiflow.domain.runs.events import left, reported
from aiflow.domain.runs.run import NOTHING_ADDED, NOTHING_CHANGED
from aiflow.domain.runs.worktree import wip_ref
from aiflow.errors import AiflowError
from aiflow.messages.sizes import named_with_sizes
from aiflow.usecases.runs.follow_ups import file_proposals
from aiflow.usecases.runs.report import add_to_report, errors_shape

if TYPE_CHECKING:
    from aiflow.domain.runs.run import Run
    from aiflow.domain.runs.worktree import Unfinished
    from aiflow.usecases.runs.work import Work


def end_run(work: Work, ended: Run) -> None:
    """Write down a run that stops: what its step left, why it stopped, the report; the lock is given back later."""
    ended = file_proposals(work, ended)
    is_in_step = ended.stopped_in in (RunState.IMPLEMENTING, RunState.TESTING)
    unfinished = keep_unfinished(work, ended) if is_in_step else None
    run = left(ended, unfinished) if unfinished is not None else replace(ended, left_tree=_tree(work, ended))
    store, texts = work.engine.runs, work.engine.voice.texts
    try:
        with work.lease.writing():
            step_id = run.current_step_id if unfinished is not None else None
            patch = store.write_patch(run, step_id, unfinished.patch) if unfinished and step_id else None
            store.write_errors(run, errors_shape(run, texts))
            add_to_report(work.engine, run, patch, unfinished.left_out if unfinished else ())
    except AiflowError as error:  # a full disk: that the run stopped is worth more than the words about it
        if error.reason_code == "LOCK_LOST":
            raise
    work.save(run)


def record(work: Work, run: Run) -> None:
    """Record the outcome of something: the run continues, or it ends."""
    if run.is_active:
        work.save(run)
    else:
        end_run(work, run)


def record_verdict(work: Work, run: Run) -> None:
    """Write down what was decided about a run that had ended, and why."""
    with work.lease.writing():
        work.engine.runs.write_errors(run, errors_shape(run, work.engine.voice.texts))
        add_to_report(work.engine, run, None)
    work.save(run)


def finish_run(work: Work) -> None:
    """Write the report of a run whose last step is done; then it is DONE."""
    known = file_proposals(work, work.run)
    run = left(reported(known, work.engine.time.now(), _lacking(work)), None)
    with work.lease.writing():
        add_to_report(work.engine, run, None)
        work.engine.runs.write_errors(run, None)
    work.save(run)


def _lacking(work: Work) -> str | None:
    """Say what a run whose steps are done lacks: all that its base branch does not have, or all of its own (REQ-6)."""
    run = work.run
    if run.has_commits:
        has_own = any(step.commit for step in run.steps.values() if step.merges is None)
        return NOTHING_ADDED if run.begun_at is not None and not has_own else None
    tip = work.workspace.tip(run.place)
    is_in_base = tip is not None and work.workspace.is_ancestor(run.place, tip, f"refs/heads/{run.place.base_branch}")
    return NOTHING_CHANGED if is_in_base else None


def keep_unfinished(work: Work, run: Run, trailers: dict[str, str] | None = None) -> Unfinished | None:
    """Keep what the current step changed under a ref; None if there is nothing, or a commit with these trailers has it.

    Trouble with git must not keep a run from ending, being taken over or cancelled: what comes next meets it too.
    """
    step_id = run.current_step_id
    if step_id is None or not run.is_prepared:
        return None
    try:
        if not work.workspace.is_intact(run.place):
            return None
        if trailers and work.workspace.find_commit(run.place, run.step_base, trailers) is not None:
            return None
        kept = work.workspace.keep_unfinished(run.place, run.step_base, wip_ref(run.run_id, step_id))
    except (AiflowError, OSError):
        return None
    if kept.left_out:
        files = named_with_sizes(kept.left_out)
        work.engine.voice.warn(work.engine.voice.texts("stop.left_out", files=files, path=run.place.path))
    return kept


def _tree(work: Work, run: Run) -> str | None:
    """Return how the worktree is left at a stop outside a step: the next start sees whether a person changed it."""
    try:
        is_there = run.is_prepared and work.workspace.is_intact(run.place)
        return work.workspace.snapshot(run.place) if is_there else None
    except (AiflowError, OSError):
        return None
