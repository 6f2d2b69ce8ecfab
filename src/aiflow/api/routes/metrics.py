"""`/metrics`: the figures of this checkout, as Prometheus reads them."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from aiflow.api.context import CallContext, Server
from aiflow.domain.server.measures import Measures
from aiflow.usecases.read_backlog import read_backlog
from aiflow.usecases.server.measure import measure
from aiflow.usecases.server.queue import look_at_queue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiflow.domain.lifecycle import TaskStatus
    from aiflow.usecases.engine import Engine


def routes(server: Server) -> APIRouter:
    """Return the route of the figures."""
    router = APIRouter(tags=["server"])
    figures = _Figures(server)

    @router.get("/metrics", include_in_schema=False)
    def metrics(http: HttpRequest) -> Response:
        """Give runs, time, tokens, cost, queue depth and recoveries, in Prometheus' text format."""
        registry = CollectorRegistry()
        registry.register(figures.of(server.call(http)))
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_PLAIN_0_0_4)

    return router


# Figures by their labels' values.
_Values = Mapping[Any, float]


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
            statuses = Counter(request.status.value for request in read_backlog(engine.backlog).requests)
            record = self._server.record
            return _Collected(
                [
                    *_run_figures(found),
                    _gauge(
                        "aiflow_requests", "Requests by status", ("status",), {(k,): v for k, v in statuses.items()}
                    ),
                    _gauge(
                        "aiflow_queue_tasks",
                        "Tasks of this project's namespace by status, while the store answers",
                        ("status",),
                        {(status.value,): count for status, count in _queued(engine, call).items()},
                    ),
                    _counter(
                        "aiflow_recoveries",
                        "What was put right after a crash, by reason",
                        ("reason_code",),
                        {(code,): count for code, count in found.recoveries.items()},
                    ),
                    _gauge(
                        "aiflow_server",
                        "This server",
                        ("instance_id", "version"),
                        {(record.instance_id, record.version): 1},
                    ),
                ]
            )


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


def _run_figures(found: Measures) -> Iterator[Metric]:
    """Yield what is summed over the runs."""
    used, runs = found.usage, found.runs.values()
    yield _gauge("aiflow_runs", "Runs by outcome and reason", ("outcome", "reason_code"), found.outcomes)
    sums = {
        ("aiflow_run_seconds", "Seconds that runs were worked on"): sum(run.worked_seconds for run in runs),
        ("aiflow_steps", "Finished steps"): sum(run.steps for run in runs),
        ("aiflow_step_seconds", "Seconds that steps were worked on"): sum(run.step_seconds for run in runs),
        ("aiflow_agent_calls", "Calls of agents"): used.calls,
        ("aiflow_agent_seconds", "Seconds that agents worked"): used.seconds,
        ("aiflow_cost_usd", "What agents said they cost, in US dollars"): used.cost_usd,
    }
    for (name, meaning), value in sums.items():
        yield _counter(name, meaning, (), {(): value})
    tokens = {("input",): used.input_tokens - used.cached_tokens, ("cached",): used.cached_tokens}
    yield _counter("aiflow_tokens", "Tokens by kind", ("kind",), {**tokens, ("output",): used.output_tokens})


def _counter(name: str, meaning: str, labels: tuple[str, ...], values: _Values) -> Metric:
    family = CounterMetricFamily(name, meaning, labels=labels)
    for label, value in values.items():
        family.add_metric(label, value)
    return family


def _gauge(name: str, meaning: str, labels: tuple[str, ...], values: _Values) -> Metric:
    family = GaugeMetricFamily(name, meaning, labels=labels)
    for label, value in values.items():
        family.add_metric(label, value)
    return family
