"""Locks: who works on what, and breaking one by hand."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from aiflow.api.answers import answer, done
from aiflow.api.context import Server
from aiflow.api.documents import RequestPath, changes, reads
from aiflow.api.models.doctor import BrokenLockAnswer, LocksAnswer
from aiflow.domain.request import normalize_id
from aiflow.usecases.runs.locks import break_lock, list_locks
from aiflow.usecases.shapes.runs import broken_lock_shape, lock_list


def routes(server: Server) -> APIRouter:
    """Return the routes about locks."""
    router = APIRouter(prefix="/api/locks", tags=["locks"])

    @router.get("", **reads(LocksAnswer))
    def list_(http: HttpRequest) -> Response:
        """List the locks of this checkout, each with what is known of its holder."""
        return answer(http, lock_list(list_locks(server.call(http).engine)))

    @router.post("/{name}/break", **changes(BrokenLockAnswer, "LOCK_NOT_FOUND"))
    def break_(http: HttpRequest, name: RequestPath) -> Response:
        """Break a request's lock, the `queue`'s or a runner's `turn`; its holder, if any, ends its agent."""
        return done(broken_lock_shape(break_lock(server.call(http).engine, normalize_id(name))))

    return router
