"""What is asked before something is done that cannot be undone or needs words: above the page, or as a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from aiflow.api.context import Server
from aiflow.domain.request import normalize_id
from aiflow.domain.runs.resume import ResumeMode
from aiflow.usecases.auto.status import auto_status
from aiflow.usecases.runs.find import find_newest_run, find_run_of
from aiflow.usecases.runs.finished import look_at_finished
from aiflow.usecases.runs.undo import find_built_on, may_be_undone
from aiflow.web.acting import back_path
from aiflow.web.drawing import REQUEST, RUN, is_part, page
from aiflow.web.frame import make_frame

if TYPE_CHECKING:
    from aiflow.api.context import CallContext


def routes(server: Server) -> APIRouter:
    """Return the dialogs."""
    router = APIRouter()

    @router.get("/keys")
    def keys(http: HttpRequest) -> Response:
        return dialog(http, server.call(http), "keys")

    @router.get("/auto/stop")
    def stop(http: HttpRequest) -> Response:
        call = server.call(http)
        return dialog(http, call, "stop", auto=auto_status(call.engine, server.project.auto_records))

    @router.get(f"{REQUEST}/send-back")
    def send_back(http: HttpRequest, request_id: str) -> Response:
        call = server.call(http)
        return dialog(http, call, "send_back", run=find_newest_run(call.engine, normalize_id(request_id)))

    @router.get(f"{REQUEST}/undo")
    def undo(http: HttpRequest, request_id: str) -> Response:
        call = server.call(http)
        run = find_newest_run(call.engine, normalize_id(request_id))
        may_be_undone(call.engine, run)
        finished = look_at_finished(call.engine, run)
        built_on = tuple(find_built_on(call.engine, run).named())
        return dialog(http, call, "undo", run=run, size=finished and finished.size, built_on=built_on)

    _add_dialogs_of_runs(router, server)
    return router


def _add_dialogs_of_runs(router: APIRouter, server: Server) -> None:
    @router.get(f"{RUN}/replan")
    def replan(http: HttpRequest, request_id: str, run_id: str) -> Response:
        call = server.call(http)
        return dialog(http, call, "replan", run=find_run_of(call.engine, request_id, run_id))

    @router.get(f"{RUN}/resume")
    def resume(
        http: HttpRequest,
        request_id: str,
        run_id: str,
        mode: str = "resume",
        keep_changes: str = "",
        no_baseline: str = "",
    ) -> Response:
        call = server.call(http)
        chosen = ResumeMode.RETRY_STEP if mode == ResumeMode.RETRY_STEP else ResumeMode.RESUME
        run = find_run_of(call.engine, request_id, run_id)
        how = "keep_changes" if keep_changes else "no_baseline" if no_baseline else "force"
        return dialog(http, call, "resume", run=run, mode=chosen.value, how=how)

    @router.get(f"{RUN}/cancel")
    def cancel(http: HttpRequest, request_id: str, run_id: str) -> Response:
        call = server.call(http)
        return dialog(http, call, "cancel", run=find_run_of(call.engine, request_id, run_id))


def dialog(http: HttpRequest, call: CallContext, name: str, **facts: object) -> Response:
    """Draw a dialog: alone for a script, with all around it for a browser."""
    frame = None if is_part(http) else make_frame(call)
    return page(http, call, f"dialogs/{name}.html", {"frame": frame, "back": back_path(http), **facts})
