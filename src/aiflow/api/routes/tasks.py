"""Tasks, runners and namespaces of the queue store; a question never starts a store, handing work over may."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from aiflow.api.answers import answer, done
from aiflow.api.context import CallContext, Server
from aiflow.api.documents import MOST_NAME, PAGE, Cursor, Limit, Namespace, Place, changes, reads
from aiflow.api.models.errors import STARTING, STORE
from aiflow.api.models.tasks import (
    AddedAnswer,
    CancelledAnswer,
    NamespacesAnswer,
    RunnersAnswer,
    TaskAnswer,
    TaskBody,
    TasksAnswer,
)
from aiflow.domain.lifecycle import TaskStatus
from aiflow.domain.request import is_valid_id, normalize_id
from aiflow.errors import BadInputError, NotFoundError
from aiflow.messages.details import words
from aiflow.usecases.queue.add import Added, add_orders
from aiflow.usecases.queue.desk import StoreView
from aiflow.usecases.queue.list import list_queue
from aiflow.usecases.queue.look import TaskFilter
from aiflow.usecases.queue.namespaces import list_namespaces
from aiflow.usecases.queue.orders import TypedOrder, orders_of
from aiflow.usecases.queue.runners import list_runners
from aiflow.usecases.queue.show import show_task
from aiflow.usecases.runner.cancel_task import cancel_at_once
from aiflow.usecases.shapes.pages import with_page
from aiflow.usecases.shapes.tasks import (
    added_shape,
    cancelled_shape,
    namespaces_shape,
    runner_list,
    shown_task_shape,
    task_list,
)

TaskPath = Annotated[str, Path(min_length=1, max_length=MOST_NAME)]
STORE_STARTED = ("STORE_NOT_FETCHED", "STORE_NOT_STARTED", "PROMPT_TOO_LARGE", "PROMPT_EMPTY")


def routes(server: Server) -> APIRouter:
    """Return the routes about the queue store."""
    router = APIRouter(prefix="/api", tags=["tasks"])
    _reading(router, server)
    _looking(router, server)
    _writing(router, server)
    return router


def _reading(router: APIRouter, server: Server) -> None:
    @router.get("/tasks", **reads(TasksAnswer, *STORE))
    def list_(
        http: HttpRequest,
        status: Annotated[list[TaskStatus] | None, Query()] = None,
        limit: Limit = PAGE,
        after: Cursor = None,
        all: bool = False,  # noqa: A002, FBT001, FBT002
        namespace: Namespace = None,
    ) -> Response:
        """List tasks, newest first; `next_start` is the `after` of the next page."""
        view = _view(server.call(http), namespace, is_all=all)
        wanted = TaskFilter(tuple(status or ()), limit, after)
        found = list_queue(view, server.project.sources, wanted, is_all=all)
        return answer(http, task_list(found.tasks, None if all else view.namespace, found.next_start))

    @router.get("/tasks/{task_id}", **reads(TaskAnswer, *STORE, "TASK_NOT_FOUND"))
    def show(http: HttpRequest, task_id: TaskPath, namespace: Namespace = None) -> Response:
        """Show one task with all of its prompt."""
        shown = show_task(server.call(http).view(namespace).desk, server.project.sources, task_id)
        return answer(http, shown_task_shape(shown.task, shown.scene, shown.prompt))


def _looking(router: APIRouter, server: Server) -> None:
    @router.get("/runners", **reads(RunnersAnswer, *STORE))
    def runners(
        http: HttpRequest,
        all: bool = False,  # noqa: A002, FBT001, FBT002
        namespace: Namespace = None,
        limit: Limit = PAGE,
        after: Place = 0,
    ) -> Response:
        """List the runners, running ones first."""
        view = _view(server.call(http), namespace, is_all=all)
        found = list_runners(view, is_all=all, limit=limit, after=after)
        return answer(http, with_page(runner_list(found.runners, found.now, found.timeout_seconds), found))

    @router.get("/namespaces", **reads(NamespacesAnswer, *STORE))
    def namespaces(http: HttpRequest) -> Response:
        """List the namespaces of the store."""
        found = list_namespaces(server.call(http).view())
        return answer(http, {"namespaces": namespaces_shape(found.counts, found.alive, found.own)})


def _writing(router: APIRouter, server: Server) -> None:
    @router.post(
        "/tasks",
        **changes(
            AddedAnswer,
            *(*STORE, *STORE_STARTED, *STARTING, "TASK_EXISTS", "TASK_ID_INVALID", "REQUEST_QUEUED"),
            *("RUN_NOT_FOUND", "RUN_NOT_RESUMABLE", "NEEDS_CLARIFICATION", "RUN_NOT_ACCEPTABLE"),
            status=201,
            more={200: AddedAnswer},
        ),
    )
    def add(http: HttpRequest, body: TaskBody) -> Response:
        """Queue work for a runner; repeating a task adds none (200). Starts the store of this machine."""
        call = server.call(http)
        added = _add(call, body)
        shape = added_shape(added.tasks, added.scene, added.refused, added.foreseen, call.texts)
        task, is_new = added.tasks[0]
        return done(shape, 201 if is_new else 200, location=f"/api/tasks/{task.task_id}")

    @router.post("/tasks/{task_id}/cancel", **changes(CancelledAnswer, *STORE, "TASK_NOT_FOUND", "TASK_NOT_ACTIVE"))
    def cancel(http: HttpRequest, task_id: TaskPath, namespace: Namespace = None) -> Response:
        """Cancel a task: a queued one at once, a running one as soon as its runner has ended the agent."""
        call = server.call(http)
        desk = call.view(namespace).desk
        who = call.texts("queue.cancelled_by", user=call.person, host=desk.checkout.host)
        done_now = cancel_at_once(desk, task_id, who, lambda: call.engine, call.engine_at)
        return done(cancelled_shape([done_now], (), call.texts))


def _view(call: CallContext, namespace: str | None, *, is_all: bool) -> StoreView:
    """Open the store for a list of one namespace, or of all."""
    if is_all and namespace is not None:
        raise BadInputError(detail=words("api.all_alone"))
    return call.view(namespace)


def _add(call: CallContext, body: TaskBody) -> Added:
    """Put what a body asks for into the queue."""
    given = body.model_dump(exclude={"request_id", "run_id", "mode", "target_step_id", "namespace"})
    names = tuple(filter(None, (body.run_id or body.request_id,)))
    for name in names:
        if not is_valid_id(name):
            raise NotFoundError(request_id=name)
    modes = {mode: body.mode == mode for mode in ("resume", "retry_step", "replan")}
    typed = TypedOrder(names, **{**given, **modes, "step": body.target_step_id})
    engine = call.engine
    makers = orders_of(typed, engine.backlog, lambda: engine, normalize_id, call.texts)
    desk = lambda: call.view(body.namespace, is_to_write=True).desk  # noqa: E731
    return add_orders(makers, body.task_id, desk, lambda: engine)
