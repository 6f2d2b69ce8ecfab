"""Watch issues (ISS-12): look after them again and again, and start those that are ready while the checkout is free."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiflow.domain.backlog.selection import find_barrier, queue_order
from aiflow.domain.issues.requests import issue_number
from aiflow.domain.request import RequestStatus
from aiflow.errors import AiflowError, ConflictError
from aiflow.usecases.issues.look_after import look_after_issues
from aiflow.usecases.read_backlog import read_backlog
from aiflow.usecases.runs.start import start_run

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiflow.domain.issues.repository import LookedAfter
    from aiflow.domain.request import RequestId
    from aiflow.domain.runs.run import Run
    from aiflow.ports.issues import IssueCare
    from aiflow.usecases.engine import Engine

EAR_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class IssueWatch:
    """What a watch works with; `looked` and `failed` hear of each look, `ended` of each run."""

    care: IssueCare
    poll_seconds: float
    looked: Callable[[LookedAfter], None]
    failed: Callable[[AiflowError], None]
    ended: Callable[[Run], None]
    is_starting: bool = True


def watch_issues(engine: Engine, watch: IssueWatch) -> None:
    """Watch until somebody asks for the end; trouble with GitHub is told, and the next look tries again."""
    while not engine.voice.interrupted():
        _look(engine, watch)
        chosen = next_issue(engine) if watch.is_starting and not engine.voice.interrupted() else None
        if chosen is not None and _start(engine, watch, chosen):
            continue
        _wait(engine, watch.poll_seconds)


def next_issue(engine: Engine) -> RequestId | None:
    """Return the issue that starts next, in the order of selection; None while something runs, or none is ready."""
    backlog = read_backlog(engine.backlog, with_all_runs=False)
    if backlog.locks or backlog.queue_lock:
        return None
    issues = [each for each in backlog.requests if each.status is RequestStatus.READY and issue_number(each.id)]
    ordered = sorted(issues, key=queue_order)
    return next((request.id for request in ordered if find_barrier(request, backlog) is None), None)


def _look(engine: Engine, watch: IssueWatch) -> None:
    try:
        watch.looked(look_after_issues(engine, watch.care))
    except AiflowError as error:
        watch.failed(error)


def _start(engine: Engine, watch: IssueWatch, request_id: RequestId) -> bool:
    """Run an issue to its end; False if somebody was first, or the checkout is not fit for it."""
    try:
        watch.ended(start_run(engine, request_id))
    except ConflictError:  # another checkout has it, or something else began here
        return False
    except AiflowError as error:
        watch.failed(error)
        return False
    return True


def _wait(engine: Engine, seconds: float) -> None:
    until = engine.time.monotonic() + seconds
    while engine.time.monotonic() < until and not engine.voice.interrupted():
        engine.time.sleep(EAR_SECONDS)
