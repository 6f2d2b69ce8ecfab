"""What a person does with a request or a run: run, resume, cancel, accept, undo, send back; auto-run on and off."""

from __future__ import annotations

import itertools
import re

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from aiflow.api.context import Server
from aiflow.domain.auto.stopping import StopRequest
from aiflow.domain.issue_ways import is_issue
from aiflow.domain.request import normalize_id, parse_instant
from aiflow.domain.runs.resume import ResumeMode
from aiflow.errors import BadInputError, ConflictError
from aiflow.messages.details import words
from aiflow.usecases.auto.stop import ask_to_stop
from aiflow.usecases.runs.accept import LineComment, send_back, whole_comment
from aiflow.usecases.runs.answer_issue import LATER
from aiflow.usecases.runs.cancel import cancel_run
from aiflow.usecases.runs.find import find_newest_run, find_run_of
from aiflow.usecases.server.orders import AutoWishes, LeftOut, Resumption, auto_order, resume_order
from aiflow.web.acting import Fields, Form, Receipt, act
from aiflow.web.doing import accept_run, going, start_run, undo_run
from aiflow.web.drawing import REQUEST, RUN, request_path

_WHOLE = re.compile(r"[0-9]{1,9}")
_AMOUNT = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")
_TIME = re.compile(r"(?:[01]?[0-9]|2[0-3]):[0-5][0-9]")


def routes(server: Server) -> APIRouter:
    """Return the routes of what can be done."""
    router = APIRouter()
    _of_requests(router, server)
    _of_runs(router, server)
    _of_auto(router, server)
    return router


def _of_requests(router: APIRouter, server: Server) -> None:
    @router.post(f"{REQUEST}/run")
    def run(http: HttpRequest, request_id: str, *, quick: bool = False) -> Response:
        call, how = server.call(http), LeftOut(quick=quick)
        return act(http, call, lambda: start_run(call, request_id, how))

    @router.post(f"{REQUEST}/accept")
    def accept(http: HttpRequest, request_id: str) -> Response:
        call = server.call(http)
        return act(http, call, lambda: accept_run(call, request_id))

    @router.post(f"{REQUEST}/undo")
    def undo_(http: HttpRequest, request_id: str) -> Response:
        call = server.call(http)
        return act(http, call, lambda: undo_run(call, request_id))

    @router.post(f"{REQUEST}/send-back")
    def send_back_(http: HttpRequest, request_id: str, form: Fields) -> Response:
        call = server.call(http)

        def do() -> Receipt:
            said, lines = form("comment").strip(), _line_comments(form)
            if not said and not lines:
                raise BadInputError(detail=words("web.comment_missing"))
            sent = find_newest_run(call.engine, normalize_id(request_id))
            comment = whole_comment(sent, said, lines)
            run = send_back(call.engine, sent, comment, is_dropped=form.has("fresh"))
            return Receipt(call.texts("web.receipt.sent_back", id=run.request_id), request_path(run.request_id))

        return act(http, call, do)


def _line_comments(form: Form) -> list[LineComment]:
    """Return the comments on lines of a diff: four fields each, in the same order."""
    fields = (form.all(f"line_{name}") for name in ("path", "number", "text", "quote"))
    places = itertools.zip_longest(*fields, fillvalue="")
    return [
        LineComment(path, int(at), text, quote)
        for path, at, text, quote in places
        if _WHOLE.fullmatch(at) and text.strip()
    ]


