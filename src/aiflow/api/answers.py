"""What the server answers: plain data with an ETag, and errors as ERR-2 in the caller's language."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from starlette.responses import Response, StreamingResponse

from aiflow.domain.reasons import reason_for
from aiflow.usecases.shapes.errors import error_shape

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.requests import Request as HttpRequest

    from aiflow.api.context import Server
    from aiflow.errors import AiflowError
    from aiflow.messages import Texts
    from aiflow.usecases.server.start_work import Begun


def encoded(shape: Any) -> bytes:
    """Write plain data as every answer has it."""
    return json.dumps(shape, ensure_ascii=False, separators=(",", ":"), default=str).encode("utf-8", "backslashreplace")


def answer(http: HttpRequest, shape: Any, *, version: str = "") -> Response:
    """Answer a question; a caller that has it already gets 304. `version` is what an edit is checked against."""
    body = encoded(shape)
    etag = f'"{version}-{hashlib.sha256(body).hexdigest()[:16]}"'
    headers = {"ETag": etag, "Cache-Control": "private, no-cache"}
    known = [each.strip().removeprefix("W/") for each in http.headers.get("if-none-match", "").split(",")]
    if etag in known:
        return Response(status_code=304, headers=headers)
    return Response(body, media_type="application/json", headers=headers)


def done(shape: Any, status: int = 200, *, location: str | None = None) -> Response:
    """Answer a call that changed something."""
    headers = {"Cache-Control": "no-store"} | ({"Location": location} if location else {})
    return Response(encoded(shape), status, headers, "application/json")


def plain_text(pieces: Iterator[bytes], name: str) -> Response:
    """Answer with text as it is, sent piece by piece; no browser takes it for anything else (SEC)."""
    headers = {"Content-Disposition": f'inline; filename="{name}"', "Cache-Control": "no-store"}
    return StreamingResponse(pieces, headers=headers, media_type="text/plain")


def started(begun: Begun) -> Response:
    """Answer a start: what began, and where it is (API-2)."""
    links = run_links(begun.request_id, begun.run_id) if begun.request_id and begun.run_id else {}
    shape = {"request_id": begun.request_id, "run_id": begun.run_id, "url": None, "api_url": None, **links}
    return done(shape, 202, location=links.get("api_url"))


def matched_versions(if_match: str | None) -> list[str] | None:
    """Return the versions that a change may replace, out of the ETags of answers; None for any."""
    if if_match is None or if_match.strip() == "*":
        return None
    tags = (each.strip().removeprefix("W/").strip('"') for each in if_match.split(","))
    return [tag.partition("-")[0] for tag in tags]


def error_answer(error: AiflowError, texts: Texts) -> Response:
    """Answer with a reason; a conflict names the holder's run and where it is (ERR-2)."""
    shape = error_shape(error, texts)
    context = shape["error"]["context"]
    if context.get("request_id") and context.get("run_id"):
        context |= run_links(str(context["request_id"]), str(context["run_id"]))
    status = reason_for(error.reason_code).http_status
    return done(shape, status if status >= 400 else 409)


def run_links(request_id: str, run_id: str) -> dict[str, str]:
    """Return where a run is: its page, and its place in the API."""
    page = f"/requests/{quote(request_id, safe='')}/runs/{quote(run_id, safe='')}"
    return {"url": page, "api_url": f"/api{page}"}


def keep_session(answer: Response, server: Server, secret: str) -> None:
    """Let a browser keep a session's secret where no script and no other site can read it."""
    answer.set_cookie(
        server.cookie, secret, max_age=int(server.sign_in.days * 86400), httponly=True, samesite="lax", path="/"
    )
