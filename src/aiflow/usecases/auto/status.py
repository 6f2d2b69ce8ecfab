"""How it is with the auto-run of this checkout: at work, by whom and at what, or how the last session ended (AUT-4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.auto.stopping import StopRequest
from aiflow.domain.auto.summary import AutoReport
from aiflow.usecases.auto.stop import run_of, working_auto
from aiflow.usecases.auto.summary import summarize

if TYPE_CHECKING:
    from aiflow.messages import Texts
    from aiflow.ports import AutoRecords
    from aiflow.usecases.engine import Engine


def auto_status(engine: Engine, records: AutoRecords, texts: Texts | None = None) -> AutoReport:
    """Look at the auto-run; with texts its session is summed up, too, with the backlog as it is now."""
    holder = working_auto(engine)
    session = records.load()
    return AutoReport(
        holder,
        run_of(engine, holder) if holder else None,
        session,
        engine.control.stop_asked() if holder else StopRequest.NONE,
        summarize(engine, session, texts) if session is not None and texts is not None else None,
        engine.control.beginnings(),
    )
