"""The backlog (WEB-1): in which order it runs, and why not this one; found, filtered, changed several at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from pydantic import AwareDatetime
from starlette.requests import Request as HttpRequest
from starlette.responses import HTMLResponse, RedirectResponse, Response

from aiflow.api.context import CallContext, Server
from aiflow.domain.backlog.board import BoardWish, Shelf
from aiflow.domain.request import Priority, normalize_id
from aiflow.errors import AiflowError, BadInputError
from aiflow.messages.details import words
from aiflow.usecases.auto.standing import at_work
from aiflow.usecases.backlog.patch import Patch
from aiflow.usecases.shapes.backlog import describe, describe_problem
from aiflow.usecases.shapes.errors import error_facts
from aiflow.web.accepting import Acceptance, Acceptances, Outcome
from aiflow.web.acting import Fields, Form, Receipt, back_path, refused
from aiflow.web.doing import change_keys
from aiflow.web.drawing import is_part, page, render
from aiflow.web.frame import make_frame
from aiflow.web.graph_picture import picture_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aiflow.domain.backlog.board import Board

# So many characters of a search are looked for; so many requests are changed at once.
MOST_WORDS = 200
MOST_AT_ONCE = 200
# How long an address may be that names them.
MOST_CHARACTERS = 40_000
# Where it is shown what comes of several that are accepted.
ACCEPTING = "/backlog/accepting"


def routes(server: Server) -> APIRouter:
    """Return the backlog's pages."""
    router, acceptances = APIRouter(), Acceptances()

    @router.get("/backlog")
    def backlog(http: HttpRequest) -> Response:
        call = server.call(http)
        board = call.look()
        return page(http, call, "backlog.html", {"frame": make_frame(call, board), **_list_facts(http, call, board)})

    @router.get("/backlog/graph")
    def graph(http: HttpRequest) -> Response:
        call, asked = server.call(http), http.query_params
        board, around = call.look(), asked.get("around", "")
        is_all = asked.get("all") == "1"
        drawn = board.graph(normalize_id(around) if around else None, include_closed=is_all)
        facts = {"graph": drawn, "picture": picture_of(drawn, board), "is_all": is_all}
        return page(http, call, "graph.html", {"frame": make_frame(call, board), **facts})

    @router.post("/backlog/set")
    def set_several(http: HttpRequest, form: Fields) -> Response:
        call = server.call(http)
        if form("do") != "accept" or not form.has("request_id"):
            return _several(http, call, form)
        begun = acceptances.begin(call, _chosen(form))
        if is_part(http):
            return _accepting(http, call, begun)
        return RedirectResponse(_address(begun), 303)

    @router.get(f"{ACCEPTING}/{{key}}")
    def accepting(
        http: HttpRequest,
        key: str,
        since: AwareDatetime,
        ids: Annotated[str, Query(max_length=MOST_CHARACTERS)],
    ) -> Response:
        call, named = server.call(http), [Outcome(each) for each in ids.split(",")[:MOST_AT_ONCE]]
        return _accepting(http, call, acceptances.find(call, Acceptance(key, since, named)))

    return router


def _list_facts(http: HttpRequest, call: CallContext, board: Board) -> Mapping[str, object]:
    """Return what the list shows."""
    wish, number = _wish(http), http.query_params.get("page", "")
    shown = board.page(wish, int(number) if number.isdecimal() and len(number) < 8 else 1)
    running = {each.request_id: each for each in at_work(call.engine, board.backlog)} if board.backlog.locks else {}

    def address(**changed: object) -> str:
        """Return the list's address with something changed; what says nothing is left out."""
        given = {"q": wish.words, "s": wish.shelf.value, "p": wish.priority or "", "l": wish.label, **changed}
        said = {name: value for name, value in given.items() if value and value != {"s": "open", "page": 1}.get(name)}
        return f"/backlog?{urlencode(said)}" if said else "/backlog"

    return {
        "shown": shown,
        "wish": wish,
        "selection": board.selection,
        "is_empty": not board.backlog.requests and not board.backlog.invalid,
        "labels": board.labels,
        "shelves": tuple(Shelf),
        "priorities": tuple(Priority),
        "running": running,
        "address": address,
        "describe": lambda barrier: describe(barrier, call.texts),
        "mistake": lambda problem: describe_problem(problem, call.texts),
        "titled": lambda code, request_id: call.texts.message(code, {"request_id": request_id, "branch": ""}).title,
    }


