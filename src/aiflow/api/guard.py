"""The one layer before every route (SEC): it answers callers that may not call, and no route is looked up."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from anyio import CapacityLimiter, to_thread
from starlette.requests import Request as HttpRequest
from starlette.responses import RedirectResponse

from aiflow.api.answers import error_answer
from aiflow.api.context import CALLER, bearer_of, texts_for
from aiflow.domain.issues.webhook import SIGNATURE_HEADER, is_signature
from aiflow.domain.server.guard import (
    MAX_BODY_BYTES,
    MAX_IGNORED_BYTES,
    MAX_OPEN_BODY_BYTES,
    MAX_WEBHOOK_BYTES,
    SINGLE_HEADERS,
    WEBHOOKS_AT_ONCE,
    Call,
    is_open,
    is_page,
    is_webhook,
    refuse,
)
from aiflow.errors import AiflowError
from aiflow.usecases.server.sign_in import Caller

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from aiflow.api.context import Server

# The caller is checked beside the calls at work: those may all wait for something.
ASKED_AT_ONCE = 8
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'; "
    "object-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}


class AccessGuard:
    """Lets through who may call, with their body read; refuses everybody else with a reason."""

    def __init__(self, app: ASGIApp, server: Server) -> None:
        self.app = app
        self._server = server
        self._asking: CapacityLimiter | None = None
        self._hooks: asyncio.Semaphore | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Judge one call."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # there are no others; what is not known is closed
            await send({"type": "websocket.close", "code": 1008})
            return
        http, sending = HttpRequest(scope, receive), _hardened(send)
        try:
            scope[CALLER] = caller = await self._let_in(http)
            body = await self._body(http, receive, is_known=caller is not None)
        except AiflowError as error:
            await self._refusal(http, error)(scope, receive, sending)
            return
        await self.app(scope, _given_again(body, receive), sending)

    async def _body(self, http: HttpRequest, receive: Receive, *, is_known: bool) -> bytes:
        """Read a body, up to the size that its sender may send."""
        seconds = self._server.patience.body_seconds
        if not is_webhook(http.method, http.scope["path"]):
            if not is_known:
                return await _read_body(http, receive, MAX_OPEN_BODY_BYTES, seconds)
            try:
                return await _read_body(http, receive, MAX_BODY_BYTES, seconds)
            except AiflowError as error:
                if error.reason_code == "BODY_TOO_LARGE":
                    await _hear_out(http, receive, seconds)
                raise
        # A caller without even the form of a signature is not listened to at length.
        most = MAX_WEBHOOK_BYTES if is_signature(http.headers.get(SIGNATURE_HEADER, "")) else MAX_OPEN_BODY_BYTES
        self._hooks = self._hooks or asyncio.Semaphore(WEBHOOKS_AT_ONCE)
        try:
            async with asyncio.timeout(seconds):
                await self._hooks.acquire()
        except TimeoutError:
            raise AiflowError(reason_code="BODY_TOO_SLOW") from None
        try:
            return await _read_body(http, receive, most, seconds)
        finally:
            self._hooks.release()

    async def _let_in(self, http: HttpRequest) -> Caller | None:
        """Return the caller, None if the call needs no sign-in; raise why they may not call."""
        call, is_unguarded = _call_of(http), self._server.is_unguarded
        code = refuse(call, self._server.addresses, is_unguarded=is_unguarded)
        if code is not None:
            raise AiflowError(reason_code=code, method=call.method, path=call.path[:200])
        self._asking = self._asking or CapacityLimiter(ASKED_AT_ONCE)
        caller = await to_thread.run_sync(self._server.who, http, limiter=self._asking)
        if caller is None and is_unguarded:
            return Caller(self._server.sign_in.user)
        if caller is None and not is_open(call.method, call.path):
            raise AiflowError(reason_code="AUTH_REQUIRED")
        return caller

    def _refusal(self, http: HttpRequest, error: AiflowError) -> Response:
        """Answer in the form of the route that was called: a page sends a browser to the sign-in."""
        path, needs_name = http.scope["path"], error.reason_code == "AUTH_REQUIRED"
        # A form that a browser sends without a script wants a page, too.
        shows_answer = http.method == "GET" or "text/html" in http.headers.get("accept", "")
        if needs_name and is_page(path) and shows_answer:
            return RedirectResponse("/sign-in", 303)
        answer = error_answer(error, texts_for(http, self._server.language))
        if needs_name:
            answer.headers["WWW-Authenticate"] = 'Bearer realm="aiflow"'
        answer.headers["Connection"] = "close"  # what else it sends is not read
        return answer


def _call_of(http: HttpRequest) -> Call:
    headers = http.headers
    names = [name.decode("latin-1").lower() for name, _ in http.scope["headers"]]
    return Call(
        method=http.method,
        path=http.scope["path"],
        host=headers.get("host"),
        raw_path=http.scope.get("raw_path", b"").decode("latin-1"),
        origin=headers.get("origin"),
        content_type=headers.get("content-type"),
        has_body=headers.get("content-length", "0") != "0" or "transfer-encoding" in headers,
        has_bearer=bearer_of(http) is not None,
        is_from_browser=any(name.startswith("sec-fetch-") for name in names),
        site=headers.get("sec-fetch-site"),
        mode=headers.get("sec-fetch-mode"),
        repeats=frozenset(name for name in SINGLE_HEADERS if names.count(name) > 1),
    )


async def _read_body(http: HttpRequest, receive: Receive, most: int, seconds: float) -> bytes:
    """Read a body; one that is too large or comes too slowly is refused as soon as that is known."""
    told = http.headers.get("content-length", "")
    if told.isdecimal() and int(told[:20]) > most:
        raise AiflowError(reason_code="BODY_TOO_LARGE", limit=most)
    parts, size, has_more = [], 0, True
    try:
        async with asyncio.timeout(seconds):
            while has_more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    break
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > most:
                    raise AiflowError(reason_code="BODY_TOO_LARGE", limit=most)
                has_more = message.get("more_body", False)
    except TimeoutError:
        raise AiflowError(reason_code="BODY_TOO_SLOW") from None
    return b"".join(parts)


async def _hear_out(http: HttpRequest, receive: Receive, seconds: float) -> None:
    """Let a known caller send the rest of what is too large: a browser that is cut off shows no answer."""
    told = http.headers.get("content-length", "0")
    left = MAX_IGNORED_BYTES if told.isdecimal() and int(told[:20]) <= MAX_IGNORED_BYTES else 0
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while left > 0:
                message = await receive()
                left = left - len(message.get("body", b"")) if message.get("more_body") else 0


def _given_again(body: bytes, receive: Receive) -> Receive:
    """Give a route the body that was read; after it, only that the caller has gone."""
    is_given = False

    async def again() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _hardened(send: Send) -> Send:
    """Add headers to every answer that make browsers careful with it."""

    async def hardened(message: Message) -> None:
        if message["type"] == "http.response.start":
            known = {name.lower() for name, _ in message.get("headers", [])}
            more = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
            message["headers"] = [*message.get("headers", []), *(each for each in more if each[0] not in known)]
        await send(message)

    return hardened
