"""The pages that `aiflow up` serves: sign-in, and one plain page with status, backlog and runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated
from urllib.parse import parse_qsl

from fastapi import APIRouter, Depends
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request as HttpRequest
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response

from aiflow.api.answers import keep_session
from aiflow.api.context import CallContext, Server
from aiflow.errors import AiflowError, NotFoundError
from aiflow.usecases.auto.standing import look_around
from aiflow.usecases.backlog.list import RequestFilter, list_requests, open_unless
from aiflow.usecases.runs.list import list_runs

_HERE = Path(__file__).parent
_TEMPLATES = Environment(
    loader=FileSystemLoader(_HERE / "templates"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
)
_STATIC = {"page.css": "text/css", "sign_in.js": "text/javascript", "mark.svg": "image/svg+xml"}
ROWS = 100
RUNS = 20


def routes(server: Server) -> APIRouter:
    """Return the pages."""
    router = APIRouter()

    @router.get("/")
    def home(http: HttpRequest) -> Response:
        call = server.call(http)
        engine = call.engine
        found = list_requests(
            engine.backlog, lambda: engine.locks, RequestFilter(open_unless((), is_all=False)), limit=ROWS
        )
        runs = list_runs(engine.backlog, limit=RUNS)
        standing = look_around(engine, server.project.auto_records, call.texts)
        return page(call, "home.html", found=found, runs=runs, standing=standing)

    @router.get("/sign-in")
    def sign_in_page(http: HttpRequest) -> Response:
        return page(server.call(http), "sign_in.html", problem=None, name=server.sign_in.user)

    @router.post("/sign-in")
    def sign_in(http: HttpRequest, form: Annotated[dict[str, str], Depends(_form)]) -> Response:
        code, name = form.get("code", ""), form.get("name", "")
        call = server.call(http)
        try:
            secret, _ = server.sign_in.sign_in(code, name, http.headers.get("user-agent", ""))
        except AiflowError as error:
            problem = call.texts.message(error.reason_code, error.context)
            return page(call, "sign_in.html", status=401, problem=problem, name=name)
        answer = RedirectResponse("/", 303)
        keep_session(answer, server, secret)
        return answer

    @router.get("/static/{name}")
    def static(name: str) -> Response:
        if name not in _STATIC:
            raise NotFoundError(reason_code="ROUTE_NOT_FOUND", path=name, method="GET")
        return FileResponse(_HERE / "static" / name, media_type=_STATIC[name], headers={"Cache-Control": "no-cache"})

    return router


async def _form(http: HttpRequest) -> dict[str, str]:
    """Read the fields of a form as browsers post it; of one that came twice the last counts."""
    return dict(parse_qsl((await http.body()).decode("utf-8", "replace"), keep_blank_values=True))


def page(call: CallContext, template: str, *, status: int = 200, **facts: object) -> HTMLResponse:
    """Draw a page in the caller's language."""
    text = _TEMPLATES.get_template(template).render(t=call.texts, server=call.server.record, **facts)
    return HTMLResponse(text, status, {"Cache-Control": "no-store"})
