"""Which issues could run now (ISS-12): those whose run was interrupted, and those that are ready, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.backlog.selection import find_barrier, interrupted_in_order, queue_order
from aiflow.domain.issue_ways import issue_number
from aiflow.domain.request import RequestStatus
from aiflow.usecases.read_backlog import read_backlog, with_interrupted, without_dead_locks

if TYPE_CHECKING:
    from aiflow.domain.request import Request, RequestId
    from aiflow.usecases.engine import Engine


def ready_issues(engine: Engine) -> tuple[Request, ...]:
    """Return the issues that nothing keeps from running, in the order of selection (SEL-2)."""
    backlog = without_dead_locks(read_backlog(engine.backlog, with_all_runs=False), engine.locks)
    issues = [each for each in backlog.requests if each.status is RequestStatus.READY and issue_number(each.id)]
    return tuple(each for each in sorted(issues, key=queue_order) if find_barrier(each, backlog) is None)


def interrupted_issues(engine: Engine) -> tuple[RequestId, ...]:
    """Return the issues whose runs were worked on and no longer are, by the age of the runs (RUN-11)."""
    backlog = with_interrupted(read_backlog(engine.backlog, with_all_runs=False), engine.locks)
    return tuple(each for each in interrupted_in_order(backlog) if issue_number(each))


def is_at_work(engine: Engine) -> bool:
    """Return whether somebody works in this checkout, or an auto-run has its backlog: it takes the issues, too."""
    requests, queue = engine.locks.held()
    return bool(requests) or queue is not None
