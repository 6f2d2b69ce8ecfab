"""`/metrics`: the figures of this checkout, as Prometheus reads them."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from fastapi import APIRouter
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from aiflow.api.context import CallContext, Server
from aiflow.api.documents import plain_text
from aiflow.api.models.errors import ALWAYS, MACHINE, errors
from aiflow.domain.server.measures import Measures
from aiflow.usecases.read_backlog import read_backlog
from aiflow.usecases.server.measure import measure
from aiflow.usecases.server.queue import look_at_queue

if TYPE_CHECKING:
    from aiflow.domain.lifecycle import TaskStatus
    from aiflow.usecases.engine import Engine

DESCRIPTION = "The metrics, as Prometheus reads them."
EXAMPLE = (
    '# HELP aiflow_requests Requests by status\n# TYPE aiflow_requests gauge\naiflow_requests{status="ready"} 3.0\n'
)


def routes(server: Server) -> APIRouter:
    """Return the route of the figures."""
    router = APIRouter(tags=["server"])
    figures = _Figures(server)

    @router.get(
        "/metrics",
        response_class=Response,
        responses={
            **errors(*ALWAYS, *MACHINE, "NAMESPACE_INVALID"),
            200: {"description": DESCRIPTION, "content": plain_text(EXAMPLE)},
        },
    )
    def metrics(http: HttpRequest) -> Response:
        """Return runs, time, tokens, cost, queue depth and recoveries, in Prometheus' text format."""
        registry = CollectorRegistry()
        registry.register(figures.of(server.call(http)))
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_PLAIN_0_0_4)

    return router


# Figures by their labels' values.
_Values = Mapping[Any, float]


class Family(NamedTuple):
    """One figure, or one for each value of its labels; a counter only grows while the server is up."""

    meaning: str
    labels: tuple[str, ...] = ()
    is_counter: bool = True


# A counter's name gets `_total` after it. The guide "Metrics" has all of them.
FAMILIES = {
    "aiflow_runs": Family("Runs by outcome and reason", ("outcome", "reason_code"), is_counter=False),
    "aiflow_run_seconds": Family("Seconds that runs were worked on"),
    "aiflow_steps": Family("Finished steps"),
    "aiflow_step_seconds": Family("Seconds that steps were worked on"),
    "aiflow_agent_calls": Family("Calls of agents"),
    "aiflow_agent_seconds": Family("Seconds that agents worked"),
    "aiflow_cost_usd": Family("What agents said they cost, in US dollars"),
    "aiflow_tokens": Family("Tokens by kind", ("kind",)),
    "aiflow_requests": Family("Requests by status", ("status",), is_counter=False),
    "aiflow_queue_tasks": Family(
        "Tasks of this project's namespace by status, while the store answers", ("status",), is_counter=False
    ),
    "aiflow_recoveries": Family("What was put right after a crash, by reason", ("reason_code",)),
    "aiflow_server": Family("This server", ("instance_id", "version"), is_counter=False),
}


class _Figures:
    """What was counted so far, for one caller at a time."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._measures = Measures()
        self._guard = threading.Lock()

    def of(self, call: CallContext) -> _Collected:
        """Bring the figures up to date."""
        engine = call.engine
        with self._guard:
            found = measure(self._measures, engine.runs, self._server.project.journal)
            record = self._server.record
            values: dict[str, _Values] = {
                **_run_figures(found),
                "aiflow_requests": _labelled(Counter(each.status for each in read_backlog(engine.backlog).requests)),
                "aiflow_queue_tasks": _labelled(_queued(engine, call)),
                "aiflow_recoveries": _labelled(found.recoveries),
                "aiflow_server": {(record.instance_id, record.version): 1},
            }
        return _Collected([_metric(name, family, values[name]) for name, family in FAMILIES.items()])


def _queued(engine: Engine, call: CallContext) -> Mapping[TaskStatus, int]:
    """Count the tasks; without a store that answers there are none to be seen."""
    return look_at_queue(engine, call.server.project.auto_records, call.view).counts or {}


class _Collected:
    """Figures that are ready to be written."""

    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> list[Metric]:
        """Return them."""
        return self._metrics


def _run_figures(found: Measures) -> dict[str, _Values]:
    """Return what is summed over the runs."""
    used, runs = found.usage, found.runs.values()
    return {
        "aiflow_runs": found.outcomes,
        "aiflow_run_seconds": {(): sum(run.worked_seconds for run in runs)},
        "aiflow_steps": {(): sum(run.steps for run in runs)},
        "aiflow_step_seconds": {(): sum(run.step_seconds for run in runs)},
        "aiflow_agent_calls": {(): used.calls},
        "aiflow_agent_seconds": {(): used.seconds},
        "aiflow_cost_usd": {(): used.cost_usd},
        "aiflow_tokens": _labelled(
            {
                "input": used.input_tokens - used.cached_tokens,
                "cached": used.cached_tokens,
                "output": used.output_tokens,
            }
        ),
    }


def _labelled(counts: Mapping[Any, float]) -> _Values:
    """Return counts by the one label that they have."""
    return {(str(label),): count for label, count in counts.items()}


def _metric(name: str, family: Family, values: _Values) -> Metric:
    made: CounterMetricFamily | GaugeMetricFamily
    made = (CounterMetricFamily if family.is_counter else GaugeMetricFamily)(name, family.meaning, labels=family.labels)
    for label, value in values.items():
        made.add_metric(label, value)
    return made
