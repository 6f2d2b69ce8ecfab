"""What a page answers to what a person did: a receipt where it was pressed, or why not, and the next step.

A script of the page gets the part to show; a browser without one is led to the page that shows what came of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from fastapi import Depends
from starlette.requests import Request as HttpRequest
from starlette.responses import HTMLResponse, RedirectResponse

from aiflow.domain.reasons import reason_for
from aiflow.domain.server.guard import is_plain_path
from aiflow.errors import AiflowError
from aiflow.usecases.shapes.errors import actions_of, error_facts
from aiflow.web.advice import advice_pieces
from aiflow.web.drawing import is_part, page, render, run_path
from aiflow.web.frame import make_frame
from aiflow.web.typed import form_again

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.responses import Response

    from aiflow.api.context import CallContext
    from aiflow.messages import Message


class Receipt(NamedTuple):
    """What was done, in words, and where it continues."""

    text: str
    path: str
    link: str = ""


class Form(NamedTuple):
    """The fields of a form as browsers post it."""

    fields: tuple[tuple[str, str], ...]

    def __call__(self, name: str, default: str = "") -> str:
        """Return a field; of one that came twice the last counts."""
        return next((value for key, value in reversed(self.fields) if key == name), default)

    def all(self, name: str) -> list[str]:
        """Return every value of a field."""
        return [value for key, value in self.fields if key == name]

    def has(self, name: str) -> bool:
        """Return whether a field is there and not empty."""
        return bool(self(name).strip())


async def read_form(http: HttpRequest) -> Form:
    """Read a form, in UTF-8 with line ends as files have them; a refusal shows what was typed into it."""
    text = (await http.body()).decode("utf-8", "replace")
    form = Form(tuple((name, value.replace("\r\n", "\n")) for name, value in parse_qsl(text, keep_blank_values=True)))
    http.state.form = form
    return form


Fields = Annotated[Form, Depends(read_form)]


def act(http: HttpRequest, call: CallContext, do: Callable[[], Receipt]) -> Response:
    """Do what a person pressed, and answer with its receipt or with why it is refused."""
    try:
        receipt = do()
    except AiflowError as error:
        return refused(http, call, error)
    if is_part(http):
        return HTMLResponse(render(http, call, "parts/receipt.html", {"receipt": receipt}))
    return RedirectResponse(receipt.path, 303)


def refused(http: HttpRequest, call: CallContext, error: AiflowError) -> Response:
    """Say why something is refused: in place for a script, as a page for a browser."""
    status = max(reason_for(error.reason_code).http_status, 400)
    facts = error_facts(error, call.texts)
    holder = (str(facts["request_id"]), str(facts["run_id"])) if {"request_id", "run_id"} <= facts.keys() else None
    told: Message = call.texts.message(error.reason_code, facts)
    more = {
        "error": error,
        "told": told,
        "holder": run_path(*holder) if holder else None,
        # An auto-run that is in the way can be stopped where that is shown (D39 §5).
        "is_stoppable": bool(call.caller) and error.reason_code == "QUEUE_IN_PROGRESS",
        "detail": facts.get("detail"),
        "advice": advice_pieces(actions_of(error, told.actions), call.texts, _runs_meant(http, holder)),
    }
    if is_part(http):
        return HTMLResponse(render(http, call, "parts/notice.html", more), status)
    # A caller who has not signed in learns nothing else.
    template = "refused.html" if call.caller else "refused_outside.html"
    frame = _frame(call) if call.caller else None
    form = getattr(http.state, "form", None)
    around = {"frame": frame, "back": back_path(http), "again": form_again(http.url.path, form) if form else None}
    return page(http, call, template, {**around, **more}, status)


def _runs_meant(http: HttpRequest, holder: tuple[str, str] | None) -> dict[str, str]:
    """Return the run that is meant of a request: the one in the way, and the one that the address is about."""
    named = http.path_params
    about = (str(named["request_id"]), str(named["run_id"])) if {"request_id", "run_id"} <= named.keys() else None
    return dict(filter(None, (about, holder)))


def back_path(http: HttpRequest) -> str:
    """Return the page of ours that a browser came from, the first one if that is not known."""
    came = urlsplit(http.headers.get("referer", ""))
    is_ours = came.netloc == http.headers.get("host") and is_plain_path(came.path)
    return came.path + (f"?{came.query}" if came.query else "") if is_ours and came.path != http.url.path else "/"


def _frame(call: CallContext) -> object:
    """Return what stands around a page, nothing where even that cannot be read."""
    try:
        return make_frame(call)
    except AiflowError:
        return None
