"""Sessions: sign in with a one-time code, see who is signed in, sign out."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from aiflow.api.answers import answer, done, keep_session
from aiflow.api.context import Server
from aiflow.api.documents import MOST_NAME, changes, reads
from aiflow.api.models.server import CodeAnswer, EndedSessionsAnswer, SessionAnswer, SessionsAnswer, SignInBody
from aiflow.errors import AiflowError
from aiflow.usecases.shapes.sessions import session_shape, sessions_shape

SessionPath = Annotated[str, Path(min_length=1, max_length=MOST_NAME)]


def routes(server: Server) -> APIRouter:
    """Return the routes about sessions."""
    router = APIRouter(prefix="/api/sessions", tags=["sessions"])
    _coming(router, server)
    _going(router, server)
    return router


def _coming(router: APIRouter, server: Server) -> None:
    @router.get("", **reads(SessionsAnswer))
    def list_(http: HttpRequest) -> Response:
        """List signed-in browsers, most recently used first."""
        return answer(http, sessions_shape(server.sign_in.sessions(), server.call(http).session_id))

    @router.post("", **changes(SessionAnswer, "CODE_REFUSED", status=201, is_open=True))
    def sign_in(http: HttpRequest, body: SignInBody) -> Response:
        """Sign in: exchange a one-time code for a session, whose secret is a cookie."""
        secret, session = server.sign_in.sign_in(body.code, body.name, http.headers.get("user-agent", ""))
        response = done(session_shape(session, session.session_id), 201, location=f"/api/sessions/{session.session_id}")
        keep_session(response, server, secret)
        return response

    @router.post("/code", **changes(CodeAnswer, status=201))
    def code(http: HttpRequest) -> Response:
        """Create a one-time code for one more browser; for programs with the token, such as `aiflow open`."""
        if server.call(http).session_id is not None:  # a session cannot make others that outlive it
            raise AiflowError(reason_code="AUTH_REQUIRED")
        made, expires = server.sign_in.make_code()
        shape = {"code": made, "expires_at": expires.isoformat(), "url": f"{server.record.url}/sign-in#code={made}"}
        return done(shape, 201, location="/sign-in")


def _going(router: APIRouter, server: Server) -> None:
    @router.delete("/{session_id}", **changes(EndedSessionsAnswer, "SESSION_NOT_FOUND"))
    def end(http: HttpRequest, session_id: SessionPath) -> Response:
        """End a session, even the caller's."""
        response = done({"ended": server.sign_in.revoke(session_id)})
        if server.call(http).session_id == session_id:
            response.delete_cookie(server.cookie, path="/", httponly=True, samesite="lax")
        return response

    @router.delete("", **changes(EndedSessionsAnswer))
    def end_all(http: HttpRequest) -> Response:
        """End every session, including the caller's; the token stays valid."""
        response = done({"ended": server.sign_in.revoke(None)})
        if server.call(http).session_id is not None:
            response.delete_cookie(server.cookie, path="/", httponly=True, samesite="lax")
        return response
