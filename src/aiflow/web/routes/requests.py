"""A request (WEB-1): why it does not run, what it says, what was tried; made, edited, set, and no change lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import HTMLResponse, Response

from aiflow.api.context import CallContext, Server
from aiflow.domain.backlog.explanation import explain
from aiflow.domain.lifecycle import PERSON_EVENTS
from aiflow.domain.request import LIST_KEYS, Priority, RequestId, RequestStatus, Value, normalize_id
from aiflow.errors import AiflowError, BadInputError, ConflictError, NotFoundError
from aiflow.messages.details import words
from aiflow.usecases.backlog.create import NewRequest, create_checked, title_of
from aiflow.usecases.backlog.patch import Patch
from aiflow.usecases.backlog.rewrite import rewrite_request
from aiflow.usecases.queue.add import add_orders
from aiflow.usecases.queue.orders import TypedOrder, orders_of
from aiflow.web.acting import Fields, Form, Receipt, act, refused
from aiflow.web.doing import change_keys, start_run
from aiflow.web.drawing import REQUEST, is_part, page, render, request_path
from aiflow.web.frame import make_frame
from aiflow.web.request_page import REQUEST_KEYS, broken_facts, request_facts, whole_text

if TYPE_CHECKING:
    from collections.abc import Mapping


def routes(server: Server) -> APIRouter:
    """Return a request's pages, and what is done on them."""
    router = APIRouter()
    _making(router, server)
    _showing(router, server)
    _changing(router, server)
    return router


def _making(router: APIRouter, server: Server) -> None:
    @router.get("/new")
    def new(http: HttpRequest) -> Response:
        call = server.call(http)
        return page(http, call, "new_request.html", {"frame": make_frame(call), **_choices()})

    @router.post("/requests")
    def create(http: HttpRequest, form: Fields) -> Response:
        call = server.call(http)
        return act(http, call, lambda: _create(call, form))


def _showing(router: APIRouter, server: Server) -> None:
    @router.get(REQUEST)
    def show(http: HttpRequest, request_id: str) -> Response:
        call, named = server.call(http), normalize_id(request_id)
        board = call.look()  # what its form sends is compared with the file again
        frame = make_frame(call, board)
        if named in board.backlog.by_id:
            stations = explain(named, board.backlog)
            facts = request_facts(call, board, stations)
            return page(http, call, "request.html", {"frame": frame, **facts, **_choices()})
        files = tuple(file for file in board.backlog.invalid if named in file.names)
        if not files:
            raise NotFoundError(request_id=named)
        return page(http, call, "broken_request.html", {"frame": frame, **broken_facts(call, named, files)})

    @router.get(f"{REQUEST}/edit")
    def edit_page(http: HttpRequest, request_id: str) -> Response:
        call, named = server.call(http), normalize_id(request_id)
        text = call.engine.editor.whole_text(named)
        facts = {"request_id": named, "before": text, "text": text, "theirs": None}
        return page(http, call, "edit_request.html", {"frame": make_frame(call), **facts})


def _changing(router: APIRouter, server: Server) -> None:
    @router.post(f"{REQUEST}/edit")
    def edit(http: HttpRequest, request_id: str, form: Fields) -> Response:
        return _edit(http, server.call(http), normalize_id(request_id), form)

    @router.post(f"{REQUEST}/set")
    def set_(http: HttpRequest, request_id: str, form: Fields) -> Response:
        return _set(http, server.call(http), normalize_id(request_id), form)

    @router.post(f"{REQUEST}/archive")
    def archive(http: HttpRequest, request_id: str) -> Response:
        call, named = server.call(http), normalize_id(request_id)

        def do() -> Receipt:
            change_keys(call, named, Patch({"status": RequestStatus.ARCHIVED.value}))
            return Receipt(call.texts("web.receipt.archived", id=named), request_path(named))

        return act(http, call, do)

    @router.post(f"{REQUEST}/queue")
    def queue(http: HttpRequest, request_id: str) -> Response:
        call = server.call(http)

        def do() -> Receipt:
            engine, named = call.engine, normalize_id(request_id)
            makers = orders_of(TypedOrder((named,)), engine.backlog, lambda: engine, normalize_id, call.texts)
            add_orders(makers, None, lambda: call.view(is_to_write=True).desk, lambda: engine)
            return Receipt(call.texts("web.receipt.queued", id=named), "/queue", call.texts("web.page.queue"))

        return act(http, call, do)


def _edit(http: HttpRequest, call: CallContext, request_id: RequestId, form: Form) -> Response:
    """Replace the whole text; where somebody else changed the same meanwhile, show both."""
    try:
        _rewrite(call, request_id, form("before_now") if form.has("over") else form("begun_with"), form("text"))
    except ConflictError as error:
        return _both_texts(http, call, request_id, form("text"), error)
    except AiflowError as error:
        return refused(http, call, error)
    told = Receipt(call.texts("web.receipt.saved", id=request_id), request_path(request_id), request_id)
    return act(http, call, lambda: told)


