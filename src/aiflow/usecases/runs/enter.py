"""Go to where a run works (CLI `shell`): its worktree, to look at it or to fix something by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.errors import ConflictError
from aiflow.usecases.runs.logs import is_worked_on

if TYPE_CHECKING:
    from aiflow.domain.runs.run import Run
    from aiflow.usecases.engine import Engine


class Workplace(NamedTuple):
    """A run whose worktree is there, and whether somebody works in it at this moment."""

    run: Run
    is_worked_on: bool


def enter_worktree(engine: Engine, run: Run) -> Workplace:
    """Return where a run works, or say that its worktree is gone; changes nothing."""
    if not engine.workspaces(run.run_id).is_intact(run.place):
        raise ConflictError(
            reason_code="WORKTREE_LOST", request_id=run.request_id, run_id=run.run_id, detail=run.place.path
        )
    return Workplace(run, is_worked_on(engine, run))