def _of_runs(router: APIRouter, server: Server) -> None:
    @router.post(f"{RUN}/resume")
    def resume(http: HttpRequest, request_id: str, run_id: str, form: Fields) -> Response:
        call = server.call(http)

        def do() -> Receipt:
            order = resume_order(call.engine, request_id, run_id, _wish(form), call.person)
            try:
                begun = server.work.start(order)
            except ConflictError as error:
                if not is_issue(request_id) or error.reason_code not in LATER:
                    raise
                return Receipt(call.texts("web.receipt.posted", id=request_id), request_path(request_id))
            key = "web.receipt.answered" if form.has("answer") or form.has("choice") else "web.receipt.goes_on"
            key = "web.receipt.replanned" if form("mode") == ResumeMode.REPLAN else key
            return going(call, key, request_id, begun.run_id, answer=form("answer").strip() or form("choice"))

        return act(http, call, do)

    @router.post(f"{RUN}/cancel")
    def cancel(http: HttpRequest, request_id: str, run_id: str) -> Response:
        call = server.call(http)

        def do() -> Receipt:
            cancel_run(call.engine, find_run_of(call.engine, request_id, run_id))
            return going(call, "web.receipt.cancelled", request_id, run_id)

        return act(http, call, do)


def _of_auto(router: APIRouter, server: Server) -> None:
    @router.post("/auto/start")
    def start(http: HttpRequest, form: Fields) -> Response:
        call = server.call(http)

        def do() -> Receipt:
            server.work.start(auto_order(_ceilings(form), call.person))
            return Receipt(call.texts("web.receipt.auto_started"), "/")

        return act(http, call, do)

    @router.post("/auto/stop")
    def stop(http: HttpRequest, form: Fields) -> Response:
        call = server.call(http)

        def do() -> Receipt:
            is_now = form("when") == "now"
            asked = ask_to_stop(call.engine, StopRequest.NOW if is_now else StopRequest.AFTER_RUN)
            key = "web.receipt.stops_now" if is_now or asked.run is None else "web.receipt.stops_after"
            return Receipt(call.texts(key, id=asked.run.request_id if asked.run else ""), "/")

        return act(http, call, do)


def _wish(form: Form) -> Resumption:
    """Return how a run is to continue; a written answer goes before a choice."""
    mode, *more = form("mode").split() or [ResumeMode.RESUME]  # a button has one value, and may say two things
    if mode not in set(ResumeMode) or not set(more) <= {"keep_changes", "update", "no_baseline"}:
        raise BadInputError(detail=words("web.mode_unknown"))
    answer = form("answer").strip() or form("choice").strip() or None
    if form("ask") and answer is None and mode == ResumeMode.RESUME:
        raise BadInputError(detail=words("web.answer_missing"))
    return Resumption(
        ResumeMode(mode),
        form("target_step_id") or None,
        force=form.has("force"),
        answer=answer,
        keep_changes=form.has("keep_changes") or "keep_changes" in more,
        update=form.has("update") or "update" in more,
        no_baseline=form.has("no_baseline") or "no_baseline" in more,
    )


def _ceilings(form: Form) -> AutoWishes:
    """Return how far an auto-run may go; a field that is empty sets nothing."""

    def figure(name: str, form_of: re.Pattern[str] = _WHOLE) -> str | None:
        typed = form(name).strip()
        if typed and not form_of.fullmatch(typed):
            raise BadInputError(detail=words("web.not_a_number", value=typed[:40]))
        return typed or None

    runs, minutes, cost = figure("max_runs"), figure("max_minutes"), figure("max_cost_usd", _AMOUNT)
    return AutoWishes(
        watch=form.has("watch"),
        until=_until(form),
        max_runs=int(runs) if runs is not None else None,
        max_minutes=int(minutes) if minutes is not None else None,
        max_cost_usd=float(cost) if cost is not None else None,
    )


def _until(form: Form) -> str | None:
    """Return until when by this machine's clock; a script says which moment was meant by the reader's."""
    typed = form("until").strip()
    if typed and not _TIME.fullmatch(typed):
        raise BadInputError(detail=words("auto.no_time", value=typed[:40]))
    meant = parse_instant(form("until_at")) if typed else None
    try:
        return f"{meant.astimezone():%H:%M}" if meant else typed or None
    except OverflowError:  # before the first moment that there is
        return typed
