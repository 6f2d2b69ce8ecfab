"""The morning (WEB-1): what waits for a person, the night, what runs, what was done, what is next, the last days."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from aiflow.api.context import Server
from aiflow.domain.backlog.looks import WhyKind, why_not_now
from aiflow.domain.morning.fates import RunFate
from aiflow.domain.morning.night import GapKind
from aiflow.usecases.morning.days import runs_of_days, tell_days
from aiflow.usecases.morning.night import tell_night
from aiflow.usecases.morning.recent_runs import ReadBefore
from aiflow.usecases.morning.waiting import tell_waiting
from aiflow.usecases.runs.logs import last_line
from aiflow.usecases.shapes.backlog import describe
from aiflow.web.drawing import page
from aiflow.web.frame import make_frame

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from aiflow.api.context import CallContext
    from aiflow.domain.auto.standing import AtWork, Glance
    from aiflow.domain.backlog.looks import Why
    from aiflow.domain.backlog.selection import Backlog, Exclusion
    from aiflow.domain.morning.night import Bar, Gap, Night
    from aiflow.domain.request import Request, RequestId
    from aiflow.usecases.engine import Engine

NEXT_SHOWN = 6
EXCLUDED_SHOWN = 6
GAPS_SAID = 8


def routes(server: Server) -> APIRouter:
    """Return the first page."""
    router = APIRouter()

    @router.get("/")
    def morning(http: HttpRequest) -> Response:
        call = server.call(http)
        engine, project = call.engine, server.project
        board = call.look()
        backlog = board.backlog
        frame = make_frame(call, board)
        known = ReadBefore(backlog, runs_of_days(engine))
        night = tell_night(engine, project.auto_records, project.journal, known=known)
        waiting = tell_waiting(engine, call.texts, backlog)
        excluded = tuple(_kept(frame.seen, {item.request_id for item in waiting.items}))
        facts = {
            "frame": frame,
            "night": night,
            "gaps": _gaps(night),
            "gaps_said": GAPS_SAID,
            "done": tuple(_done(night)),
            "waiting": waiting,
            "running": [(each, _tail(engine, each)) for each in frame.seen.running],
            "days": tell_days(engine, known=known),
            "selection": frame.seen.selection,
            "continued": frame.seen.continued,
            "upcoming": (*frame.seen.continued, *frame.seen.selection.runnable)[:NEXT_SHOWN],
            "excluded": tuple(_in_words(call, backlog, excluded[:EXCLUDED_SHOWN])),
            "excluded_count": len(excluded),
            "depends_of": partial(_depends_of, backlog, board.waiting),
            "follow_ups": board.follow_ups,
            "auto": frame.seen.auto,
            "is_first_use": not backlog.requests and not backlog.invalid,
        }
        return page(http, call, "morning.html", facts)

    return router


def _gaps(night: Night) -> list[Gap]:
    """Return why nothing ran, the longest first; before the night's first work auto-run was just not started yet."""
    told = [gap for gap in night.gaps if gap.start > 0 or gap.kind is not GapKind.OFF or gap.reason_code]
    return sorted(told, key=lambda gap: gap.width, reverse=True)


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


def _kept(seen: Glance, waiting: set[str]) -> Iterator[Exclusion]:
    """Yield what cannot run; what runs, waits for a person or has its turn stands there, and only there."""
    elsewhere = waiting | {each.request_id for each in seen.running}
    elsewhere.update(request.id for request in (*seen.continued, *seen.selection.runnable))
    return (each for each in seen.selection.excluded if each.request_id not in elsewhere)


def _in_words(call: CallContext, backlog: Backlog, kept: Iterable[Exclusion]) -> Iterator[tuple[Request, str]]:
    """Yield what cannot run, and why, in words."""
    for each in kept:
        request = backlog.by_id.get(each.request_id)
        if request is not None:
            yield request, describe(each.barrier, call.texts, each.invalid)


def _depends_of(backlog: Backlog, waiting: Mapping[RequestId, str], request: Request) -> Why | None:
    """Return whom a request waits for, if that is why it cannot run."""
    why = why_not_now(request, backlog, waiting)
    return why if why.kind is WhyKind.DEPENDS else None
