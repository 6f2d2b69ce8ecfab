"""Settings and agents, to read (WEB-1): what counts, where it comes from, what it means; secrets are masked."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from aiflow.api.context import Server
from aiflow.settings import Source
from aiflow.usecases.project.init import meaning, to_toml
from aiflow.usecases.project.list_agents import list_agents
from aiflow.usecases.project.settings import list_settings
from aiflow.usecases.shapes.agent_words import login_words, note_words, trouble_words
from aiflow.web.drawing import page
from aiflow.web.frame import make_frame
from aiflow.wiring import find_agents

if TYPE_CHECKING:
    from aiflow.api.context import CallContext
    from aiflow.usecases.project.settings import SettingLine


class ShownSetting(NamedTuple):
    """One setting as it is shown."""

    name: str
    value: str
    source: str
    is_changed: bool
    means: str
    variable: str


def routes(server: Server) -> APIRouter:
    """Return the pages of the settings and of the agents."""
    router = APIRouter()

    @router.get("/settings")
    def settings(http: HttpRequest, show: str = "all") -> Response:
        call = server.call(http)
        is_short = show == "changed"
        lines = list_settings(server.live.settings(), only_changed=is_short)
        facts = {
            "frame": make_frame(call),
            "sections": [
                (section, [_shown(call, line) for line in group]) for section, group in groupby(lines, _section)
            ],
            "is_short": is_short,
        }
        return page(http, call, "settings.html", facts)

    @router.get("/agents")
    def agents(http: HttpRequest) -> Response:
        call, texts = server.call(http), server.call(http).texts
        programs = find_agents(server.live.settings(), server.record.root)
        found = list_agents(programs, server.live.settings(), is_project=True)
        rows = [
            (each, login_words(each, texts), note_words(each, texts), trouble_words(each, texts) if each.roles else "")
            for each in found
        ]
        return page(http, call, "agents.html", {"frame": make_frame(call), "agents": rows})

    return router


def _section(line: SettingLine) -> str:
    """Return the table of `aiflow.toml` that a setting is in."""
    return line.row.name.rpartition(".")[0]


def _shown(call: CallContext, line: SettingLine) -> ShownSetting:
    return ShownSetting(
        line.row.name,
        call.engine.mask(to_toml(line.effective)),
        call.texts(f"source.{line.source}"),
        line.source is not Source.DEFAULT,
        meaning(line.row, call.texts),
        line.row.env_names[0],
    )
