"""The queue's page (WEB-1): who works, what is queued, what no runner takes; without a store, how to get one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from aiflow.api.context import Server
from aiflow.domain.lifecycle import TaskStatus
from aiflow.errors import AiflowError
from aiflow.settings.table import LOCAL_STORE
from aiflow.usecases.queue.list import list_queue
from aiflow.usecases.queue.look import TaskFilter
from aiflow.usecases.queue.namespaces import list_namespaces
from aiflow.usecases.queue.runners import list_runners
from aiflow.usecases.runner.cancel_task import cancel_at_once
from aiflow.usecases.shapes.errors import actions_of, error_facts
from aiflow.usecases.shapes.task_words import remark_on, work_of
from aiflow.usecases.shapes.tasks import namespaces_shape, runner_state
from aiflow.web import told
from aiflow.web.acting import Receipt, act
from aiflow.web.advice import advice_pieces
from aiflow.web.drawing import page
from aiflow.web.frame import make_frame

if TYPE_CHECKING:
    from datetime import datetime

    from aiflow.api.context import CallContext
    from aiflow.domain.queue.task import Task
    from aiflow.domain.queue.why_waiting import QueueScene
    from aiflow.usecases.queue.desk import StoreView
    from aiflow.usecases.queue.list import TaskList

PAGE = 50


def routes(server: Server) -> APIRouter:
    """Return the queue's page."""
    router = APIRouter()

    @router.get("/queue")
    def queue(http: HttpRequest, after: Annotated[str | None, Query(max_length=2000)] = None) -> Response:
        call = server.call(http)
        facts: dict[str, object] = {
            "frame": make_frame(call),
            "trouble": None,
            "statuses": [status.value for status in TaskStatus],
        }
        try:
            facts |= _look(server, call, after)
        except AiflowError as error:
            message = call.texts.message(error.reason_code, error_facts(error, call.texts))
            advice = advice_pieces(actions_of(error, message.actions), call.texts, {})
            is_unused = error.reason_code == "STORE_UNREACHABLE" and error.context.get("endpoint") == LOCAL_STORE
            facts |= {"trouble": error, "told": message, "advice": advice, "is_unused": is_unused}
        return page(http, call, "queue.html", facts)

    @router.post("/queue/{namespace}/{task_id}/cancel")
    def cancel(http: HttpRequest, namespace: str, task_id: str) -> Response:
        call = server.call(http)

        def do() -> Receipt:
            desk = call.view(namespace).desk
            who = call.texts("queue.cancelled_by", user=call.person, host=desk.checkout.host)
            cancel_at_once(desk, task_id, who, lambda: call.engine, call.engine_at)
            return Receipt(call.texts("web.receipt.task_cancelled"), "/queue")

        return act(http, call, do)

    return router


def _look(server: Server, call: CallContext, after: str | None) -> dict[str, object]:
    """Read everything that the page shows out of the store."""
    view: StoreView = call.view()
    namespaces = list_namespaces(view)
    runners = list_runners(view, is_all=True, limit=PAGE)
    tasks = list_queue(view, server.project.sources, TaskFilter((), PAGE, after), is_all=True)
    return {
        "namespaces": namespaces_shape(namespaces.counts, namespaces.alive, namespaces.own),
        "runners": [
            (each, runner_state(each, runners.now, runners.timeout_seconds, is_gone=is_gone))
            for each, is_gone in runners.runners
        ],
        "tasks": _rows(tasks, call),
        "older": tasks.next_start,
        "own": namespaces.own,
    }


def _rows(tasks: TaskList, call: CallContext) -> list[tuple[Task, str, str]]:
    """Return tasks, each with its words; live ones come first."""

    def row(task: Task, scene: QueueScene) -> tuple[Task, str, str]:
        def ago(at: datetime) -> str:
            return str(told.ago(call.texts, scene.now, at).striptags())

        return task, work_of(task, call.texts), remark_on(task, scene, call.texts, ago)

    return sorted((row(*each) for each in tasks.tasks), key=lambda row: row[0].is_final)
