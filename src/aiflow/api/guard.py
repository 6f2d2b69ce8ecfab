"""The one layer before every route (SEC): whoever may not call is answered here, and no route is looked up."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request as HttpRequest
from starlette.responses import RedirectResponse

from aiflow.api.answers import error_answer
from aiflow.api.context import CALLER, texts_for
from aiflow.domain.server.guard import MAX_BODY_BYTES, Call, refuse
from aiflow.errors import AiflowError

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from aiflow.api.context import Server
    from aiflow.usecases.server.sign_in import Caller

# A caller that sends its body slower than this is not waited for.
BODY_SECONDS = 20.0
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'; "
    "object-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class AccessGuard:
    """Lets through who may call, with their body read; refuses everybody else with a reason."""

    def __init__(self, app: ASGIApp, server: Server) -> None:
        self._app = app
        self._server = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Judge one call."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # there are no others; what is not known is closed
            await send({"type": "websocket.close", "code": 1008})
            return
        http = HttpRequest(scope, receive)
        sending = _hardened(send)
        caller = await run_in_threadpool(self._who, http)
        code = refuse(
            _call_of(http),
            self._server.addresses,
            is_known=caller is not None,
            is_unguarded=self._server.is_unguarded,
        )
        if code is not None:
            await self._refusal(http, code)(scope, receive, sending)
            return
        scope[CALLER] = caller
        try:
            body = await asyncio.wait_for(_read_body(http, receive), BODY_SECONDS)
        except TimeoutError:
            await self._refusal(http, "BODY_TOO_SLOW")(scope, receive, sending)
            return
        if body is None:
            await self._refusal(http, "BODY_TOO_LARGE")(scope, receive, sending)
            return
        await self._app(scope, _given_again(body, receive), sending)

    def _who(self, http: HttpRequest) -> Caller | None:
        return self._server.sign_in.who(_bearer(http), http.cookies.get(self._server.cookie))

    def _refusal(self, http: HttpRequest, code: str) -> Response:
        """Answer in the form of the route that was called: a page sends a browser to the sign-in."""
        path = http.url.path
        if code == "AUTH_REQUIRED" and http.method == "GET" and not path.startswith(("/api/", "/metrics", "/openapi")):
            return RedirectResponse("/sign-in", 303)
        answer = error_answer(
            AiflowError(reason_code=code, limit=MAX_BODY_BYTES), texts_for(http, self._server.language)
        )
        if code == "AUTH_REQUIRED":
            answer.headers["WWW-Authenticate"] = 'Bearer realm="aiflow"'
        answer.headers["Connection"] = "close"  # what else it sends is not read
        return answer


def _call_of(http: HttpRequest) -> Call:
    headers = http.headers
    names = [name for name, _ in http.scope["headers"]]
    return Call(
        method=http.method,
        path=http.scope["path"],
        host=headers.get("host"),
        origin=headers.get("origin"),
        content_type=headers.get("content-type"),
        has_body=headers.get("content-length", "0") != "0" or "transfer-encoding" in headers,
        has_bearer=_bearer(http) is not None,
        is_from_page=any(name.startswith(b"sec-fetch-") for name in names),
        repeats=frozenset(name.decode("latin-1") for name in set(names) if names.count(name) > 1),
    )


def _bearer(http: HttpRequest) -> str | None:
    """Return the token that a program brought; what is no token is none, and still counts as one that is wrong."""
    scheme, _, token = http.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


async def _read_body(http: HttpRequest, receive: Receive) -> bytes | None:
    """Read a body, or return None as soon as it is too large."""
    told = http.headers.get("content-length", "")
    if told.isdigit() and int(told) > MAX_BODY_BYTES:
        return None
    parts, size, has_more = [], 0, True
    while has_more:
        message = await receive()
        if message["type"] == "http.disconnect":
            break
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > MAX_BODY_BYTES:
            return None
        has_more = message.get("more_body", False)
    return b"".join(parts)


def _given_again(body: bytes, receive: Receive) -> Receive:
    """Give a route the body that was read; behind it only that the caller has gone is to be heard."""
    is_given = False

    async def again() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _hardened(send: Send) -> Send:
    """Add to every answer what tells browsers to be careful with it."""

    async def hardened(message: Message) -> None:
        if message["type"] == "http.response.start":
            known = {name.lower() for name, _ in message.get("headers", [])}
            more = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
            message["headers"] = [*message.get("headers", []), *(each for each in more if each[0] not in known)]
        await send(message)

    return hardened
