"""The morning (WEB-1): what waits for a person, what runs, what was done, what is next."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from aiflow.api.context import Server
from aiflow.web.drawing import page
from aiflow.web.frame import make_frame


def routes(server: Server) -> APIRouter:
    """Return the first page."""
    router = APIRouter()

    @router.get("/")
    def morning(http: HttpRequest) -> Response:
        call = server.call(http)
        frame = make_frame(call)
        return page(http, call, "morning.html", {"frame": frame, "standing": frame.standing})

    return router
