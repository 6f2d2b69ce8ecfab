"""Requests: list and show them, and start their runs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from aiflow.api.answers import answer, done, run_links
from aiflow.api.context import Server
from aiflow.domain.request import Priority, RequestId, RequestStatus
from aiflow.usecases.backlog.list import RequestFilter, list_requests, open_unless
from aiflow.usecases.backlog.show import show_request
from aiflow.usecases.server.start_work import WorkOrder, command, entered
from aiflow.usecases.shapes.backlog import request_list, shown_shape
from aiflow.usecases.shapes.pages import with_page

PAGE = 100
MOST_A_PAGE = 500


def routes(server: Server) -> APIRouter:
    """Return the routes about requests."""
    router = APIRouter(prefix="/api/requests", tags=["requests"])

    @router.get("")
    def list_(
        http: HttpRequest,
        status: Annotated[list[RequestStatus] | None, Query()] = None,
        priority: Annotated[list[Priority] | None, Query()] = None,
        label: Annotated[list[str] | None, Query()] = None,
        limit: Annotated[int, Query(ge=1, le=MOST_A_PAGE)] = PAGE,
        after: str | None = None,
        all: bool = False,  # noqa: A002, FBT001, FBT002
    ) -> Response:
        """List requests in selection order; what is done or archived only if it is asked for."""
        engine = server.call(http).engine
        only = RequestFilter(open_unless(status or (), is_all=all), priority or (), label or ())
        found = list_requests(engine.backlog, lambda: engine.locks, only, limit=limit, after=after)
        return answer(http, with_page(request_list(found), found))

    @router.get("/{request_id}")
    def show(http: HttpRequest, request_id: str) -> Response:
        """Show one request with its text and its runs."""
        engine = server.call(http).engine
        return answer(http, shown_shape(show_request(engine.backlog, RequestId(request_id), lambda: engine.locks)))

    @router.post("/{request_id}/run", status_code=202)
    def run(http: HttpRequest, request_id: str) -> Response:
        """Start a run; answered once the run exists."""
        call = server.call(http)
        order = WorkOrder(command("run", request_id), call.person, entered(request_id))
        begun = server.work.start(order)
        links = run_links(str(begun.request_id), str(begun.run_id))
        return done({"request_id": begun.request_id, "run_id": begun.run_id, **links}, 202, location=links["api_url"])

    return router
