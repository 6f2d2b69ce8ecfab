"""How a request looks in a list (WEB-1): one mark for its state, and why it does not run now, in one sentence.

Pure. The marks are those of the page's shapes: a diamond waits for a person, a circle needs nothing, a square failed.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.backlog.selection import find_barrier
from aiflow.domain.request import RequestId, RequestStatus
from aiflow.domain.wait_kind import WaitKind, kind_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from aiflow.domain.backlog.selection import Backlog, Barrier
    from aiflow.domain.request import Request


class Mark(StrEnum):
    """The state of a request, as a shape and a word."""

    QUESTION = "question"
    STOPPED = "stopped"
    ACCEPT = "accept"
    CONTINUES = "continues"
    RUN = "run"
    DONE = "done"
    READY = "ready"
    DRAFT = "draft"
    BLOCKED = "blocked"
    ARCHIVED = "archived"
    MISSING = "missing"
    BROKEN = "broken"


WAITING_MARKS = frozenset({Mark.QUESTION, Mark.STOPPED, Mark.ACCEPT})
_WAITING = {WaitKind.QUESTION: Mark.QUESTION, WaitKind.STOPPED: Mark.STOPPED, WaitKind.ACCEPTANCE: Mark.ACCEPT}
_PLAIN = {
    RequestStatus.DRAFT: Mark.DRAFT,
    RequestStatus.READY: Mark.READY,
    RequestStatus.RUNNING: Mark.RUN,
    RequestStatus.BLOCKED: Mark.BLOCKED,
    RequestStatus.DONE: Mark.DONE,
    RequestStatus.ARCHIVED: Mark.ARCHIVED,
}


class WhyKind(StrEnum):
    """What a sentence about a request that does not run says."""

    NOTHING = "nothing"
    AT_WORK = "at_work"
    WAITS = "waits"
    CONTINUES = "continues"
    DEPENDS = "depends"
    BARRED = "barred"


class Why(NamedTuple):
    """Why a request does not run now, and what settles it.

    `request_id` and `run_id` name what that is about: the run that waits, or the request that this one waits for, whose
    state is `mark`; `more` is how many others it waits for. `code` is why a run waits, `barrier` any other rule.
    """

    kind: WhyKind
    request_id: RequestId | None = None
    run_id: str | None = None
    mark: Mark | None = None
    more: int = 0
    code: str | None = None
    since: datetime | None = None
    barrier: Barrier | None = None


def mark_of(request: Request, backlog: Backlog, waiting: Mapping[RequestId, str]) -> Mark:
    """Return the mark of a request; `waiting` is what waits for a person."""
    if request.id in waiting:
        return _WAITING[kind_of(backlog.runs.get(request.id))]
    if request.id in backlog.continued:
        return Mark.CONTINUES
    if is_held(request.id, backlog):
        return Mark.RUN
    return _PLAIN[request.status]


def mark_by_id(request_id: RequestId, backlog: Backlog, waiting: Mapping[RequestId, str]) -> Mark:
    """Return the mark of a request that may not exist or may have a mistake in its file."""
    request = backlog.by_id.get(request_id)
    if request is None:
        return Mark.BROKEN if request_id in backlog.known_ids else Mark.MISSING
    return mark_of(request, backlog, waiting)


def is_held(request_id: RequestId, backlog: Backlog) -> bool:
    """Return whether somebody living works on a request."""
    return request_id in backlog.locks and request_id not in backlog.dead_locks


def why_not_now(request: Request, backlog: Backlog, waiting: Mapping[RequestId, str]) -> Why:
    """Say what keeps a request from running: what waits for a person first, then the first rule."""
    run, lock = backlog.runs.get(request.id), backlog.locks.get(request.id)
    run_id, since = (run.run_id, run.changed_at) if run else (None, None)
    if request.id in waiting:
        return Why(WhyKind.WAITS, request.id, run_id, mark_of(request, backlog, waiting), 0, waiting[request.id], since)
    if request.id in backlog.continued:
        return Why(WhyKind.CONTINUES, request.id, run_id, since=since)
    if is_held(request.id, backlog) and lock is not None:
        return Why(WhyKind.AT_WORK, request.id, lock.run_id, since=lock.created_at)
    is_closed = request.status in (RequestStatus.DONE, RequestStatus.ARCHIVED)
    barrier = None if is_closed else find_barrier(request, backlog)
    if barrier is None:
        return Why(WhyKind.NOTHING)
    if barrier.reason_code not in ("DEPENDS_NOT_DONE", "DEPENDS_NOT_FOUND"):
        return Why(WhyKind.BARRED, barrier=barrier)
    return _depends(request, backlog, waiting)


def _depends(request: Request, backlog: Backlog, waiting: Mapping[RequestId, str]) -> Why:
    """Name whom a request waits for: those that need a person first, because the others resolve automatically."""
    opened = [wanted for wanted in request.depends_on if wanted not in backlog.done_ids]
    marks = {wanted: mark_by_id(wanted, backlog, waiting) for wanted in opened}
    urgent = (Mark.MISSING, Mark.BROKEN, *WAITING_MARKS)
    first = next((wanted for wanted in opened if marks[wanted] in urgent), opened[0])
    run = backlog.runs.get(first) if marks[first] in (Mark.RUN, Mark.CONTINUES, *WAITING_MARKS) else None
    return Why(WhyKind.DEPENDS, first, run.run_id if run else None, marks[first], len(opened) - 1)
