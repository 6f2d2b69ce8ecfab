"""One run with everything that a page shows of it: the run, why it does not continue, and which logs it has."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.usecases.runs.find import find_run_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiflow.domain.runs.run import Run
    from aiflow.usecases.engine import Engine


class ShownRun(NamedTuple):
    """A run, its `errors.json`, and the numbers of its logs."""

    run: Run
    errors: Mapping[str, object] | None
    logs: tuple[int, ...]


def show_run(engine: Engine, request_id: str, run_id: str) -> ShownRun:
    """Read one run of a request, or raise that there is none."""
    run = find_run_of(engine, request_id, run_id)
    return ShownRun(run, engine.runs.errors(run), engine.runs.log_numbers(run))
