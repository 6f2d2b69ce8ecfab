"""What comes before the pages: sign-in, the choice of language and theme, and the files that pages are drawn with."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.requests import Request as HttpRequest
from starlette.responses import FileResponse, RedirectResponse, Response

from aiflow.api.answers import keep_session
from aiflow.api.context import Server
from aiflow.errors import AiflowError, NotFoundError
from aiflow.messages import LANGUAGES
from aiflow.web.acting import Form, back_path, read_form
from aiflow.web.drawing import STATIC, THEMES, page

YEAR_SECONDS = 365 * 86400
_KINDS = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".json": "application/json"}


def routes(server: Server) -> APIRouter:
    """Return the routes of the entrance."""
    router = APIRouter()
    _signing_in(router, server)
    _files(router)
    return router


def _signing_in(router: APIRouter, server: Server) -> None:

    @router.get("/sign-in")
    def sign_in_page(http: HttpRequest) -> Response:
        return page(http, server.call(http), "sign_in.html", {"problem": None, "name": server.sign_in.user})

    @router.post("/sign-in")
    def sign_in(http: HttpRequest, form: Annotated[Form, Depends(read_form)]) -> Response:
        call, name = server.call(http), form("name")
        try:
            secret, _ = server.sign_in.sign_in(form("code"), name, http.headers.get("user-agent", ""))
        except AiflowError as error:
            problem = call.texts.message(error.reason_code, error.context)
            return page(http, call, "sign_in.html", {"problem": problem, "name": name}, 401)
        answer = RedirectResponse("/", 303)
        keep_session(answer, server, secret)
        return answer

    @router.post("/preferences")
    def prefer(http: HttpRequest, form: Annotated[Form, Depends(read_form)]) -> Response:
        answer = RedirectResponse(back_path(http), 303)
        for name, known in (("lang", LANGUAGES), ("theme", THEMES)):
            if form(name) in known:
                answer.set_cookie(f"aiflow_{name}", form(name), max_age=YEAR_SECONDS, samesite="lax", path="/")
        return answer


def _files(router: APIRouter) -> None:
    @router.get("/favicon.ico")
    def favicon() -> Response:
        return FileResponse(STATIC / "mark.svg", media_type="image/svg+xml")

    @router.get("/static/{name:path}")
    def static(name: str) -> Response:
        path = STATIC / name
        kind = _KINDS.get(path.suffix)
        if kind is None or not path.resolve().is_relative_to(STATIC.resolve()) or not path.is_file():
            raise NotFoundError(reason_code="ROUTE_NOT_FOUND", path=name, method="GET")
        return FileResponse(path, media_type=kind, headers={"Cache-Control": "no-cache"})
