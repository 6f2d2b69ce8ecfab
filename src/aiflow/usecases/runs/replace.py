"""Runs that follow one another (RUN-6, REQ-6a): one that replaces or continues another; each names the other."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from aiflow.domain.activity import Actor, moved
from aiflow.domain.runs.events import replaced
from aiflow.usecases.runs.report import add_to_report, errors_shape

if TYPE_CHECKING:
    from aiflow.domain.runs.run import Run
    from aiflow.ports import Lease
    from aiflow.usecases.engine import Engine


def link_former(engine: Engine, lease: Lease, run: Run) -> None:
    """Let the runs that a new one replaces and continues name it too (RUN-6, REQ-6a); twice is once."""
    if run.replaces:
        _close_replaced(engine, lease, run.request_id, run.replaces, run.run_id)
    old = engine.runs.load(run.request_id, run.continues.run_id) if run.continues else None
    if old is not None and old.continued_by != run.run_id:
        with lease.writing():
            engine.runs.save(replace(old, continued_by=run.run_id))


def _close_replaced(engine: Engine, lease: Lease, request_id: str, old_id: str, new_id: str) -> None:
    """Close a run that another replaces, as FAILED with its report; once it is closed this does nothing."""
    old = engine.runs.load(request_id, old_id)
    if old is None or old.replaced_by is not None or old.is_active:
        return
    closed = replaced(old, new_id, engine.time.now())
    with lease.writing():
        engine.runs.write_errors(closed, errors_shape(closed, engine.voice.texts))
        add_to_report(engine, closed, None)
        engine.runs.save(closed)
    line = closed.history[-1]
    data = {"event": line.event, "from": old.state, "to": closed.state, "replaced_by": new_id}
    engine.journal.append(moved(line.at, Actor.PERSON, old, "REPLANNED", **data))
