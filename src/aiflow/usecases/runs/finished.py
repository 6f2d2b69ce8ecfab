"""What a person wants to know of a finished run before they accept it (WEB-1, GIT-3): its size, its tests, its base."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.lifecycle import RunState
from aiflow.errors import AiflowError
from aiflow.usecases.runs.diff import diff_run, ends_of

if TYPE_CHECKING:
    from aiflow.domain.runs.run import Run
    from aiflow.usecases.engine import Engine


class Finished(NamedTuple):
    """A finished run in facts; what is not known, or no longer matters, is None."""

    # Files, added and deleted lines.
    size: tuple[int, int, int] | None
    is_tested: bool | None
    has_base_moved: bool | None


def look_at_finished(engine: Engine, run: Run) -> Finished | None:
    """Look at a finished run; None if it is not done. Changes nothing."""
    if run.state is not RunState.DONE:
        return None
    # Every step of a run that is done has passed the tests that it had. An acceptance that failed says why itself.
    is_tested = any(work.calls.get("tests") for work in run.steps.values()) if run.error is None else None
    return Finished(_size(engine, run), is_tested, None if run.accepted_as else _has_base_moved(engine, run))


def _size(engine: Engine, run: Run) -> tuple[int, int, int] | None:
    try:
        diff = diff_run(engine, run)
    except AiflowError:
        return None
    if diff.is_gone:
        return None
    return len(diff.files), sum(file.added for file in diff.files), sum(file.deleted for file in diff.files)


def _has_base_moved(engine: Engine, run: Run) -> bool | None:
    """Return whether the base branch moved since the run was made, or last brought in line with it."""
    began, base = ends_of(run)[0], f"refs/heads/{run.place.base_branch}"
    workspace = engine.workspaces(run.run_id)
    try:
        if workspace.is_ancestor(run.place, base, began):
            return False
        return True if workspace.is_ancestor(run.place, began, base) else None
    except AiflowError:
        return None
