"""Look at one run as its page does (WEB-1): where it stands, what was tried, what can be done, and who holds it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.lock import LockType
from aiflow.domain.request import RequestId
from aiflow.domain.runs.timeline import timeline
from aiflow.domain.runs.ways import RunSurroundings, ways_on
from aiflow.errors import AiflowError
from aiflow.usecases.runs.find import newest_run_id
from aiflow.usecases.runs.show import show_run

if TYPE_CHECKING:
    from aiflow.domain.lock import Lock
    from aiflow.domain.request import RequestStatus
    from aiflow.domain.runs.run import Run
    from aiflow.domain.runs.timeline import Stage
    from aiflow.domain.runs.ways import Way
    from aiflow.usecases.engine import Engine


class RunLook(NamedTuple):
    """A run, its timeline, what can be done with it, which logs it has, and the lock on its request."""

    run: Run
    stages: tuple[Stage, ...]
    ways: tuple[Way, ...]
    around: RunSurroundings
    logs: tuple[int, ...]
    lock: Lock | None

    @property
    def is_cut_off(self) -> bool:
        """Whether it says that it is at work, and no process is."""
        return self.run.is_active and not self.around.is_worked_on


def look_at_run(engine: Engine, request_id: str, run_id: str, *, is_continued: bool = False) -> RunLook:
    """Look at a run of a request, or raise that there is none; changes nothing.

    `is_continued` if the next auto-run continues the request's run.
    """
    lock = _lock_on(engine, request_id)  # asked first: a run that ends in between is at work a moment longer
    run, _, logs = show_run(engine, request_id, run_id)
    newest = newest_run_id(engine, RequestId(request_id)) or run_id
    is_worked_on = lock is not None and lock.run_id in (None, run_id)
    newer, status = newest if newest > run_id else None, _status_of(engine, request_id)
    around = RunSurroundings(is_worked_on, newer, status, is_continued and not is_worked_on and newer is None)
    return RunLook(run, timeline(run), ways_on(run, around), around, logs, lock)


def _lock_on(engine: Engine, request_id: str) -> Lock | None:
    """Return the lock that a running process holds on a request."""
    for status in engine.locks.survey():
        lock = status.lock
        if lock.lock_type is LockType.REQUEST and lock.request_id == request_id and not status.verdict.is_stale:
            return lock
    return None


def _status_of(engine: Engine, request_id: str) -> RequestStatus | None:
    try:
        return engine.source.load(RequestId(request_id)).status
    except AiflowError:  # its file may be gone, or have a mistake
        return None
