"""Undo an acceptance from the page (REQ-6): in a process of its own, for its tests may take minutes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.usecases.runs.find import find_newest_run
from aiflow.usecases.runs.undo import may_be_undone
from aiflow.usecases.server.orders import undo_line
from aiflow.usecases.server.start_work import MOMENT_SECONDS

if TYPE_CHECKING:
    from aiflow.domain.request import RequestId
    from aiflow.domain.runs.run import Run
    from aiflow.usecases.engine import Engine
    from aiflow.usecases.server.start_work import Entry, WorkStarter


def undo(
    engine: Engine, work: WorkStarter, request_id: RequestId, person: str, seconds: float = MOMENT_SECONDS
) -> tuple[Run, Entry | None]:
    """Have the acceptance of a request's last attempt undone: return it with the result, None while it is in progress.

    A refusal that does not depend on the tests comes before a process begins.
    """
    run = find_newest_run(engine, request_id)
    may_be_undone(engine, run)
    return run, work.perform(undo_line(engine, request_id), person, seconds)
