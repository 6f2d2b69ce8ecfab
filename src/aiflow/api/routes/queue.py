"""The queue: what is next, what follows, and auto-run, which works through it."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from aiflow.api.answers import answer, done
from aiflow.api.context import Server
from aiflow.api.documents import PAGE, Limit, Place, changes, reads
from aiflow.api.models.queue import (
    AutoStartedAnswer,
    ForecastAnswer,
    NextAnswerModel,
    QueueAnswer,
    RunNextBody,
    StopAnswer,
    StopBody,
)
from aiflow.domain.auto.stopping import StopRequest
from aiflow.usecases.auto.stop import stop_or_call_off
from aiflow.usecases.backlog.forecast import forecast_backlog
from aiflow.usecases.backlog.next import next_request
from aiflow.usecases.server.orders import AutoWishes, auto_order
from aiflow.usecases.server.queue import look_at_queue
from aiflow.usecases.shapes.auto import stop_shape
from aiflow.usecases.shapes.backlog import forecast_result, next_request_result
from aiflow.usecases.shapes.pages import with_page
from aiflow.usecases.shapes.queue import queue_shape
from aiflow.wiring import namespace_of


def routes(server: Server) -> APIRouter:
    """Return the routes about the queue."""
    router = APIRouter(prefix="/api/queue", tags=["queue"])
    _reading(router, server)
    _working(router, server)
    return router


def _reading(router: APIRouter, server: Server) -> None:
    @router.get("", **reads(QueueAnswer, "NAMESPACE_INVALID"))
    def show(http: HttpRequest) -> Response:
        """Show the state of auto-run and of the tasks; reports a store that does not answer, and starts none."""
        call = server.call(http)
        found = look_at_queue(call.engine, server.project.auto_records, call.view)
        namespace = namespace_of(server.project, server.live.settings())
        told = found.trouble if found.trouble is not None else found.counts or {}
        return answer(http, queue_shape(found.auto, found.store, namespace, told, call.texts))

    @router.get("/next", **reads(NextAnswerModel))
    def next_(http: HttpRequest, all: bool = False) -> Response:  # noqa: A002, FBT001, FBT002
        """Show which request runs next and why the others do not (D59 §8.2)."""
        engine = server.call(http).engine
        found = next_request(engine.backlog, lambda: engine.locks, include_all=all, is_brief=True)
        return answer(http, next_request_result(found.selection))

    @router.get("/forecast", **reads(ForecastAnswer))
    def forecast(http: HttpRequest, limit: Limit = PAGE, after: Place = 0) -> Response:
        """Show the order in which the backlog will run, and what never can."""
        engine = server.call(http).engine
        found = forecast_backlog(engine.backlog, lambda: engine.locks, limit=limit, after=after)
        return answer(http, with_page(forecast_result(found.foreseen), found))


def _working(router: APIRouter, server: Server) -> None:
    @router.post(
        "/run-next",
        **changes(
            AutoStartedAnswer,
            *("QUEUE_IN_PROGRESS", "RUN_IN_PROGRESS", "DOCTOR_FAILED", "START_UNCONFIRMED"),
            status=202,
        ),
    )
    def run_next(http: HttpRequest, body: RunNextBody | None = None) -> Response:
        """Start auto-run: it works through the backlog, beginning with the next request."""
        server.live.settings()  # raises before a worker starts if they have a mistake or the checkout is gone
        wishes = AutoWishes(**body.model_dump()) if body else AutoWishes()
        begun = server.work.start(auto_order(wishes, server.call(http).person))
        return done({"pid": begun.pid, "summary": begun.answer}, 202, location="/api/queue")

    @router.post("/stop", **changes(StopAnswer, "AUTO_NOT_RUNNING", status=202))
    def stop(http: HttpRequest, body: StopBody | None = None) -> Response:
        """Ask auto-run to stop: after the current run, or now."""
        wish = StopRequest.NOW if body and body.now else StopRequest.AFTER_RUN
        asked = stop_or_call_off(server.call(http).engine, wish)
        return done(
            stop_shape(wish, asked.auto, asked.run, is_ended=bool(asked.called_off)), 202, location="/api/queue"
        )
