"""The doctor's page (WEB-1): can a run start, and if not, what fixes it."""

from __future__ import annotations

import os

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from aiflow.api.context import Server
from aiflow.domain.health import Health
from aiflow.usecases.doctor.examine import examine
from aiflow.usecases.health.check_health import word_of
from aiflow.usecases.issues.check_issues import findings_of
from aiflow.web.advice import piece_of
from aiflow.web.drawing import page
from aiflow.web.frame import make_frame
from aiflow.wiring import store_look
from aiflow.wiring.issues import issue_look

ORDER = (Health.FAIL, Health.WARN)


def routes(server: Server) -> APIRouter:
    """Return the doctor's page; the full check reclaims what dead processes left behind, so it has to be pressed."""
    router = APIRouter()

    def draw(http: HttpRequest, *, is_full: bool) -> Response:
        call = server.call(http)
        engine = call.engine
        settings = server.live.settings()
        look = store_look(settings, os.environ) if is_full else None
        issues = findings_of(settings, issue_look(server.record.root, settings), call.texts)
        examined = examine(engine, look, issues)
        told = [(each, word_of(engine, each)) for each in examined.findings]
        facts = {
            "frame": make_frame(call),
            "verdict": examined.verdict.value,
            "is_full": is_full,
            "piece_of": piece_of,
            "wrong": [pair for health in ORDER for pair in told if pair[0].health is health],
            "mended": [pair for pair in told if pair[0].health is Health.PASS and pair[0].reason_code],
            "passed": [pair for pair in told if pair[0].health is Health.PASS and not pair[0].reason_code],
        }
        return page(http, call, "doctor.html", facts)

    @router.get("/doctor")
    def quick(http: HttpRequest) -> Response:
        return draw(http, is_full=False)

    @router.post("/doctor")
    def full(http: HttpRequest) -> Response:
        return draw(http, is_full=True)

    return router
