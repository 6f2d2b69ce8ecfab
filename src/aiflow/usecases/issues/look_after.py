"""Look after issues (ISS-10): read what changed, and do what is to be done about each, and about its runs here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.issues.repository import LookedAfter
from aiflow.domain.issues.requests import request_id_of
from aiflow.domain.issues.view import CancelRun, CloseRun
from aiflow.errors import ConflictError
from aiflow.usecases.runs.accept import close_for_retry
from aiflow.usecases.runs.cancel import ask_to_cancel

if TYPE_CHECKING:
    from aiflow.domain.issues.view import RunDeed
    from aiflow.ports.issues import IssueCare
    from aiflow.usecases.engine import Engine


def look_after_issues(engine: Engine, care: IssueCare, *, is_full: bool = False) -> LookedAfter:
    """Read what changed and do what is to be done; a quiet look is one call."""
    synced = care.sync(is_full=is_full)
    numbers = care.pending()
    for number in numbers:
        for deed in care.tend(number):
            _do(engine, number, deed)
    return LookedAfter(synced.changed, synced.gone, numbers, synced.is_full)


def _do(engine: Engine, number: int, deed: RunDeed) -> None:
    """Do what an issue asks of a run here; what was interrupted is continued by whatever starts runs (RUN-11)."""
    run = engine.runs.load(request_id_of(number), deed.run_id)
    try:
        if run is not None and isinstance(deed, CancelRun) and run.is_active:
            ask_to_cancel(engine, run)
        elif run is not None and isinstance(deed, CloseRun):
            close_for_retry(engine, run, engine.voice.texts("issue.retried"))
    except ConflictError:  # somebody has it just now: the next look does it
        return
