"""Requests: list, show, make and change them; start, accept and send back their runs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from aiflow.api.answers import answer, done, matched_versions, run_links, started
from aiflow.api.context import Server
from aiflow.api.documents import PAGE, Cursor, IfMatch, Limit, RequestPath, changes, reads
from aiflow.api.models.errors import STARTING
from aiflow.api.models.requests import (
    BeginBody,
    BrokenRequestAnswer,
    CreateBody,
    CreatedAnswer,
    PatchBody,
    RequestsAnswer,
    SendBackBody,
    ShownRequestAnswer,
    WhyRequestAnswer,
)
from aiflow.api.models.runs import AcceptingAnswer, RunResultAnswer, StartedAnswer, UndoingAnswer, UndoneAnswer
from aiflow.domain.request import Priority, RequestId, RequestStatus, normalize_id
from aiflow.usecases.backlog.create import NewRequest, create_checked
from aiflow.usecases.backlog.list import RequestFilter, list_requests, open_unless
from aiflow.usecases.backlog.patch import Patch, patch_request, text_version
from aiflow.usecases.backlog.show import show_request
from aiflow.usecases.backlog.why import explain_request
from aiflow.usecases.runs.accept import LineComment, send_back, whole_comment
from aiflow.usecases.runs.find import find_newest_run
from aiflow.usecases.server.accept import accept
from aiflow.usecases.server.orders import LeftOut, run_order
from aiflow.usecases.server.undo import undo
from aiflow.usecases.shapes.backlog import created_shape, request_list, shown_shape, why_result
from aiflow.usecases.shapes.pages import with_page
from aiflow.usecases.shapes.runs import run_result

ACCEPTING = (
    *("REQUEST_NOT_FOUND", "RUN_NOT_FOUND", "RUN_NOT_ACCEPTABLE", "RUN_IN_PROGRESS", "MERGE_CONFLICT", "RUN_LOST"),
    *("MERGE_TESTS_FAILED", "CHECKOUT_IN_THE_WAY", "WORKTREE_DIRTY", "REQUEST_INVALID", "NOT_A_REPOSITORY"),
)
UNDOING = (
    *("REQUEST_NOT_FOUND", "RUN_NOT_FOUND", "NOT_UNDOABLE", "RUN_IN_PROGRESS", "UNDO_CONFLICT", "RUN_LOST"),
    *("UNDO_TESTS_FAILED", "CHECKOUT_IN_THE_WAY", "REQUEST_INVALID", "NOT_A_REPOSITORY", "BASE_BRANCH_MISSING"),
)


def routes(server: Server) -> APIRouter:
    """Return the routes about requests."""
    router = APIRouter(prefix="/api/requests", tags=["requests"])
    _reading(router, server)
    _writing(router, server)
    _working(router, server)
    return router


def _reading(router: APIRouter, server: Server) -> None:
    @router.get("", **reads(RequestsAnswer))
    def list_(
        http: HttpRequest,
        status: Annotated[list[RequestStatus] | None, Query()] = None,
        priority: Annotated[list[Priority] | None, Query()] = None,
        label: Annotated[list[str] | None, Query()] = None,
        limit: Limit = PAGE,
        after: Cursor = None,
        all: bool = False,  # noqa: A002, FBT001, FBT002
    ) -> Response:
        """List requests in selection order; done and archived ones only if asked for."""
        engine = server.call(http).engine
        only = RequestFilter(open_unless(status or (), is_all=all), priority or (), label or ())
        found = list_requests(engine.backlog, lambda: engine.locks, only, limit=limit, after=after)
        return answer(http, with_page(request_list(found), found))

    @router.get("/{request_id}", **reads(ShownRequestAnswer | BrokenRequestAnswer, "REQUEST_NOT_FOUND"))
    def show(http: HttpRequest, request_id: RequestPath) -> Response:
        """Show one request with its text and its runs; send its ETag with a change."""
        return _shown(http, server, normalize_id(request_id))

    @router.get("/{request_id}/why", **reads(WhyRequestAnswer, "REQUEST_NOT_FOUND"))
    def why(http: HttpRequest, request_id: RequestPath) -> Response:
        """Explain why a request is not running, down to the roots, and how to fix it."""
        call = server.call(http)
        engine = call.engine
        found = explain_request(engine.backlog, engine.locks, normalize_id(request_id), call.missing_merges)
        return answer(http, why_result(found.stations, found.warnings))


def _writing(router: APIRouter, server: Server) -> None:
    @router.post("", **changes(CreatedAnswer, "REQUEST_EXISTS", "REQUESTS_DIR_MISSING", status=201))
    def create(http: HttpRequest, body: CreateBody) -> Response:
        """Create a request."""
        call = server.call(http)
        engine = call.engine
        new = NewRequest(
            " ".join(body.title.split()),
            body.body or call.texts("new.body"),
            Priority(body.priority),
            RequestStatus(body.status),
            tuple(body.depends_on),
            tuple(body.labels),
            body.request_id,
        )
        request_id, path = create_checked(new, engine.editor, engine.journal, engine.time.now)
        return done(created_shape(new, request_id, path), 201, location=request_link(request_id))

    @router.patch(
        "/{request_id}",
        **changes(
            ShownRequestAnswer | BrokenRequestAnswer,
            *("REQUEST_NOT_FOUND", "EDIT_CONFLICT", "EDITED_ELSEWHERE", "REQUEST_INVALID", "STATUS_NOT_ALLOWED"),
        ),
    )
    def change(http: HttpRequest, request_id: RequestPath, body: PatchBody, if_match: IfMatch = None) -> Response:
        """Change keys and text of a request in one step; a change that somebody else made is not lost."""
        engine, named = server.call(http).engine, normalize_id(request_id)
        given = body.model_dump(exclude_none=True)
        text = given.pop("body", None)
        values = {key: tuple(value) if isinstance(value, list) else value for key, value in given.items()}
        patch = Patch(values, text, matched_versions(if_match))
        patch_request(named, patch, engine.source, engine.editor, (engine.journal, engine.time.now))
        return _shown(http, server, named)


def _working(router: APIRouter, server: Server) -> None:
    @router.post("/{request_id}/run", **changes(StartedAnswer, *STARTING, status=202))
    def run(http: HttpRequest, request_id: RequestPath, body: BeginBody | None = None) -> Response:
        """Start a run; the answer comes once the run exists."""
        call = server.call(http)
        how = LeftOut(**body.model_dump()) if body else LeftOut()
        return started(server.work.start(run_order(call.engine.source, request_id, call.person, how)))

    @router.post(
        "/{request_id}/accept",
        **changes(RunResultAnswer, *ACCEPTING, status=200, more={202: AcceptingAnswer}),
    )
    def accept_(http: HttpRequest, request_id: RequestPath) -> Response:
        """Merge a finished run and set its request done; 202 if testing the merge takes longer than a moment."""
        call = server.call(http)
        run, result = accept(call.engine, server.work, normalize_id(request_id), call.person)
        links = run_links(run.request_id, run.run_id)
        if result is not None:
            return done(result)
        shape = {"request_id": run.request_id, "run_id": run.run_id, **links}
        return done(shape, 202, location=links["api_url"])

    @router.post("/{request_id}/undo", **changes(UndoneAnswer, *UNDOING, status=200, more={202: UndoingAnswer}))
    def undo_(http: HttpRequest, request_id: RequestPath) -> Response:
        """Undo an acceptance: remove its work from the base branch and block the request; 202 as for accept."""
        call = server.call(http)
        run, result = undo(call.engine, server.work, normalize_id(request_id), call.person)
        links = run_links(run.request_id, run.run_id)
        if result is not None:
            return done(result)
        return done({"request_id": run.request_id, "run_id": run.run_id, **links}, 202, location=links["api_url"])

    @router.post(
        "/{request_id}/send-back",
        **changes(RunResultAnswer, *("REQUEST_NOT_FOUND", "RUN_NOT_FOUND", "RUN_NOT_ACCEPTABLE", "RUN_IN_PROGRESS")),
    )
    def send_back_(http: HttpRequest, request_id: RequestPath, body: SendBackBody) -> Response:
        """Send a run back with a comment: its request is ready again, and the next run continues its branch."""
        engine = server.call(http).engine
        run = find_newest_run(engine, normalize_id(request_id))
        lines = [LineComment(each.path, each.line, each.text, each.quote) for each in body.lines]
        comment = whole_comment(run, body.comment, lines)
        return done(run_result(send_back(engine, run, comment, is_dropped=body.fresh)))


def request_link(request_id: str) -> str:
    """Return a request's place in the API."""
    return run_links(request_id, "")["api_url"].removesuffix("/runs/")


def _shown(http: HttpRequest, server: Server, request_id: RequestId) -> Response:
    engine = server.call(http).engine
    version = text_version(engine.editor, request_id)  # first: what is shown is that or newer, and never older
    shown = show_request(engine.backlog, request_id, lambda: engine.locks)
    return answer(http, shown_shape(shown), version=version)
