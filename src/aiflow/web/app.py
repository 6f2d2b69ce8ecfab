"""The whole application: pages and API behind one guard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.api.app import make_app as make_api
from aiflow.web import pages

if TYPE_CHECKING:
    from aiflow.api.context import Server
    from aiflow.api.guard import AccessGuard


def make_app(server: Server) -> AccessGuard:
    """Put the application together."""
    return make_api(server, (pages.routes(server),))
