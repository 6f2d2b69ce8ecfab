"""What does not work as it should in a checkout with a server (API): reason codes, found without changing anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.errors import AiflowError
from aiflow.settings.table import LOCAL_STORE
from aiflow.usecases.health.check_health import LEAST_FREE_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from aiflow.usecases.engine import Engine
    from aiflow.usecases.queue.desk import StoreView

# A store of this machine that is not running is no trouble: only what is queued needs it.
NOT_RUNNING = frozenset({"STORE_UNREACHABLE", "STORE_NOT_INSTALLED"})


def what_is_degraded(
    engine: Callable[[], Engine], open_view: Callable[[], StoreView], issues: str | None = None
) -> tuple[str, ...]:
    """Name what is wrong: settings with a mistake, a disk that is full or cannot be written, a store that is away.

    `issues` is why GitHub cannot be worked with, as its watch knows.
    """
    try:
        return tuple(dict.fromkeys((*_found(engine(), open_view), *filter(None, (issues,)))))
    except AiflowError as error:
        return (error.reason_code,)


def _found(engine: Engine, open_view: Callable[[], StoreView]) -> Iterator[str]:
    if engine.workshop.unwritable() is not None:
        yield "IO_ERROR"
    if engine.workshop.least_room()[1] < LEAST_FREE_BYTES:
        yield "DISK_FULL"
    try:
        view = open_view()
        view.store.queue(view.namespace).get("-")  # whether it answers is all that is asked
    except AiflowError as error:
        if engine.settings.text("queue.store") != LOCAL_STORE or error.reason_code not in NOT_RUNNING:
            yield error.reason_code
