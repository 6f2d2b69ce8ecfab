"""How it is with auto-run and the queue (API): also where no store runs, for only what is queued needs one."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.errors import AiflowError
from aiflow.usecases.auto.status import auto_status
from aiflow.usecases.queue.counts import count_tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aiflow.domain.auto.summary import AutoReport
    from aiflow.domain.lifecycle import TaskStatus
    from aiflow.ports import AutoRecords
    from aiflow.usecases.engine import Engine
    from aiflow.usecases.queue.desk import StoreView


class QueueOverview(NamedTuple):
    """The auto-run, and the tasks of a namespace, counted; `trouble` is why the store could not be asked."""

    auto: AutoReport
    store: str
    counts: Mapping[TaskStatus, int] | None = None
    trouble: AiflowError | None = None


def look_at_queue(engine: Engine, records: AutoRecords, open_view: Callable[[], StoreView]) -> QueueOverview:
    """Count what is queued; a store that does not answer is an answer, too, and none is started for that."""
    overview = QueueOverview(auto_status(engine, records), engine.settings.text("queue.store"))
    try:
        view = open_view()
        return overview._replace(counts=count_tasks(view)[view.namespace])
    except AiflowError as error:
        return overview._replace(trouble=error)
