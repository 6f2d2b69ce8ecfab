"""Whether the server is up, how the checkout stands, and what its settings and agents are."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from aiflow.api.answers import answer
from aiflow.api.context import Server
from aiflow.api.documents import reads
from aiflow.api.models.doctor import AgentsAnswer, SettingsAnswer
from aiflow.api.models.report import CostsAnswer
from aiflow.api.models.server import HealthAnswer, StatusAnswer
from aiflow.usecases.auto.standing import look_around
from aiflow.usecases.morning.costs import tell_costs
from aiflow.usecases.project.list_agents import list_agents
from aiflow.usecases.project.settings import list_settings
from aiflow.usecases.server.degraded import what_is_degraded
from aiflow.usecases.shapes.backlog import ENGLISH
from aiflow.usecases.shapes.costs import costs_shape
from aiflow.usecases.shapes.project import agents_shape, settings_shape
from aiflow.usecases.shapes.status import standing_shape
from aiflow.wiring import find_agents


def routes(server: Server) -> APIRouter:
    """Return the routes about the server itself."""
    router = APIRouter(prefix="/api", tags=["server"])

    @router.get("/health", **reads(HealthAnswer, is_open=True))
    def health(http: HttpRequest) -> Response:
        """Identify this server, without signing in; signed-in callers also see what is degraded."""
        call = server.call(http)
        trouble = server.issues.trouble
        degraded = what_is_degraded(lambda: call.engine, call.view, trouble) if call.caller else None
        record = server.record
        return answer(http, {"instance_id": record.instance_id, "version": record.version, "degraded": degraded})

    @router.get("/status", **reads(StatusAnswer))
    def status(http: HttpRequest) -> Response:
        """Show what runs, what waits for a person, what is next, and the state of auto-run."""
        engine = server.call(http).engine
        return answer(http, standing_shape(look_around(engine, server.project.auto_records, ENGLISH)))

    @router.get("/costs", **reads(CostsAnswer))
    def costs(http: HttpRequest) -> Response:
        """Show what runs cost: in the last 30 days by role and request, and by night and month."""
        return answer(http, costs_shape(tell_costs(server.call(http).engine)))

    @router.get("/settings", **reads(SettingsAnswer))
    def settings(http: HttpRequest) -> Response:
        """List the current settings."""
        return answer(http, settings_shape(list_settings(server.live.settings())))

    @router.get("/agents", **reads(AgentsAnswer))
    def agents(http: HttpRequest) -> Response:
        """List the agents of this machine, and which of them the roles use; this calls their programs."""
        settings = server.live.settings()
        programs = find_agents(settings, server.record.root)
        return answer(http, agents_shape(list_agents(programs, settings, is_project=True)))

    return router
