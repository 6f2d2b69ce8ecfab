"""Replace a run (RUN-6): a new run with a new plan takes an old one's place, and each names the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.activity import Actor, moved
from aiflow.domain.runs.events import replaced
from aiflow.usecases.runs.report import add_to_report, errors_shape

if TYPE_CHECKING:
    from aiflow.ports import Lease
    from aiflow.usecases.engine import Engine


def close_replaced(engine: Engine, lease: Lease, request_id: str, old_id: str, new_id: str) -> None:
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
