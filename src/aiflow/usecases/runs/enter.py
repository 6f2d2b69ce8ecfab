"""Go to where a run works (CLI `shell`): its worktree, to look at it or to fix something by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.lifecycle import RunState
from aiflow.domain.next_action import ActionKind, NextAction
from aiflow.domain.reasons import way_to_mend
from aiflow.domain.request import RequestId
from aiflow.domain.runs.stopped import recommended
from aiflow.errors import ConflictError
from aiflow.messages.details import words
from aiflow.usecases.runs.find import current, newest_run_id
from aiflow.usecases.runs.logs import is_worked_on

if TYPE_CHECKING:
    from collections.abc import Iterator

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
            reason_code="WORKTREE_LOST",
            request_id=run.request_id,
            run_id=run.run_id,
            detail=_where_it_is(run),
            commands=(*_ways_to_one(engine, run), NextAction(ActionKind.DIFF, run_id=run.run_id)),
        )
    return Workplace(run, is_worked_on(engine, run))


def way_on_by_hand(engine: Engine, place: Workplace) -> NextAction | None:
    """Return what takes over what a person changed in a worktree, as the run stands now; None if nothing does."""
    run = current(engine, place.run)
    is_newest = newest_run_id(engine, RequestId(run.request_id)) == run.run_id
    if place.is_worked_on or run.accepted_as or not is_newest:
        return None
    if run.state is RunState.DONE:
        return NextAction(ActionKind.ACCEPT, run.request_id)
    is_waiting = run.state is RunState.NEEDS_INPUT
    return NextAction(ActionKind.RESUME, run.request_id).having(keep_changes="") if is_waiting else None


def _where_it_is(run: Run) -> str:
    """Say where the work of a run without a worktree is."""
    place = run.place
    if run.accepted_as:
        return words("enter.accepted", run_id=run.run_id, base=place.base_branch, commit=run.accepted_as[:12])
    return words("enter.branch", run_id=run.run_id, branch=place.branch)


def _ways_to_one(engine: Engine, run: Run) -> Iterator[NextAction]:
    """Yield what makes the worktree again, or else brings a run to its end; nothing if it has come to that."""
    if run.is_active:
        yield NextAction(ActionKind.LOGS, run.request_id)
    elif newest_run_id(engine, RequestId(run.request_id)) != run.run_id or run.accepted_as:
        return
    elif run.state is RunState.DONE:
        yield NextAction(ActionKind.ACCEPT, run.request_id)
    elif run.state is RunState.NEEDS_INPUT and run.error is not None:
        way = way_to_mend(run.error.reason_code, run.request_id, run.error.cause, recommended(run))
        yield way or NextAction(ActionKind.RESUME, run.request_id)
