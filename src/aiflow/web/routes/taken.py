"""What a page that is open says when somebody else did what waited there: who, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request as HttpRequest
from starlette.responses import HTMLResponse, Response

from aiflow.api.context import Server
from aiflow.domain.activity import ActivityKind
from aiflow.domain.request import normalize_id, parse_instant
from aiflow.usecases.activity import ActivityFilter, latest_activity
from aiflow.web.drawing import render, request_path, run_path

if TYPE_CHECKING:
    from datetime import datetime

    from aiflow.ports.journal import JournalEntry

# What ends waiting: the run continues or is closed, or the request is set to something else.
KINDS = (ActivityKind.TRANSITION, ActivityKind.STATUS_CHANGED)
WAITED = frozenset({"NEEDS_INPUT", "FAILED", "DONE", "blocked"})
LOOKED_THROUGH = 40


def routes(server: Server) -> APIRouter:
    """Return the route."""
    router = APIRouter()

    @router.get("/requests/{request_id}/taken")
    def taken(http: HttpRequest, request_id: str, since: Annotated[str, Query(max_length=40)]) -> Response:
        call, name, began = server.call(http), str(normalize_id(request_id)), parse_instant(since)
        found, _ = latest_activity(server.project.journal, LOOKED_THROUGH, ActivityFilter(KINDS, request_id=name))
        ends = [each for each in found.entries if began and _ends_waiting(each, began)]
        if not ends:  # it waits as before, only elsewhere
            return Response(status_code=204)
        entry, run_id = ends[-1], ends[-1].fields.get("run_id")
        facts = {
            "request_id": name,
            "who": entry.fields.get("by"),
            "at": parse_instant(str(entry.fields.get("at") or "")),
            "link": run_path(name, str(run_id)) if run_id else request_path(name),
        }
        return HTMLResponse(render(http, call, "parts/taken.html", facts))

    return router


def _ends_waiting(entry: JournalEntry, began: datetime) -> bool:
    data, at = entry.fields.get("data"), parse_instant(str(entry.fields.get("at") or ""))
    return isinstance(data, dict) and data.get("from") in WAITED and at is not None and at > began
