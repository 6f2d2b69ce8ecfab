"""Notes about a request that is valid but perhaps not what was meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.cli.terminal.render import say
from aiflow.messages.commands import said
from aiflow.usecases.backlog.why import explain_request, unmeetable
from aiflow.usecases.shapes.backlog import describe, describe_problem

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession
    from aiflow.domain.request import RequestId


def warn_of_dependencies(session: CliSession, request_id: RequestId) -> None:
    """Say so at once if what was just written can never be met."""
    for barrier in unmeetable(session.project.sources, request_id):
        say(session.texts("note.warning", text=describe(barrier, session.texts), request_id=request_id))


def warn_of_waiting_run(session: CliSession, request_id: RequestId) -> None:
    """Say so at once if what was just made ready does not run, since its latest run waits for a person."""
    first = explain_request(session.project.sources, session.locks(), request_id).first
    waiting = [barrier for barrier in first.barriers if barrier.reason_code == "LATEST_RUN_NEEDS_INPUT"]
    for barrier in waiting:
        say(session.texts("note.warning", text=describe(barrier, session.texts), request_id=request_id))
    for action in first.actions if waiting else ():
        say(said(action, session.texts), "  → ")


def warn_of_misspelt_keys(session: CliSession, request_id: RequestId) -> None:
    """Name keys that aiflow does not read but that look as if it should."""
    for problem in session.project.editor.misspelt_keys(request_id):
        say(session.texts("note.misspelt", text=describe_problem(problem, session.texts)), "  ")
