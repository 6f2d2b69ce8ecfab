"""The doctor: everything that a run needs."""

from __future__ import annotations

import os
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from aiflow.api.answers import done
from aiflow.api.context import Server
from aiflow.api.documents import changes
from aiflow.api.models.doctor import DoctorAnswer
from aiflow.usecases.doctor.examine import examine
from aiflow.usecases.issues.check_issues import findings_of
from aiflow.usecases.shapes.project import doctor_shape
from aiflow.wiring import store_look
from aiflow.wiring.issues import issue_look


def routes(server: Server) -> APIRouter:
    """Return the doctor's route."""
    router = APIRouter(prefix="/api/doctor", tags=["doctor"])

    @router.post("", **changes(DoctorAnswer))
    def check(http: HttpRequest, mode: Annotated[Literal["quick", "full"], Query()] = "quick") -> Response:
        """Check everything that a run needs; `full` also reclaims what processes that are gone left behind."""
        is_full = mode == "full"
        call, settings = server.call(http), server.live.settings()
        look = store_look(settings, os.environ) if is_full else None
        issues = findings_of(settings, issue_look(server.record.root, settings), call.texts)
        examined = examine(call.engine, look, issues)
        return done(doctor_shape(examined.findings, examined.verdict, is_full=is_full))

    return router
