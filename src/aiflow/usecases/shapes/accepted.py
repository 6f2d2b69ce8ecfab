"""What became of runs that were accepted together, as plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiflow.usecases.shapes.backlog import ENGLISH
from aiflow.usecases.shapes.errors import error_shape
from aiflow.usecases.shapes.runs import run_result

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aiflow.domain.runs.run import Run
    from aiflow.errors import AiflowError


def verdicts_shape(verdicts: Iterable[tuple[Run, AiflowError | None]]) -> dict[str, Any]:
    """`accept --all --json`: each run in the shape that `accept` prints; `error` for one that was not even tried."""
    shapes = [(run_result(run), error_shape(error, ENGLISH)["error"] if error else None) for run, error in verdicts]
    return {
        "accepted": [run["request_id"] for run, _ in shapes if run["accepted_as"]],
        "results": [{**run, "error": error} for run, error in shapes],
    }
