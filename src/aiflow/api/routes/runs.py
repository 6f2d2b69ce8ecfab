"""Runs: list and show them, read their reports, logs and changes; let them go on, or cancel them."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from aiflow.api.answers import answer, done, plain_text, run_links, started
from aiflow.api.context import Server
from aiflow.api.documents import PAGE, Cursor, Limit, RequestPath, RunPath, changes, reads
from aiflow.api.models.errors import RESUMING, STARTING
from aiflow.api.models.report import ReportAnswer
from aiflow.api.models.requests import ResumeBody, StartBody
from aiflow.api.models.runs import (
    DiffAnswer,
    LogPartAnswer,
    RunPageAnswer,
    RunResultAnswer,
    RunsAnswer,
    StartedAnswer,
)
from aiflow.domain.request import normalize_id
from aiflow.domain.runs.log_names import LOG_NAME, log_file, log_name, named_log
from aiflow.domain.runs.resume import ResumeMode
from aiflow.usecases.runs.cancel import cancel_run
from aiflow.usecases.runs.diff import diff_run
from aiflow.usecases.runs.find import find_run_of
from aiflow.usecases.runs.list import list_runs
from aiflow.usecases.runs.logs import MOST_BYTES, read_log, stream_log
from aiflow.usecases.runs.report import read_report
from aiflow.usecases.runs.show import show_run
from aiflow.usecases.server.orders import LeftOut, Resumption, resume_order, run_order
from aiflow.usecases.shapes.pages import with_page
from aiflow.usecases.shapes.run_page import run_page_shape
from aiflow.usecases.shapes.run_report import report_shape
from aiflow.usecases.shapes.runs import diff_shape, log_part_shape, run_list, run_result

RUN = "/requests/{request_id}/runs/{run_id}"
MISSING = ("RUN_NOT_FOUND", "RUN_LOST")
LOG = "=== 2026-11-18T07:00:00+00:00 S01 implementer\n…\n"
LogName = Annotated[
    str, Path(pattern=LOG_NAME, examples=["3"], description="`0` is the planner's log, `3` that of S03; or `baseline`.")
]


def routes(server: Server) -> APIRouter:
    """Return the routes about runs."""
    router = APIRouter(prefix="/api", tags=["runs"])
    _listing(router, server)
    _reading(router, server)
    _working(router, server)
    return router


def _listing(router: APIRouter, server: Server) -> None:
    @router.get("/runs", **reads(RunsAnswer))
    def all_(http: HttpRequest, limit: Limit = PAGE, after: Cursor = None) -> Response:
        """List the runs of all requests, newest first."""
        found = list_runs(server.call(http).engine.backlog, limit=limit, after=after)
        return answer(http, with_page(run_list(found), found))

    @router.get("/requests/{request_id}/runs", **reads(RunsAnswer, "REQUEST_NOT_FOUND"))
    def list_(http: HttpRequest, request_id: RequestPath, limit: Limit = PAGE, after: Cursor = None) -> Response:
        """List the runs of a request, newest first."""
        found = list_runs(server.call(http).engine.backlog, normalize_id(request_id), limit=limit, after=after)
        return answer(http, with_page(run_list(found), found))


def _reading(router: APIRouter, server: Server) -> None:
    @router.get(RUN, **reads(RunPageAnswer, *MISSING))
    def show(http: HttpRequest, request_id: RequestPath, run_id: RunPath) -> Response:
        """Show one run: its state, plan and history, why it stopped, and where to find the rest."""
        shown = show_run(server.call(http).engine, request_id, run_id)
        links = run_links(request_id, run_id)
        at = links["api_url"]
        more = {
            "report": f"{at}/report",
            "diff": f"{at}/diff",
            "logs": [f"{at}/logs/{log_name(n)}" for n in shown.logs],
        }
        return answer(http, {**run_page_shape(*shown), "links": {**links, **more}})

    @router.get(f"{RUN}/report", **reads(ReportAnswer, *MISSING))
    def report(http: HttpRequest, request_id: RequestPath, run_id: RunPath) -> Response:
        """Report what a run did, step by step, and what each role used; includes its report as text."""
        engine = server.call(http).engine
        run = find_run_of(engine, request_id, run_id)
        return answer(http, report_shape(*read_report(engine, run)))

    @router.get(f"{RUN}/logs/{{number}}", **reads(LogPartAnswer, *MISSING, text=LOG))
    def log(
        http: HttpRequest,
        request_id: RequestPath,
        run_id: RunPath,
        number: LogName,
        offset: Annotated[int, Query(ge=0, le=10**12)] = 0,
        limit: Annotated[int | None, Query(ge=1, le=MOST_BYTES)] = None,
        form: Annotated[Literal["json", "text"], Query(alias="format")] = "json",
    ) -> Response:
        """Read one log of a run from a byte on; with `format=text` to its end, as plain text."""
        engine = server.call(http).engine
        run = find_run_of(engine, request_id, run_id)
        if form == "text":
            stream = stream_log(engine, run, named_log(number), offset, limit)
            return plain_text(stream, f"{run.run_id}-{log_file(named_log(number))}")
        part = read_log(engine, run, named_log(number), offset, limit or MOST_BYTES)
        return answer(http, log_part_shape(run, part))

    @router.get(f"{RUN}/diff", **reads(DiffAnswer, *MISSING, "NOT_A_REPOSITORY"))
    def diff(
        http: HttpRequest,
        request_id: RequestPath,
        run_id: RunPath,
        step: Annotated[str | None, Query(max_length=20, examples=["S03"])] = None,
    ) -> Response:
        """Show what a run, or one step of it, changed."""
        engine = server.call(http).engine
        return answer(http, diff_shape(diff_run(engine, find_run_of(engine, request_id, run_id), step)))


def _working(router: APIRouter, server: Server) -> None:
    @router.post("/runs", **changes(StartedAnswer, *STARTING, status=202))
    def start(http: HttpRequest, body: StartBody) -> Response:
        """Start a run of the request that the body names; the answer comes once the run exists."""
        call = server.call(http)
        return started(
            server.work.start(
                run_order(call.engine.source, body.request_id, call.person, LeftOut(body.quick, body.no_baseline))
            )
        )

    @router.post(f"{RUN}/resume", **changes(StartedAnswer, *RESUMING, status=202))
    def resume(http: HttpRequest, request_id: RequestPath, run_id: RunPath, body: ResumeBody | None = None) -> Response:
        """Continue a run (D34 §4); the answer comes once its history says so. A new plan is a new run."""
        call = server.call(http)
        how = Resumption(**{**body.model_dump(), "mode": ResumeMode(body.mode)}) if body else Resumption()
        return started(server.work.start(resume_order(call.engine, request_id, run_id, how, call.person)))

    @router.post(
        f"{RUN}/cancel",
        **changes(RunResultAnswer, *MISSING, "RUN_NOT_ACTIVE", "LOCK_LOST", status=200, more={202: RunResultAnswer}),
    )
    def cancel(http: HttpRequest, request_id: RequestPath, run_id: RunPath) -> Response:
        """Cancel a run; 202 while its process still ends the agent."""
        engine = server.call(http).engine
        run = cancel_run(engine, find_run_of(engine, request_id, run_id))
        location = run_links(request_id, run_id)["api_url"]
        return done(run_result(run), 202 if run.is_active else 200, location=location if run.is_active else None)