def _set(http: HttpRequest, call: CallContext, request_id: RequestId, form: Form) -> Response:
    """Set the keys that were changed in a form; one that says something else by now is shown beside it."""
    expected = {} if form.has("force") else _values(form, "was_")
    given = _values(form)
    values = {key: value for key, value in given.items() if key not in expected or expected[key] != value}
    seen = {key: value for key, value in expected.items() if key in values}
    text = call.texts("web.receipt.unchanged", id=request_id)
    try:
        if values:
            change_keys(call, request_id, Patch(values, expected=seen))
            none = call.texts("activity.empty")
            told = ", ".join(f"{key}: {_shown(value) or none}" for key, value in values.items())
            text = call.texts("web.receipt.set", id=request_id, values=told)
    except ConflictError as error:
        return _both_values(http, call, request_id, values, error)
    except AiflowError as error:
        return refused(http, call, error)
    return act(http, call, lambda: Receipt(text, request_path(request_id)))


def _choices() -> Mapping[str, object]:
    return {"priorities": tuple(Priority), "statuses": tuple(PERSON_EVENTS)}


def _create(call: CallContext, form: Form) -> Receipt:
    """Make a request, and start it if that is wanted; one that cannot start now is kept and ready."""
    do, text = form("do", "draft"), form("text").strip()
    title = " ".join(form("title").split()) or title_of(text)
    if not title:
        raise BadInputError(detail=words("web.new.title_missing"))
    priority = form("priority") or Priority.P2.value
    if priority not in tuple(Priority):
        raise BadInputError(detail=words("web.new.priority_unknown", value=priority[:40]))
    new = NewRequest(
        title,
        text or call.texts("new.body"),
        Priority(priority),
        RequestStatus.DRAFT if do == "draft" else RequestStatus.READY,
        _listed(form("depends_on")),
        _listed(form("labels")),
        form("request_id").strip() or None,
    )
    engine = call.engine
    request_id, _ = create_checked(new, engine.editor, engine.journal, engine.time.now)
    said = call.texts("web.receipt.created", id=request_id)
    if do != "run":
        return Receipt(said, request_path(request_id), request_id)
    try:
        return start_run(call, request_id)
    except AiflowError as error:
        told = call.texts.message(error.reason_code, error.context)
        said = call.texts("web.receipt.created_only", id=request_id, reason=told.title)
        return Receipt(said, request_path(request_id), request_id)


def _rewrite(call: CallContext, request_id: RequestId, before: str, after: str) -> None:
    """Replace a request's text; a browser sends line ends as it likes, and the file keeps its own."""
    engine = call.engine
    now = engine.editor.whole_text(request_id)
    if "\r" in now and now.replace("\r\n", "\n").replace("\r", "\n") == before:
        before, after = now, after.replace("\n", "\r\n" if "\r\n" in now else "\r")
    rewrite_request(request_id, (before, after), engine.editor, (engine.journal, engine.time.now))


def _both_texts(http: HttpRequest, call: CallContext, request_id: RequestId, mine: str, error: AiflowError) -> Response:
    """Show both texts where somebody else changed the request meanwhile; neither is lost."""
    theirs = whole_text(call, request_id)
    if theirs is None:
        return refused(http, call, error)
    told = call.texts.message(error.reason_code, error.context)
    facts = {"request_id": request_id, "before": theirs, "text": mine, "theirs": theirs, "told": told, "error": error}
    if is_part(http):
        return HTMLResponse(render(http, call, "parts/text_conflict.html", facts), 409)
    return page(http, call, "edit_request.html", {"frame": make_frame(call), **facts}, 409)


def _both_values(
    http: HttpRequest, call: CallContext, request_id: RequestId, values: Mapping[str, Value], error: AiflowError
) -> Response:
    """Show what a key says by now and what it was to say; nothing was overwritten."""
    told = call.texts.message(error.reason_code, error.context)
    mine = {key: _shown(value) for key, value in values.items()}
    facts = {"request_id": request_id, "told": told, "error": error, "mine": mine}
    if is_part(http):
        return HTMLResponse(render(http, call, "parts/conflict.html", facts), 409)
    return page(http, call, "conflict.html", {"frame": make_frame(call), **facts}, 409)


def _values(form: Form, before: str = "") -> dict[str, Value]:
    """Return the keys that a form has, as they are written."""
    names = {name for name, _ in form.fields}
    found = ((key, form(before + key)) for key in REQUEST_KEYS if before + key in names)
    return {key: _listed(value) if key in LIST_KEYS else value.strip() for key, value in found}


def _listed(text: str) -> tuple[str, ...]:
    """Read names that are separated by commas."""
    return tuple(dict.fromkeys(name for part in text.split(",") if (name := part.strip())))


def _shown(value: Value) -> str:
    return ", ".join(value) if isinstance(value, tuple) else value or ""
