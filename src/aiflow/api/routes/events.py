"""The event stream: what happens, as it happens (API-3)."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from aiflow.api.context import Server
from aiflow.api.events import EventStream
from aiflow.api.models.errors import ALWAYS, MACHINE, errors

DESCRIPTION = "One event each: its kind, its ids as JSON, and, if it is an entry of the journal, its cursor as the id."
EXAMPLE = 'id: 1:2048\nevent: activity\ndata: {"kind":"transition","request_id":"RQ-001","run_id":"RUN-…"}\n\n'


def routes(server: Server) -> APIRouter:
    """Return the route of the event stream."""
    router = APIRouter(prefix="/api", tags=["activity"])

    @router.get(
        "/events",
        response_class=Response,
        responses={
            **errors(*ALWAYS, *MACHINE),
            200: {"description": DESCRIPTION, "content": {"text/event-stream": {"example": EXAMPLE}}},
        },
    )
    async def events(http: HttpRequest, after: Annotated[str | None, Query(max_length=40)] = None) -> Response:
        """Follow what happens; `Last-Event-ID`, or `after`, is the id of the last event that the caller has."""
        last = http.headers.get("last-event-id") or after or None
        return EventStream(server.events, last, lambda: server.is_unguarded or server.who(http) is not None)

    return router
