"""What a run changed (API, WEB-1): against its base or in one step, from commits, so that its worktree may be gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.runs.step_work import StepWork
from aiflow.domain.runs.worktree import RunDiff
from aiflow.errors import BadInputError

if TYPE_CHECKING:
    from aiflow.domain.runs.run import Run
    from aiflow.usecases.engine import Engine

MOST_CHARACTERS = 2_000_000


def diff_run(engine: Engine, run: Run, step: str | None = None) -> RunDiff:
    """Return what a run, or one step of it, changed; what an unfinished step left is included and marked."""
    step_id = _step_id(run, step)
    work = run.steps.get(step_id, StepWork()) if step_id else run.work
    old = _base(run) if step_id is None else work.base or run.start
    tip = run.tip if step_id is None else (work.commit if work.is_done else None) or old
    kept = None if work.is_done else work.kept
    workspace = engine.workspaces(run.run_id)
    left = workspace.compare(work.base or run.start, kept) if kept else None
    # What was kept may be gone while the run's own commits are there: those are shown then.
    new = kept if kept and left is not None else tip
    found = left if step_id is not None and left is not None else workspace.compare(old, new)
    if found is None:
        return RunDiff(run.request_id, run.run_id, step_id, old, new, is_gone=True)
    return RunDiff(
        run.request_id,
        run.run_id,
        step_id,
        old,
        new,
        found.files,
        _first_lines(found.text),
        unfinished=(step_id or run.current_step_id) if left and left.files else None,
        unfinished_paths=frozenset(file.path for file in left.files) if left else frozenset(),
        is_cut=len(found.text) > MOST_CHARACTERS,
    )


def ends_of(run: Run) -> tuple[str, str]:
    """Return the commits between which a run's finished work lies: what it is compared with, and its last one."""
    return _base(run), run.tip


def _step_id(run: Run, step: str | None) -> str | None:
    """Return the step that is meant, by its id or its number."""
    if step is None:
        return None
    names = {planned.id: planned.id for planned in run.plan} | {str(planned.number): planned.id for planned in run.plan}
    if step.upper() not in names:
        raise BadInputError(detail=f"{step}: {', '.join(planned.id for planned in run.plan)}")
    return names[step.upper()]


def _base(run: Run) -> str:
    """Return what a run is compared with: where it began, or the base branch that was merged into it last (GIT-3)."""
    merged = [run.steps[planned.id].merges for planned in run.plan if planned.id in run.steps]
    return next(filter(None, reversed(merged)), None) or run.place.base_commit


def _first_lines(text: str) -> str:
    """Cut a text that is too long at the end of a line."""
    return text if len(text) <= MOST_CHARACTERS else text[: text.rfind("\n", 0, MOST_CHARACTERS) + 1]
