"""What comes before the pages: sign-in, the choice of language and theme, and the files that pages are drawn with."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import RedirectResponse, Response

from aiflow.api.answers import keep_session
from aiflow.api.context import Server
from aiflow.domain.reasons import reason_for
from aiflow.errors import AiflowError
from aiflow.messages import LANGUAGES
from aiflow.web.acting import Fields, back_path
from aiflow.web.drawing import THEMES, page

YEAR_SECONDS = 365 * 86400


def routes(server: Server) -> APIRouter:
    """Return the routes of the entrance."""
    router = APIRouter()
    _signing_in(router, server)
    return router


def _signing_in(router: APIRouter, server: Server) -> None:

    @router.get("/sign-in")
    def sign_in_page(http: HttpRequest) -> Response:
        return page(http, server.call(http), "sign_in.html", {"problem": None, "name": server.sign_in.user})

    @router.post("/sign-in")
    def sign_in(http: HttpRequest, form: Fields) -> Response:
        call, name = server.call(http), form("name")
        try:
            secret, _ = server.sign_in.sign_in(form("code"), name, http.headers.get("user-agent", ""))
        except AiflowError as error:
            problem = call.texts.message(error.reason_code, error.context)
            status = reason_for(error.reason_code).http_status
            return page(http, call, "sign_in.html", {"problem": problem, "name": name}, status)
        answer = RedirectResponse("/", 303)
        keep_session(answer, server, secret)
        return answer

    @router.post("/preferences")
    def prefer(http: HttpRequest, form: Fields) -> Response:
        answer = RedirectResponse(back_path(http), 303)
        for name, known in (("lang", LANGUAGES), ("theme", THEMES)):
            if form(name) in known:
                answer.set_cookie(f"aiflow_{name}", form(name), max_age=YEAR_SECONDS, samesite="lax", path="/")
        return answer
