"""A run's page (WEB-1): where it is, why it stopped, how it continues; its steps, log, changes, report and plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Path, Query
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from aiflow.api.answers import answer
from aiflow.api.context import Server
from aiflow.domain.issue_ways import is_issue
from aiflow.domain.runs.log_names import LOG_NAME, named_log
from aiflow.domain.runs.report import criteria_of
from aiflow.usecases.runs.find import find_run_of
from aiflow.usecases.runs.finished import look_at_finished
from aiflow.usecases.runs.look import look_at_run
from aiflow.web.drawing import RUN, page
from aiflow.web.frame import make_frame
from aiflow.web.log_reading import LogReaders, Wanted
from aiflow.web.run_panes import choose, draw_pane
from aiflow.web.run_view import RunRules, panel, standing

if TYPE_CHECKING:
    from aiflow.api.context import CallContext

# So many lines at most are read at once; so many characters are looked for.
MOST_LINES = 1_000
Words = Annotated[str, Query(max_length=1_000)]
LogName = Annotated[str, Path(pattern=LOG_NAME)]


def routes(server: Server) -> APIRouter:
    """Return the page, and what its log viewer reads: lines with their colours and times, and what is found in them."""
    router, readers = APIRouter(), LogReaders()

    @router.get(RUN)
    def show(http: HttpRequest, request_id: str, run_id: str, step: str = "", view: str = "") -> Response:
        call = server.call(http)
        return draw_run(http, call, request_id, run_id, (step, view))

    @router.get(f"{RUN}/logs/{{number}}")
    def log(
        http: HttpRequest,
        request_id: str,
        run_id: str,
        number: LogName,
        first: Annotated[int, Query(ge=-MOST_LINES, le=10**12)] = 0,
        count: Annotated[int, Query(ge=0, le=MOST_LINES)] = MOST_LINES,
        words: Words = "",
        *,
        whole: bool = False,
    ) -> Response:
        engine = server.call(http).engine
        reader = readers.of(engine, find_run_of(engine, request_id, run_id), named_log(number))
        return answer(http, reader.lines(Wanted(first, count, words, whole)))

    @router.get(f"{RUN}/logs/{{number}}/find")
    def find(
        http: HttpRequest,
        request_id: str,
        run_id: str,
        number: LogName,
        words: Words = "",
        at: Annotated[int, Query(ge=0, le=10**12)] = 0,
        after: Annotated[int | None, Query(ge=-1, le=10**12)] = None,
    ) -> Response:
        engine = server.call(http).engine
        reader = readers.of(engine, find_run_of(engine, request_id, run_id), named_log(number))
        return answer(http, reader.find(words, at, after))

    return router


def draw_run(http: HttpRequest, call: CallContext, request_id: str, run_id: str, asked: tuple[str, str]) -> Response:
    """Draw a run's page with the step and the view that the address names."""
    engine = call.engine
    frame = make_frame(call)
    is_continued = any(each.id == request_id for each in frame.seen.continued)
    look = look_at_run(engine, request_id, run_id, is_continued=is_continued)
    chosen = choose(look, *asked)
    facts = {
        "frame": frame,
        "look": look,
        "run": look.run,
        "criteria": criteria_of(look.run),
        "standing": standing(look, call.texts),
        "panel": panel(look, call.texts, RunRules(engine.limits.step_retries, bool(engine.test_commands))),
        "role_attempts": engine.limits.role_attempts,
        "chosen": chosen,
        # What is read stays in view when the run moves on: the page fetches itself again with its view named.
        "here": chosen.link(chosen.step if asked[0] else "", chosen.view),
        "pane": draw_pane(http, engine, look, chosen),
        "finished": look_at_finished(engine, look.run),
        "is_file": not is_issue(look.run.request_id),
    }
    return page(http, call, "run.html", facts)
