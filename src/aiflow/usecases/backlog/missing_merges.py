"""Done dependencies whose merge is not in the base branch (AUT-5): a run that starts now starts without their work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.backlog.selection import Barrier
from aiflow.domain.lifecycle import RunState
from aiflow.domain.request import RequestStatus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiflow.domain.request import Request, RequestId
    from aiflow.domain.runs.run import Run
    from aiflow.ports import AutoRecords
    from aiflow.usecases.engine import Engine

CODE = "DEPENDS_NOT_IN_BASE"


def missing_merges(engine: Engine, request: Request, base_branch: str) -> tuple[Barrier, ...]:
    """Name each done dependency whose merge the base branch does not have; it keeps nothing from running."""
    return tuple(_missing(engine, request, base_branch)) if base_branch and request.depends_on else ()


def base_now(engine: Engine, records: AutoRecords) -> str:
    """Return the base branch of what runs next: that of a running auto-run, or of one that the next start continues."""
    session = records.load()
    night = session.base_branch if session is not None and session.is_interrupted else ""
    return engine.base_branch or night or engine.find_base()


def _missing(engine: Engine, request: Request, base_branch: str) -> Iterator[Barrier]:
    workspaces = engine.workspaces(None)
    for wanted in request.depends_on:
        run = _accepted_run(engine, wanted)
        if run is None or run.accepted_as is None:
            continue
        if workspaces.is_ancestor(run.place, run.accepted_as, f"refs/heads/{base_branch}"):
            continue
        if engine.source.status(wanted) is RequestStatus.DONE:
            merge = (("into", run.place.base_branch), ("commit", run.accepted_as[:12]))
            yield Barrier(CODE, (("dependency", wanted), ("base", base_branch), *merge))


def _accepted_run(engine: Engine, request_id: RequestId) -> Run | None:
    """Return the newest run of a request that was accepted, if one was."""
    for each in engine.runs.all_of(request_id):
        run = engine.runs.load(request_id, each.run_id) if each.state is RunState.DONE else None
        if run is not None and run.accepted_as:
            return run
    return None
