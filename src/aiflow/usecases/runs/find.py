"""Which run is meant (SPEC §13): one by its id, a request's latest, or its newest."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from aiflow.domain.next_action import ActionKind, NextAction, shell
from aiflow.domain.request import RequestId, RequestStatus
from aiflow.domain.run_summary import LOST
from aiflow.errors import AiflowError, NotFoundError
from aiflow.usecases.read_backlog import is_known

if TYPE_CHECKING:
    from aiflow.domain.runs.run import Run
    from aiflow.usecases.engine import Engine
    from aiflow.usecases.read_backlog import BacklogSources

RUN_PREFIX = "RUN-"


def is_run(sources: BacklogSources, name: RequestId) -> bool:
    """Return whether a name is a run's; a request may be named like one."""
    return name.startswith(RUN_PREFIX) and not is_known(sources.requests, name)


def find_run(engine: Engine, name: RequestId) -> Run:
    """Return the run that is meant: one by its id, or a request's latest (SPEC §13)."""
    latest = engine.runs.latest([name]).get(name)
    if latest is not None:  # also of a request whose file is gone
        return load_run(engine, name, latest.run_id)
    owner = engine.runs.find(name)
    if owner is not None:
        return load_run(engine, owner, name)
    if name.startswith(RUN_PREFIX):
        raise NotFoundError(reason_code="RUN_NOT_FOUND", name=name, commands=(NextAction(ActionKind.RUNS),))
    request = engine.source.load(name)  # an unknown request is reported as one
    first = ActionKind.RUN if request.status is RequestStatus.READY else ActionKind.SHOW
    commands = (NextAction(first, name), NextAction(ActionKind.WHY, name))
    raise NotFoundError(reason_code="RUN_NOT_FOUND", request_id=name, name=name, commands=commands)


def find_run_or_newest(engine: Engine, name: RequestId | None) -> Run:
    """Return the run that is meant; without a name the newest of all requests."""
    if name is not None:
        return find_run(engine, name)
    for owner, run in engine.runs.page(limit=1)[0]:
        return load_run(engine, owner, run.run_id)
    raise NotFoundError(reason_code="RUN_NOT_FOUND", name="runs/")


def find_newest_run(engine: Engine, name: RequestId) -> Run:
    """Return the run that is accepted or sent back: one by its id, or a request's last attempt."""
    return newest_run(engine, name) or find_run(engine, name)


def newest_run(engine: Engine, request_id: RequestId) -> Run | None:
    """Return a request's newest run: what is accepted or sent back is the last attempt, whatever an older one said."""
    run_id = newest_run_id(engine, request_id)
    return engine.runs.load(request_id, run_id) if run_id else None


def newest_run_id(engine: Engine, request_id: RequestId) -> str | None:
    """Return the id of a request's newest run; None if it has none."""
    return next((run.run_id for run in engine.runs.all_of(request_id)), None)


def find_run_of(engine: Engine, request_id: str, run_id: str) -> Run:
    """Return one run of a request by both of their ids, looked up and never used as they are."""
    if engine.runs.find(run_id, request_id) != request_id:
        raise NotFoundError(reason_code="RUN_NOT_FOUND", request_id=request_id, name=run_id)
    return load_run(engine, request_id, run_id)


def require_request(engine: Engine, run: Run) -> None:
    """Refuse to continue a run whose request is gone, naming where its work is and the ways to it (ERR-1)."""
    name, place = RequestId(run.request_id), run.place
    if is_known(engine.source, name):
        return
    raise NotFoundError(
        request_id=name,
        run_id=run.run_id,
        branch=place.branch,
        base_branch=place.base_branch,
        path=f"{engine.settings.requests_dir}/{name}.md",
        look=NextAction(ActionKind.DIFF, run.request_id, run.run_id),
        merge=shell(f"git merge {shlex.quote(place.branch)}"),
    )


def current(engine: Engine, run: Run) -> Run:
    """Return a run as it is now; as it was, if it cannot be read any more."""
    return engine.runs.load(run.request_id, run.run_id) or run


def load_run(engine: Engine, request_id: str, run_id: str) -> Run:
    """Return a run that exists, or say that its file is lost."""
    run = engine.runs.load(request_id, run_id)
    if run is None:
        raise AiflowError(reason_code=LOST, request_id=request_id, run_id=run_id, detail=f"{run_id}/stage.json")
    return run
