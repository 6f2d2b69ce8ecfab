"""Notes about a request that is valid but perhaps not what was meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.cli.render import say
from aiflow.domain.selection import find_barriers
from aiflow.usecases.read_backlog import read_backlog
from aiflow.usecases.shapes import describe, describe_problem

if TYPE_CHECKING:
    from aiflow.cli.session import Session
    from aiflow.domain.request import RequestId


def warn_of_dependencies(session: Session, request_id: RequestId) -> None:
    """Say so at once if what was just written can never be met."""
    backlog = read_backlog(session.project.sources, with_all_runs=False)
    request = backlog.by_id.get(request_id)
    for barrier in find_barriers(request, backlog) if request is not None else ():
        if barrier.reason_code in ("DEPENDS_NOT_FOUND", "DEPENDS_CYCLE"):
            say(session.texts("note.warning", text=describe(barrier, session.texts), request_id=request_id))


def warn_of_misspelt_keys(session: Session, request_id: RequestId) -> None:
    """Name keys that aiflow does not read but that look as if it should."""
    for problem in session.project.requests.misspelt_keys(request_id):
        say(session.texts("note.misspelt", text=describe_problem(problem, session.texts)), "  ")
