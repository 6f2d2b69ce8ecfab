"""The application: one guard before every route, every error with a reason code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from fastapi import Depends, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match

from aiflow import __version__
from aiflow.api.answers import error_answer
from aiflow.api.context import texts_for
from aiflow.api.documents import describe_access, operation_id, said_once
from aiflow.api.guard import AccessGuard
from aiflow.api.routes import (
    activity,
    doctor,
    events,
    github,
    health,
    locks,
    metrics,
    queue,
    requests,
    runs,
    sessions,
    tasks,
)
from aiflow.domain.server.guard import is_page
from aiflow.errors import AiflowError, BadInputError
from aiflow.messages.details import words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fastapi import APIRouter
    from starlette.requests import Request as HttpRequest
    from starlette.responses import Response

    from aiflow.api.context import Server

    ErrorPage = Callable[[HttpRequest, AiflowError], Response]

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
ROOMS = (health, metrics, requests, runs, queue, tasks, doctor, locks, activity, sessions, events, github)


def make_app(server: Server, pages: Iterable[APIRouter] = (), error_page: ErrorPage | None = None) -> AccessGuard:
    """Put the application together: the API, and the pages beside it, whose errors are pages too."""
    app = _application(server)
    for page in pages:
        app.include_router(page, include_in_schema=False)
    _answer_errors(app, server, error_page)
    return AccessGuard(app, server)


def document() -> dict[str, Any]:
    """Return the OpenAPI document, as `/openapi.json` answers it; no checkout is needed for that."""
    return _application(cast("Server", None)).openapi()


def _application(server: Server) -> FastAPI:
    app = FastAPI(
        title="aiflow",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
        redirect_slashes=False,
        generate_unique_id_function=operation_id,
        dependencies=[Depends(said_once)],
    )
    describe_access(app)
    for room in ROOMS:
        app.include_router(room.routes(server))
    return app


def _methods_of(app: FastAPI, http: HttpRequest) -> list[str]:
    """Return the methods that a path can be called with; Starlette names those of one route, and a path has several."""
    scopes = ({**http.scope, "method": method} for method in METHODS)
    return [scope["method"] for scope in scopes if any(each.matches(scope)[0] is Match.FULL for each in app.routes)]


def _answer_errors(app: FastAPI, server: Server, error_page: ErrorPage | None) -> None:
    """Give every error a reason code; what aiflow did not foresee is its own defect, and no traceback is shown."""

    def known(http: HttpRequest, error: AiflowError) -> Response:
        if error_page is not None and is_page(http.scope["path"]):
            return error_page(http, error)
        return error_answer(error, texts_for(http, server.language))

    def unfit(http: HttpRequest, error: RequestValidationError) -> Response:
        wrong = [f"{'.'.join(str(part) for part in each['loc'])}: {each['msg']}" for each in error.errors()]
        return known(http, BadInputError(detail="\n".join(wrong)))

    def unknown_route(http: HttpRequest, error: HTTPException) -> Response:
        code = {404: "ROUTE_NOT_FOUND", 405: "METHOD_NOT_ALLOWED"}.get(error.status_code)
        if code is None:  # FastAPI says so of a body that is too deep, or has too long a number in it
            return known(http, BadInputError(detail=words("api.not_json")))
        answer = known(http, AiflowError(reason_code=code, method=http.method, path=http.url.path))
        answer.headers.update(error.headers or {})
        if error.status_code == 405:
            answer.headers["Allow"] = ", ".join(_methods_of(app, http))
        return answer

    def defect(http: HttpRequest, error: Exception) -> Response:
        return known(http, AiflowError(detail=type(error).__name__))

    app.exception_handler(AiflowError)(known)
    app.exception_handler(RequestValidationError)(unfit)
    app.exception_handler(HTTPException)(unknown_route)
    app.exception_handler(Exception)(defect)