def _wish(http: HttpRequest) -> BoardWish:
    """Read from the address what is wanted; what it cannot be is as if it were not said."""
    asked = http.query_params
    shelf, priority = asked.get("s", ""), asked.get("p", "")
    return BoardWish(
        Shelf(shelf) if shelf in tuple(Shelf) else Shelf.OPEN,
        " ".join(asked.get("q", "")[:MOST_WORDS].split()),
        Priority(priority) if priority in tuple(Priority) else None,
        asked.get("l", "")[:MOST_WORDS],
    )


def _chosen(form: Form) -> list[str]:
    return list(dict.fromkeys(form.all("request_id")))[:MOST_AT_ONCE]


def _accepting(http: HttpRequest, call: CallContext, acceptance: Acceptance) -> Response:
    """Show how far several are that are accepted: in place for a script, as a page for a browser."""
    facts = {"acceptance": acceptance, "at": _address(acceptance)}
    if is_part(http):
        return HTMLResponse(render(http, call, "parts/accepting.html", facts))
    return page(http, call, "accepting.html", {"frame": make_frame(call), **facts})


def _address(acceptance: Acceptance) -> str:
    """Return where a list is, also for a server that does not know it."""
    named = ",".join(each.request_id for each in acceptance.outcomes)
    return f"{ACCEPTING}/{acceptance.key}?{urlencode({'since': acceptance.begun_at.isoformat(), 'ids': named})}"


def _several(http: HttpRequest, call: CallContext, form: Form) -> Response:
    """Do one thing with several requests, and report the result for each."""
    ids = _chosen(form)
    results: list[tuple[str, bool, str]] = []
    try:
        if not ids:
            raise BadInputError(detail=words("web.several.none"))
        deed = _deed(call, form)
    except AiflowError as error:
        return refused(http, call, error)
    for request_id in ids:
        try:
            results.append((request_id, True, deed(request_id)))
        except AiflowError as error:
            told = call.texts.message(error.reason_code, error_facts(error, call.texts))
            title = call.texts("web.sentence", text=told.title)
            results.append((request_id, False, call.texts("web.way.and", first=title, second=told.summary)))
    return _results(http, call, results)


def _results(http: HttpRequest, call: CallContext, results: list[tuple[str, bool, str]]) -> Response:
    """Answer in place while anything was refused; what all went well is a receipt."""
    back, is_done = back_path(http), all(is_good for _, is_good, _ in results)
    facts = {"results": results, "back": back}
    if not is_part(http):
        return page(http, call, "several.html", {"frame": make_frame(call), **facts})
    if not is_done:
        return HTMLResponse(render(http, call, "parts/results.html", facts), 409)
    receipt = Receipt(results[0][2] if len(results) == 1 else call.texts("web.several.done", n=len(results)), back)
    return HTMLResponse(render(http, call, "parts/receipt.html", {"receipt": receipt}))


def _deed(call: CallContext, form: Form) -> Callable[[str], str]:
    """Return what is to be done with each request; it says what it did."""
    do = form("do")
    values: dict[str, str] = {"archive": {"status": "archived"}}.get(do, {})
    if do == "set":
        values = {key: form(key) for key in ("status", "priority") if form.has(key)}
    if not values:
        raise BadInputError(detail=words("web.several.nothing"))

    def change(request_id: str) -> str:
        change_keys(call, request_id, Patch(values))
        told = ", ".join(f"{key}: {value}" for key, value in values.items())
        return call.texts("web.receipt.set", id=request_id, values=told)

    return change
