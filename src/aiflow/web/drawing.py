"""How pages are drawn: templates, what they may call, and the answer of a page or of a part of one."""

from __future__ import annotations

import hashlib
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from starlette.responses import HTMLResponse, Response

from aiflow.domain.server.guard import beside
from aiflow.web import told
from aiflow.web.static_files import has_htmx
from aiflow.web.ways import offer_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from jinja2 import Environment
    from starlette.requests import Request as HttpRequest

    from aiflow.api.context import CallContext
    from aiflow.messages import Message

    Facts = Mapping[str, object]

HERE = Path(__file__).parent
# Where the pages of requests and of runs are, as routes have it.
REQUEST = "/requests/{request_id}"
RUN = f"{REQUEST}/runs/{{run_id}}"
THEMES = ("light", "dark")


@cache
def templates() -> Environment:
    """Return the templates; everything they are given is text until they say otherwise."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        auto_reload=False,  # a template that an upgrade brought may ask for what this process has not
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(codes=told.codes, money=told.money, number=told.number, pct=told.percent, seg=segment)
    made.globals.update(run_path=run_path, request_path=request_path, offer_of=offer_of)
    return made


def page(http: HttpRequest, call: CallContext, template: str, facts: Facts, status: int = 200) -> Response:
    """Draw a page in the caller's language; a caller that has it already gets a 304."""
    text = render(http, call, template, facts)
    etag = f'"{hashlib.sha256(text.encode()).hexdigest()[:20]}"'
    headers = {"Cache-Control": "private, no-cache", "ETag": etag, "Vary": "Cookie, Accept-Language, HX-Request"}
    if status == 200 and etag in http.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return HTMLResponse(text, status, headers)


def render(http: HttpRequest, call: CallContext, template: str, facts: Facts) -> str:
    """Draw a template with what every one of them has at hand."""
    now = call.server.now().astimezone()
    theme = http.cookies.get("aiflow_theme")
    own: dict[str, object] = {
        "t": call.texts,
        "server": call.server.record,
        "project": call.server.record.root.rsplit("/", 1)[-1],
        "now": now,
        "theme": theme if theme in THEMES else None,
        "here": http.url.path + (f"?{http.url.query}" if http.url.query else ""),
        "path": http.url.path,
        "beside": partial(beside, http.url.hostname or ""),
        "is_part": is_part(http),
        "has_live": has_htmx(),
        "ago": partial(told.ago, call.texts, now),
        "age": partial(told.age, call.texts, now),
        "linked": partial(told.linked, call.texts),
        "moment": partial(told.moment, call.texts),
        "lately": partial(told.lately, call.texts, now),
        "timed": partial(told.timed, call.texts),
        "time_words": partial(told.time_words, call.texts),
        "zone": told.zone(now),
        "duration": partial(told.duration, call.texts),
        "elapsed": partial(_elapsed, now),
        "clock": told.elapsed,
        "moment_of_day": partial(told.short_day, call.texts),
        "reason": partial(_reason, call),
    }
    text = templates().get_template(template).render({**own, **facts})
    # Half a character, which a file written by hand may have, can be neither sent nor shown.
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def is_part(http: HttpRequest) -> bool:
    """Return whether a script of the page asks, which wants a part, or a browser, which wants all of it."""
    is_whole = http.headers.get("hx-request-type") == "full"  # the page itself, again
    return http.headers.get("hx-request") == "true" and not is_whole


def segment(name: str) -> str:
    """Write a name as one part of a path."""
    return quote(name, safe="", errors="replace")  # a file written by hand may have half a character


def request_path(request_id: str) -> str:
    """Return where a request's page is."""
    return f"/requests/{segment(request_id)}"


def run_path(request_id: str, run_id: str) -> str:
    """Return where a run's page is."""
    return f"{request_path(request_id)}/runs/{segment(run_id)}"


def _reason(call: CallContext, code: str, **facts: object) -> Message:
    """Return the words of a reason code."""
    return call.texts.message(code, facts)


def _elapsed(now: datetime, since: datetime | None) -> str:
    return told.elapsed((now - since).total_seconds()) if since else ""
