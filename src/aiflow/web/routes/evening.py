"""The check before auto-run starts (WEB-1): what will run, what cannot and why, what limits it, is all well."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from aiflow.api.context import Server
from aiflow.domain.health import Health
from aiflow.settings import BY_NAME
from aiflow.usecases.health.check_health import word_of
from aiflow.usecases.morning.evening import check_evening
from aiflow.usecases.project.init import meaning
from aiflow.web.routes.dialogs import dialog

if TYPE_CHECKING:
    from aiflow.api.context import CallContext
    from aiflow.domain.morning.evening import EveningCheck

# The fields of the form, each with the setting that it replaces.
FIELDS = (
    ("max_runs", "limits.session_runs"),
    ("max_minutes", "limits.session_minutes"),
    ("max_cost_usd", "limits.session_cost_usd"),
)
IDS_SHOWN = 12


def routes(server: Server) -> APIRouter:
    """Return the dialog that starts auto-run."""
    router = APIRouter()

    @router.get("/auto/start")
    def start(http: HttpRequest) -> Response:
        call = server.call(http)
        check = check_evening(call.engine, server.project.auto_records)
        return dialog(http, call, "start_auto", **_facts(call, check))

    return router


def _facts(call: CallContext, check: EveningCheck) -> dict[str, object]:
    engine = call.engine
    ceilings = {each.name: each for each in check.ceilings}
    wrong = [each for health in (Health.FAIL, Health.WARN) for each in check.findings if each.health is health]
    return {
        "check": check,
        "ids_shown": IDS_SHOWN,
        "ceilings": [(each, meaning(BY_NAME[each.name], call.texts)) for each in check.ceilings if each.is_set],
        "unset": [each.name for each in check.ceilings if not each.is_set and each.name in BY_NAME],
        "fields": [(name, ceilings[setting].value) for name, setting in FIELDS],
        "wrong": [(each, word_of(engine, each)) for each in wrong],
        "why_not": _why_not(call, check),
    }


def _why_not(call: CallContext, check: EveningCheck) -> str | None:
    """Say what keeps auto-run from starting now."""
    if check.may_start:
        return None
    if check.is_on:
        return call.texts("web.evening.is_on")
    if check.health is Health.FAIL:
        return call.texts("web.doctor.verdict.FAIL")
    return call.texts("web.no_runnable")
