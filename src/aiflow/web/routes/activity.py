"""The activity page (WEB-1): who did what when, by day, newest first."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Annotated, NamedTuple

from fastapi import APIRouter, Query
from starlette.requests import Request as HttpRequest
from starlette.responses import Response, StreamingResponse

from aiflow.api.answers import encoded
from aiflow.api.context import Server
from aiflow.domain.activity import ActivityKind, Actor
from aiflow.domain.request import parse_instant
from aiflow.usecases.activity import ActivityFilter, latest_activity, read_activity
from aiflow.usecases.shapes.activity import entry_shape
from aiflow.usecases.shapes.activity_words import activity_facts, activity_words
from aiflow.web.drawing import page
from aiflow.web.frame import make_frame

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import date, datetime

    from aiflow.api.context import CallContext
    from aiflow.ports.journal import JournalEntry, JournalReader

PAGE = 100
AT_ONCE = 500
# The choices of the page, each with what it shows.
CHOICES: dict[str, ActivityFilter] = {
    "all": ActivityFilter(),
    "transitions": ActivityFilter((ActivityKind.TRANSITION, ActivityKind.STATUS_CHANGED)),
    "decisions": ActivityFilter((ActivityKind.DECISION,)),
    "recoveries": ActivityFilter((ActivityKind.RECOVERY,)),
    "people": ActivityFilter(actors=(Actor.PERSON,)),
}


class ActivityLine(NamedTuple):
    """One entry as it is shown."""

    at: datetime | None
    mark: str
    request_id: str | None
    run_id: str | None
    words: str
    facts: str
    reason_code: str | None
    who: str
    person: str


def routes(server: Server) -> APIRouter:
    """Return the activity page."""
    router = APIRouter()

    @router.get("/activity")
    def activity(
        http: HttpRequest,
        kind: str = "all",
        q: Annotated[str, Query(max_length=200)] = "",
        before: Annotated[str | None, Query(max_length=200)] = None,
    ) -> Response:
        call = server.call(http)
        only = _searched(CHOICES.get(kind, CHOICES["all"]), q.strip())
        found, _ = latest_activity(server.project.journal, PAGE, only, before)
        lines = [_line(call, each) for each in found.entries]
        facts = {
            "frame": make_frame(call),
            "kind": kind if kind in CHOICES else "all",
            "choices": tuple(CHOICES),
            "q": q,
            "days": [(day, list(group)) for day, group in groupby(lines, _day)],
            "older": None if found.is_end else found.cursor,
            "damaged": found.damaged,
        }
        return page(http, call, "activity.html", facts)

    @router.get("/activity.jsonl")
    def download(kind: str = "all", q: Annotated[str, Query(max_length=200)] = "") -> Response:
        """Give the journal as it is recorded, oldest first, a line an entry."""
        only = _searched(CHOICES.get(kind, CHOICES["all"]), q.strip())
        headers = {
            "Content-Disposition": 'attachment; filename="aiflow-activity.jsonl"',
            "Cache-Control": "private, no-store",
        }
        lines = _json_lines(server.project.journal, only)
        return StreamingResponse(lines, media_type="application/x-ndjson", headers=headers)

    return router


def _json_lines(journal: JournalReader, only: ActivityFilter) -> Iterator[bytes]:
    """Yield the entries up to now, a part at a time: a journal may be longer than what a process should hold."""
    cursor: str | None = None
    while True:
        found = read_activity(journal, cursor, AT_ONCE, only)
        if found.entries:
            yield b"".join(encoded(entry_shape(each)) + b"\n" for each in found.entries)
        if found.is_end or found.cursor == cursor:
            return
        cursor = found.cursor


def _searched(only: ActivityFilter, words: str) -> ActivityFilter:
    """Return a filter for what is searched, too: a run, a reason, or a request."""
    if not words:
        return only
    if words.upper().startswith("RUN-"):
        return only._replace(run_id=words)
    if "_" in words and words.upper() == words:
        return only._replace(reason_codes=(words,))
    return only._replace(request_id=words.upper())


def _line(call: CallContext, entry: JournalEntry) -> ActivityLine:
    fields, texts = entry.fields, call.texts
    code = fields.get("reason_code")
    actor = str(fields.get("actor", ""))
    return ActivityLine(
        parse_instant(str(fields.get("at") or "")),
        _mark(fields),
        _text(fields.get("request_id")),
        _text(fields.get("run_id")),
        activity_words(fields, texts),
        activity_facts(fields, texts),
        _text(code),
        texts(f"activity.actor.{actor}") if texts.has(f"activity.actor.{actor}") else actor,
        # What the engine does for somebody still counts as the engine's.
        (_text(fields.get("by")) or "") if actor == Actor.PERSON else "",
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _mark(fields: Mapping[str, object]) -> str:
    """Choose the shape of an entry by what it leads to."""
    data = fields.get("data")
    to = data.get("to") if isinstance(data, dict) else None
    marks = {
        "DONE": "done",
        "done": "done",
        "NEEDS_INPUT": "stopped",
        "blocked": "stopped",
        "FAILED": "fail",
        "completed": "done",
        "stopped": "pause",
    }
    if isinstance(to, str) and to in marks:  # of a list of labels it is a list
        return marks[to]
    if fields.get("kind") == ActivityKind.RECOVERY:
        return "blocked"
    return "run" if fields.get("kind") == ActivityKind.TRANSITION else "ready"


def _day(line: ActivityLine) -> date | None:
    return line.at.astimezone().date() if line.at else None
