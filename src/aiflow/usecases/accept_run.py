"""Accept a finished run, or send it back (REQ-6): what a person decides in the morning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.activity import Activity, ActivityKind, Actor
from aiflow.domain.lifecycle import RunState
from aiflow.domain.request import RequestId, RequestStatus
from aiflow.domain.run_events import sent_back
from aiflow.errors import BadInputError, ConflictError
from aiflow.usecases.bring_in import bring_in, discard_merge
from aiflow.usecases.lock_run import take_lock
from aiflow.usecases.recover_runs import reclaim_locks, settle_orphan
from aiflow.usecases.run_report import record_verdict
from aiflow.usecases.run_work import holding
from aiflow.usecases.settle_run import settle_run

if TYPE_CHECKING:
    from aiflow.domain.run import Run
    from aiflow.usecases.engine import Engine
    from aiflow.usecases.run_work import Work

ACCEPTABLE = (RequestStatus.BLOCKED, RequestStatus.RUNNING, RequestStatus.DONE)
RETURNABLE = (RequestStatus.BLOCKED, RequestStatus.READY)
UNSAVED_SHOWN = 20


def newest_run(engine: Engine, request_id: RequestId) -> Run | None:
    """Return a request's newest run: what is accepted or sent back is the last attempt, whatever an older one said."""
    newest = next(iter(engine.runs.all_of(request_id)), None)
    return engine.runs.load(request_id, newest.run_id) if newest else None


def accept_run(engine: Engine, run: Run) -> Run:
    """Bring a finished run into the base branch and set its request done; returns it with the reason if it cannot be.

    Beside a run of another request this is harmless, so it does not wait for one.
    """
    request_id = RequestId(run.request_id)
    reclaim_locks(engine)
    _decide(engine, run, "accept")
    lease = take_lock(engine, request_id, run.run_id, beside_others=True)
    with holding(engine, lease, run) as work:
        require_done(engine, work.run)
        engine.observe(work.run)
        if not work.run.accepted_as:
            require_saved(engine, work.run)
            bring_in(work, is_automatic=False)
        if work.run.accepted_as:
            settle_run(work, work.run)
    return work.run


def require_done(engine: Engine, run: Run) -> None:
    """Refuse what is not finished, was replaced by a newer run, or whose request a person took elsewhere."""
    status = engine.source.load(RequestId(run.request_id)).status
    if run.state is not RunState.DONE:
        raise refused(run, f"{run.run_id}: {run.state}")
    _require_newest(engine, run)
    if status not in ACCEPTABLE:
        raise refused(run, f"status is {status}")


def require_saved(engine: Engine, run: Run) -> None:
    """Refuse while a person has something in the run's worktree that no commit has: it would be left out, or lost."""
    unsaved = engine.merging.has_unsaved(run.place)
    if unsaved:
        raise ConflictError(
            reason_code="WORKTREE_DIRTY",
            request_id=run.request_id,
            run_id=run.run_id,
            detail="\n".join([f"{engine.texts('accept.unsaved')} {run.place.path}", *unsaved[:UNSAVED_SHOWN]]),
            commands=(f"git -C {run.place.path} status", f"git -C {run.place.path} commit -a"),
        )


def send_back(engine: Engine, run: Run, comment: str) -> Run:
    """Close a run that waits, add the comment to its request and make it ready again (REQ-6).

    The run is closed first: a kill between leaves a request that is still blocked, and sending back again ends it.
    """
    if not comment.strip():
        detail = engine.texts("send_back.empty")
        raise BadInputError(reason_code="INPUT_INVALID", request_id=run.request_id, detail=detail)
    request_id = RequestId(run.request_id)
    reclaim_locks(engine)
    settle_orphan(engine, request_id)  # its process may have died while it was accepted by itself
    lease = take_lock(engine, request_id, run.run_id, beside_others=True)
    with holding(engine, lease, run) as work:
        _require_returnable(engine, work.run)
        _decide(engine, run, "send_back")
        if not _is_told(engine, work.run, comment.strip()):
            if not _is_sent_back(work.run):
                _close(work, comment.strip())
            heading = engine.texts("send_back.heading", date=f"{engine.clock():%Y-%m-%d}")
            engine.source.send_back(request_id, run.run_id, f"## {heading}\n\n{comment.strip()}")
    return work.run


def _require_returnable(engine: Engine, run: Run) -> None:
    status = engine.source.load(RequestId(run.request_id)).status
    if run.is_active or run.accepted_as or run.replaced_by:
        state = "accepted" if run.accepted_as else "replaced" if run.replaced_by else run.state
        raise refused(run, f"{run.run_id}: {state}")
    _require_newest(engine, run)
    if status not in RETURNABLE:
        raise refused(run, f"status is {status}")


def _require_newest(engine: Engine, run: Run) -> None:
    newest = next((other.run_id for other in engine.runs.all_of(RequestId(run.request_id))), run.run_id)
    if newest > run.run_id:
        raise refused(run, f"{newest} is newer than {run.run_id}")


def _is_sent_back(run: Run) -> bool:
    return run.error is not None and run.error.reason_code == "SENT_BACK"


def _is_told(engine: Engine, run: Run, comment: str) -> bool:
    """Tell whether the request has this very comment: it comes with the status `ready`, in one write."""
    is_ready = engine.source.load(RequestId(run.request_id)).status is RequestStatus.READY
    return is_ready and _is_sent_back(run) and run.error is not None and run.error.summary == comment


def _close(work: Work, comment: str) -> None:
    record_verdict(work, sent_back(work.run, comment, work.engine.clock()))
    work.engine.control.clear(work.run.run_id)
    discard_merge(work)


def refused(run: Run, detail: str) -> ConflictError:
    """Say why a run cannot be accepted, sent back or brought in line."""
    return ConflictError(reason_code="RUN_NOT_ACCEPTABLE", request_id=run.request_id, run_id=run.run_id, detail=detail)


def _decide(engine: Engine, run: Run, what: str) -> None:
    """Record a person's decision."""
    kind = ActivityKind.DECISION
    engine.journal.append(
        Activity(engine.clock(), kind, Actor.PERSON, run.request_id, run.run_id, data={"decided": what})
    )
