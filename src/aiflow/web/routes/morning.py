"""The morning (WEB-1): what waits for a person, the night, what runs, what was done, what is next, the last days."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from aiflow.api.context import Server
from aiflow.domain.morning.fates import RunFate
from aiflow.usecases.auto.standing import read_standing
from aiflow.usecases.morning.days import tell_days
from aiflow.usecases.morning.night import tell_night
from aiflow.usecases.morning.waiting import tell_waiting
from aiflow.usecases.runs.logs import last_line
from aiflow.usecases.shapes.backlog import describe
from aiflow.web.drawing import page
from aiflow.web.frame import make_frame

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiflow.api.context import CallContext
    from aiflow.domain.auto.standing import AtWork
    from aiflow.domain.backlog.selection import Backlog, Selection
    from aiflow.domain.morning.night import Bar, Night
    from aiflow.domain.request import Request
    from aiflow.usecases.engine import Engine

NEXT_SHOWN = 6
EXCLUDED_SHOWN = 6


def routes(server: Server) -> APIRouter:
    """Return the first page."""
    router = APIRouter()

    @router.get("/")
    def morning(http: HttpRequest) -> Response:
        call = server.call(http)
        engine, project = call.engine, server.project
        backlog = read_standing(engine, project.auto_records)
        frame = make_frame(call, backlog)
        night = tell_night(engine, project.auto_records, project.journal, backlog=backlog)
        facts = {
            "frame": frame,
            "night": night,
            "done": tuple(_done(night)),
            "waiting": tell_waiting(engine, call.texts, backlog),
            "running": [(each, _tail(engine, each)) for each in frame.seen.running],
            "days": tell_days(engine, backlog=backlog),
            "selection": frame.seen.selection,
            "continued": frame.seen.continued,
            "upcoming": (*frame.seen.continued, *frame.seen.selection.runnable)[:NEXT_SHOWN],
            "excluded": tuple(_excluded(call, backlog, frame.seen.selection)),
            "auto": frame.seen.auto,
            "is_first_use": not backlog.requests and not backlog.invalid,
        }
        return page(http, call, "morning.html", facts)

    return router


def _done(night: Night) -> Iterator[Bar]:
    """Yield what was done in the night, newest first, each once."""
    seen = set()
    for bar in reversed(night.bars):
        if bar.fate is RunFate.DONE and bar.request_id not in seen:
            seen.add(bar.request_id)
            yield bar


def _tail(engine: Engine, each: AtWork) -> str:
    """Return the last line that somebody at work wrote."""
    run = engine.runs.load(each.request_id, each.run_id) if each.run_id else None
    return last_line(engine, run) if run is not None else ""


def _excluded(call: CallContext, backlog: Backlog, selection: Selection) -> Iterator[tuple[Request, str]]:
    """Yield what is ready and cannot run, and why, in words."""
    for each in selection.excluded[:EXCLUDED_SHOWN]:
        request = backlog.by_id.get(each.request_id)
        if request is not None:
            yield request, describe(each.barrier, call.texts, each.invalid)
