"""Whether the server is up, and how the checkout stands."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from aiflow.api.answers import answer
from aiflow.api.context import Server
from aiflow.usecases.auto.standing import look_around
from aiflow.usecases.shapes.backlog import ENGLISH
from aiflow.usecases.shapes.status import standing_shape


def routes(server: Server) -> APIRouter:
    """Return the routes about the server itself."""
    router = APIRouter(prefix="/api", tags=["server"])

    @router.get("/health")
    def health(http: HttpRequest) -> Response:
        """Say which server this is; the only call that needs nobody to be signed in."""
        return answer(http, {"instance_id": server.record.instance_id, "version": server.record.version})

    @router.get("/status")
    def status(http: HttpRequest) -> Response:
        """Say what runs, what waits for a person, what is next, and how auto-run stands."""
        engine = server.call(http).engine
        return answer(http, standing_shape(look_around(engine, server.project.auto_records, ENGLISH)))

    return router
