"""The journal: what happened here, when, and who did it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import StringConstraints
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from aiflow.api.answers import answer
from aiflow.api.context import Server
from aiflow.api.documents import MOST_NAME, PAGE, JournalCursor, Limit, reads
from aiflow.api.models.server import ActivityAnswer
from aiflow.domain.activity import ActivityKind, Actor
from aiflow.errors import BadInputError
from aiflow.messages.details import words
from aiflow.usecases.activity import ActivityFilter, latest_activity, read_activity
from aiflow.usecases.shapes.activity import activity_shape

ReasonCode = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z0-9_]*$", max_length=60)]
Name = Annotated[str | None, Query(min_length=1, max_length=MOST_NAME)]


def routes(server: Server) -> APIRouter:
    """Return the journal's route."""
    router = APIRouter(prefix="/api/activity", tags=["activity"])

    @router.get("", **reads(ActivityAnswer))
    def list_(
        http: HttpRequest,
        kind: Annotated[list[ActivityKind] | None, Query()] = None,
        actor: Annotated[list[Actor] | None, Query()] = None,
        reason_code: Annotated[list[ReasonCode] | None, Query()] = None,
        request_id: Name = None,
        run_id: Name = None,
        limit: Limit = PAGE,
        before: JournalCursor = None,
        after: JournalCursor = None,
    ) -> Response:
        """Read the journal: newest first, back from `before`; or what came after `after`, oldest first."""
        if before is not None and after is not None:
            raise BadInputError(detail=words("api.one_direction"))
        only = ActivityFilter(kind or (), actor or (), request_id, run_id, reason_code or ())
        journal = server.project.journal
        if after is not None:
            return answer(http, activity_shape(read_activity(journal, after, limit, only)))
        page, _ = latest_activity(journal, limit, only, before)
        return answer(http, activity_shape(page))

    return router
