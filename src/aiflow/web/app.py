"""The whole application: pages and API behind one guard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.api.app import make_app as make_api
from aiflow.web import static_files
from aiflow.web.acting import refused
from aiflow.web.routes import (
    activity,
    backlog,
    deeds,
    dialogs,
    doctor,
    entrance,
    evening,
    morning,
    queue,
    requests,
    run,
    settings,
    taken,
)

if TYPE_CHECKING:
    from starlette.requests import Request as HttpRequest
    from starlette.responses import Response

    from aiflow.api.context import Server
    from aiflow.api.guard import AccessGuard
    from aiflow.errors import AiflowError

ROOMS = (
    *(static_files, entrance, morning, evening, backlog, requests, run, deeds, taken, dialogs),
    *(queue, doctor, settings, activity),
)


def make_app(server: Server) -> AccessGuard:
    """Put the application together; who asked for a page gets its errors as a page."""

    def error_page(http: HttpRequest, error: AiflowError) -> Response:
        return refused(http, server.call(http), error)

    return make_api(server, [room.routes(server) for room in ROOMS], error_page)
