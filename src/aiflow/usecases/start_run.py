"""Start a run (RUN-15, RUN-7, LCK-7): only a runnable request, in a healthy checkout, behind the lock."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.explanation import explain
from aiflow.domain.lifecycle import RunState
from aiflow.domain.place import Place, branch_name, compare_url
from aiflow.domain.request import RequestId, RequestStatus
from aiflow.domain.run import Brief, Feedback, Run
from aiflow.domain.selection import find_barriers
from aiflow.errors import ConflictError, EnvironmentProblemError, NotFoundError
from aiflow.usecases.check_health import require_health
from aiflow.usecases.lock_run import in_progress, owned, take_lock
from aiflow.usecases.read_backlog import read_backlog
from aiflow.usecases.recover_runs import reclaim_locks, recover_run
from aiflow.usecases.replace_run import close_replaced
from aiflow.usecases.run_work import Work, taking_up
from aiflow.usecases.settle_run import work_to_the_end
from aiflow.usecases.shapes import describe

if TYPE_CHECKING:
    from aiflow.domain.place import RepositoryFacts
    from aiflow.domain.request import Request
    from aiflow.domain.selection import Backlog
    from aiflow.ports import Lease
    from aiflow.usecases.engine import Engine


def start_run(engine: Engine, request_id: RequestId, checked: RepositoryFacts | None = None) -> Run:
    """Run a request to its end; a run of it that crashed is recovered instead (RUN-11).

    `checked` is what the doctor has just learnt, where the caller asked it a moment ago.
    """
    reclaim_locks(engine)
    recovered = recover_run(engine, request_id)
    if recovered is not None:
        return recovered
    request = require_runnable(engine, request_id)
    facts = checked or require_health(engine, request_id, typed="run")
    run_id = fresh_run_id(engine, request_id)
    lease = take_lock(engine, request_id, run_id)
    with taking_up(lease):
        _require_unchanged(engine, request)
        run = new_run(engine, request, run_id, facts, _before(engine, request_id))
        work = begin(engine, lease, run)
        if run.replaces:
            close_replaced(engine, lease, request_id, run.replaces, run_id)
    return work_to_the_end(work)


def fresh_run_id(engine: Engine, request_id: RequestId) -> str:
    """Make a run id that is newer than every one of this request, also within one second."""
    return engine.new_run_id(next((run.run_id for run in engine.runs.all_of(request_id)), None))


def require_runnable(engine: Engine, request_id: RequestId) -> Request:
    """Return a request that may start now, or refuse with what keeps it (RUN-15)."""
    backlog = backlog_around(engine, request_id)
    holder = next(iter(backlog.locks.values()), None)
    if holder is not None:
        raise in_progress(backlog.locks.get(request_id, holder))
    return require_unbarred(engine, request_id, backlog)


def backlog_around(engine: Engine, request_id: RequestId) -> Backlog:
    """Read what decides whether a request may start."""
    backlog = read_backlog(engine.backlog, with_all_runs=False)
    return replace(backlog, runs={**backlog.runs, **engine.runs.latest([request_id])})


def require_unbarred(engine: Engine, request_id: RequestId, backlog: Backlog) -> Request:
    """Return a request that no rule of selection keeps, or refuse with all that do and what mends them."""
    request = backlog.by_id.get(request_id)
    if request is None:
        broken = next((file for file in backlog.invalid if request_id in file.names), None)
        if broken is None:
            raise NotFoundError(request_id=request_id)
        raise ConflictError(reason_code=broken.reason_code, request_id=request_id, path=broken.path, detail="")
    barriers = list(find_barriers(request, backlog))
    if barriers:
        detail = "\n".join(describe(barrier, engine.texts) for barrier in barriers)
        commands = explain(request_id, backlog)[0].commands
        raise ConflictError(
            reason_code=barriers[0].reason_code,
            request_id=request_id,
            detail=detail,
            commands=commands,
            **dict(barriers[0].facts),
        )
    return request


def _require_unchanged(engine: Engine, request: Request) -> None:
    """Look again, behind the lock: somebody may have run it, or changed its status, while we waited for it."""
    now = engine.source.load(request.id)
    if now.status is not RequestStatus.READY:
        raise ConflictError(
            reason_code="NOT_READY", request_id=request.id, status=now.status.value, detail=f"status is {now.status}"
        )
    latest = engine.runs.latest([request.id]).get(request.id)
    if latest is not None and (latest.is_active or latest.is_waiting):
        raise ConflictError(
            reason_code="RUN_IN_PROGRESS" if latest.is_active else "LATEST_RUN_NEEDS_INPUT",
            request_id=request.id,
            run_id=latest.run_id,
            reason=latest.reason_code or "-",
        )


class Before(NamedTuple):
    """What a new run takes over from the one before: which it replaces, what went wrong there, what was answered."""

    replaces: str | None = None
    feedback: tuple[Feedback, ...] = ()
    answers: tuple[tuple[str, str], ...] = ()


def _before(engine: Engine, request_id: RequestId) -> Before:
    """Look at the run before: a comment it was sent back with is told (REQ-6), one that failed speaks no more."""
    latest = engine.runs.latest([request_id]).get(request_id)
    old = engine.runs.load(request_id, latest.run_id) if latest and latest.state is RunState.FAILED else None
    if old is None or old.error is None or old.replaced_by is not None:
        return Before()
    if old.error.reason_code == "SENT_BACK":
        return Before(None, (*old.feedback, Feedback("SENT_BACK", old.error.summary)), old.answers)
    return Before(replaces=old.run_id)


def new_run(
    engine: Engine,
    request: Request,
    run_id: str,
    facts: RepositoryFacts,
    before: Before = Before(),  # noqa: B008
) -> Run:
    """Make a run of a request as it is now; one that replaces another is told what went wrong there (RUN-6)."""
    if facts.base_commit is None:
        raise EnvironmentProblemError(reason_code="BASE_BRANCH_MISSING", branch=facts.base_branch)
    branch = branch_name(request.id, run_id)
    url = compare_url(facts.origin_url, facts.base_branch, branch)
    return Run(
        request_id=request.id,
        run_id=run_id,
        place=Place(
            run_id=run_id,
            path=engine.workshop.worktree_path(run_id),
            branch=branch,
            base_branch=facts.base_branch,
            base_commit=facts.base_commit,
            copied=engine.settings.texts("worktree.copy"),
        ),
        created_at=engine.clock(),
        title=request.title,
        agent=engine.agent_name,
        compare_url=url,
        warnings=() if url else ("REMOTE_NOT_GITHUB" if facts.origin_url else "ORIGIN_MISSING",),
        replaces=before.replaces,
        feedback=before.feedback,
        answers=before.answers,
    )


def begin(engine: Engine, lease: Lease, run: Run) -> Work:
    """Write a new run down and show it on its request."""
    request_id = RequestId(run.request_id)
    request = engine.source.load(request_id)
    brief = Brief(run.request_id, request.title, engine.source.body(request_id), request.priority, request.labels)
    known = owned(engine, lease, run)
    with lease.writing():
        engine.runs.create(known, brief)
    engine.source.claim(request_id, run.run_id)
    engine.observe(known)
    return Work(engine, lease, known)
