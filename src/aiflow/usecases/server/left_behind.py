"""What a crash left in a checkout (RUN-11, AUT-4): runs that no process works on, and an auto-run that was cut off."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.server.supervision import Left
from aiflow.usecases.auto.status import auto_status
from aiflow.usecases.read_backlog import read_backlog, with_interrupted
from aiflow.usecases.server.orders import command

if TYPE_CHECKING:
    from aiflow.domain.auto.session import AutoSession
    from aiflow.domain.request import RequestId
    from aiflow.ports import AutoRecords
    from aiflow.usecases.engine import Engine


class LeftBehind(NamedTuple):
    """An auto-run that was cut off, and the requests whose runs no process works on, by the age of the runs."""

    night: AutoSession | None = None
    interrupted: tuple[RequestId, ...] = ()


def look_behind(engine: Engine, records: AutoRecords) -> LeftBehind:
    """Look for what a crash left; changes nothing."""
    report = auto_status(engine, records)
    return LeftBehind(report.session if report.was_cut else None, _interrupted(engine))


def to_continue(engine: Engine, found: LeftBehind, *, has_runner: bool) -> tuple[Left, ...]:
    """Return what continues what was found, in order; what was a task's is left to the runner that is here."""
    night = found.night
    if night is not None and not night.is_delivered:
        key = f"auto {(night.began_at or night.started_at).isoformat()} {len(night.results)}"
        return (Left(key, command("auto", options=("--continue",))),)  # it recovers the runs, too
    runs = (_continued(engine, request_id, has_runner=has_runner) for request_id in found.interrupted)
    return tuple(each for each in runs if each is not None)


def _continued(engine: Engine, request_id: RequestId, *, has_runner: bool) -> Left | None:
    """Return what continues a request's run: `run` recovers one that crashed, once (RUN-11)."""
    latest = engine.runs.latest([request_id]).get(request_id)
    run = engine.runs.load(request_id, latest.run_id) if latest is not None else None
    if run is not None and run.task is not None and has_runner:
        return None
    place = f"{run.run_id} {run.state} {run.current_step_id}" if run else ""
    return Left(f"run {request_id} {place}", command("run", request_id), request_id)


def _interrupted(engine: Engine) -> tuple[RequestId, ...]:
    """Find the requests that were worked on and no longer are; checked twice, for a run may just have ended."""
    found: frozenset[RequestId] | None = None
    for _ in range(2):
        backlog = with_interrupted(read_backlog(engine.backlog), engine.locks)
        found = backlog.interrupted if found is None else found & backlog.interrupted
        if not found:
            return ()
    runs = backlog.runs
    return tuple(sorted(found or (), key=lambda each: (runs[each].run_id if each in runs else "", each)))
