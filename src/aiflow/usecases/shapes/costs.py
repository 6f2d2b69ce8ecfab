"""What runs cost as plain data (RUN-19), the same for CLI and API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aiflow.domain.morning.costs import CostLine, Costs


def costs_shape(costs: Costs) -> dict[str, Any]:
    """`status --cost --json`: by role, request, night and month."""
    return {
        "days": costs.days,
        "total": _line_shape(costs.total),
        "roles": _lines_shape("role", costs.roles),
        "requests": _lines_shape("request_id", costs.requests),
        "nights": _lines_shape("evening", costs.nights),
        "months": _lines_shape("month", costs.months),
    }


def _lines_shape(name: str, lines: Iterable[CostLine]) -> list[dict[str, Any]]:
    return [{name: line.name, **_line_shape(line)} for line in lines]


def _line_shape(line: CostLine) -> dict[str, Any]:
    return {key: value for key, value in line._asdict().items() if key != "name"}
