"""Commands that work on runs, beside a shared queue store: what they do is a task there, too (SPEC §0).

With this machine's own store they need none, and nothing of it is imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import click

from aiflow.errors import ConflictError
from aiflow.settings.table import LOCAL_STORE

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiflow.cli.session import Session
    from aiflow.domain.task import TaskEnd
    from aiflow.usecases.engine import Engine
    from aiflow.usecases.heartbeat import Hold
    from aiflow.usecases.record_task import Errand

Result = TypeVar("Result")


def recorded(
    session: Session,
    engine: Engine,
    errand: Callable[[], Errand],
    work: Callable[[Engine], Result],
    end_of: Callable[[Hold, Result], TaskEnd],
) -> Result:
    """Do something, as a task of our own where the queue is shared; `end_of` says how that ends."""
    if session.settings.text("queue.store") == LOCAL_STORE:
        return work(engine)
    from aiflow.cli.store_progress import open_queue_store
    from aiflow.usecases.record_task import record_task
    from aiflow.wiring import build_desk

    told = errand()  # what cannot be found is said before anything is recorded
    store = open_queue_store(session, is_quiet=True)
    desk = build_desk(session.project, engine, store, is_listening=False)

    def working(engine: Engine) -> Result:
        try:
            return work(engine)
        except click.Abort:  # gave up the wait for their turn
            raise _LeftError(reason_code="CANCELLED") from None

    try:
        return record_task(desk, told, working, end_of)
    except _LeftError:
        raise click.Abort from None


class _LeftError(ConflictError):
    """The person left before it was their turn."""
