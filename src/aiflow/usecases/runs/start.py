"""Start a run (RUN-15, RUN-7, LCK-7): only a runnable request, in a healthy checkout, under the lock."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from aiflow.domain.agents.call import Brief
from aiflow.domain.backlog.explanation import explain
from aiflow.domain.backlog.selection import find_barriers
from aiflow.domain.claims import Lost
from aiflow.domain.request import RequestStatus
from aiflow.domain.runs.base_merging import former_gone
from aiflow.domain.runs.events import noted
from aiflow.domain.runs.run import Run
from aiflow.domain.runs.warned import FORMER_BRANCH_GONE, warned
from aiflow.domain.runs.worktree import Place, branch_name, compare_url
from aiflow.errors import ConflictError, EnvironmentProblemError, NotFoundError
from aiflow.usecases.backlog.missing_merges import missing_merges
from aiflow.usecases.health.check_health import require_health
from aiflow.usecases.read_backlog import read_backlog
from aiflow.usecases.runs.baseline import known_to_pass
from aiflow.usecases.runs.claims import claim, lost, not_ready, telling_source
from aiflow.usecases.runs.course import course_of
from aiflow.usecases.runs.find import newest_run_id
from aiflow.usecases.runs.former import Before, what_came_before
from aiflow.usecases.runs.locks import has_turn, in_progress, owned, reclaim_locks, take_lock
from aiflow.usecases.runs.recover import recover_run
from aiflow.usecases.runs.replace import link_former
from aiflow.usecases.runs.work import Work, taking_up
from aiflow.usecases.runs.work_to_the_end import work_to_the_end
from aiflow.usecases.shapes.backlog import describe

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiflow.domain.backlog.selection import Backlog
    from aiflow.domain.claims import Claimed
    from aiflow.domain.request import Request, RequestId
    from aiflow.domain.runs.course import Course
    from aiflow.domain.runs.worktree import RepositoryFacts
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
    with telling_source(engine, request_id):
        facts = checked or require_health(engine, request_id, typed="run")

    def look() -> tuple[Request, Before]:
        return _require_unchanged(engine, request), what_came_before(engine, request_id, facts.base_branch)

    return start_new(engine, request_id, facts, look)


def start_new(
    engine: Engine, request_id: RequestId, facts: RepositoryFacts, look: Callable[[], tuple[Request, Before]]
) -> Run:
    """Start a new run and work on it to its end; the one it replaces is closed.

    `look` is asked under the lock: it gives the request as it is then and what its new run takes over, or refuses.
    """
    with telling_source(engine, request_id, is_blocking=True):
        run_id = fresh_run_id(engine, request_id)
    lease = take_lock(engine, request_id, run_id)
    with taking_up(lease):
        request, before = look()
        work = begin(engine, lease, new_run(engine, request, run_id, facts, before), request)
        link_former(engine, lease, work.run)
        _note_former(work, before)
        _warn_of_missing_merges(work, request)
    return work_to_the_end(work)


def _note_former(work: Work, before: Before) -> None:
    """Say in the run's history that what it should have continued is gone, or that its base needs no test (RUN-17)."""
    run, now = work.run, work.engine.time.now()
    noticed = former_gone(run, before.gone, now) if before.gone else known_to_pass(work.engine, run)
    if noticed is not run:
        work.save(noticed)


def _warn_of_missing_merges(work: Work, request: Request) -> None:
    """Say in the run's history and report which done dependencies it starts without."""
    for missing in missing_merges(work.engine, request, work.run.place.base_branch):
        code, dependency = missing.reason_code, dict(missing.facts)["dependency"]
        run = replace(work.run, warnings=tuple(dict.fromkeys((*work.run.warnings, code))))
        work.save(noted(run, code, work.engine.time.now(), code, dependency))


def fresh_run_id(engine: Engine, request_id: RequestId) -> str:
    """Make a run id that is newer than every one of this request, also within one second."""
    return engine.new_run_id(newest_run_id(engine, request_id))


def require_runnable(engine: Engine, request_id: RequestId) -> Request:
    """Return a request that may start now, or refuse with what keeps it (RUN-15)."""
    backlog = backlog_around(engine, request_id)
    others = () if has_turn(engine) else backlog.locks.values()
    holder = backlog.locks.get(request_id) or next(iter(others), None)
    if holder is not None:
        raise in_progress(holder, request_id)
    return require_unbarred(engine, request_id, backlog)


def backlog_around(engine: Engine, request_id: RequestId) -> Backlog:
    """Read what decides whether a request may start."""
    backlog = read_backlog(engine.backlog, with_all_runs=False)
    return backlog._replace(runs={**backlog.runs, **engine.runs.latest([request_id])})


def require_unbarred(engine: Engine, request_id: RequestId, backlog: Backlog) -> Request:
    """Return a request that no rule of selection keeps, or refuse with all that do and what fixes them."""
    request = backlog.by_id.get(request_id)
    if request is None:
        broken = next((file for file in backlog.invalid if request_id in file.names), None)
        if broken is None:
            raise NotFoundError(request_id=request_id)
        raise ConflictError(reason_code=broken.reason_code, request_id=request_id, path=broken.where, detail="")
    barriers = list(find_barriers(request, backlog))
    if barriers:
        detail = "\n".join(describe(barrier, engine.voice.texts) for barrier in barriers)
        raise ConflictError(
            reason_code=barriers[0].reason_code,
            request_id=request_id,
            detail=detail,
            commands=explain(request_id, backlog)[0].actions,
            **dict(barriers[0].facts),
        )
    return request


def _require_unchanged(engine: Engine, request: Request) -> Request:
    """Look again, under the lock: somebody may have run it, or changed its status, while we waited for it."""
    now = engine.source.load(request.id)
    if now.status is not RequestStatus.READY:
        raise not_ready(request.id, now.status)
    latest = engine.runs.latest([request.id]).get(request.id)
    if latest is not None and (latest.is_active or latest.is_waiting):
        raise ConflictError(
            reason_code="RUN_IN_PROGRESS" if latest.is_active else "LATEST_RUN_NEEDS_INPUT",
            request_id=request.id,
            run_id=latest.run_id,
            reason=latest.reason_code or "-",
        )
    return now


def new_run(
    engine: Engine,
    request: Request,
    run_id: str,
    facts: RepositoryFacts,
    before: Before = Before(),  # noqa: B008
) -> Run:
    """Make a run of a request as it is now; one that replaces another gets to know what went wrong there (RUN-6)."""
    if facts.base_commit is None:
        raise EnvironmentProblemError(reason_code="BASE_BRANCH_MISSING", branch=facts.base_branch)
    branch = branch_name(request.id, run_id)
    url = compare_url(facts.origin_url, facts.base_branch, branch, engine.settings.text("github.api_url"))
    run = Run(
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
        created_at=engine.time.now(),
        title=request.title,
        course=_course(engine, request, before),
        agent=engine.agent_name,
        compare_url=url,
        warnings=() if url else ("REMOTE_NOT_GITHUB" if facts.origin_url else "ORIGIN_MISSING",),
        replaces=before.replaces,
        feedback=before.feedback,
        answers=before.answers,
        former=before.former,
        continues=before.continues,
    )
    return warned(run, FORMER_BRANCH_GONE) if before.gone else run


def _course(engine: Engine, request: Request, before: Before) -> Course:
    course = course_of(engine, request)
    return replace(course, has_plan=True) if before.wants_plan else course


def begin(engine: Engine, lease: Lease, run: Run, request: Request) -> Work:
    """Claim a request for a new run, and make it one: without the claim nothing of it is there.

    It is written down before: a kill between claim and run leaves what the next start goes on with (RUN-11).
    """
    brief = Brief(run.request_id, request.title, engine.source.body(request.id), request.priority, request.labels)
    known = owned(engine, lease, run)
    with telling_source(engine, request.id, run.run_id, is_blocking=True), lease.writing():
        engine.runs.draft(known, brief)
    answer = claim(engine, request.id, run.run_id)
    if isinstance(answer, Lost):
        engine.runs.discard(request.id)
        raise lost(engine, request.id, answer)
    known, brief = _as_claimed(engine, lease, (known, brief), answer)
    with lease.writing():
        engine.runs.create(known, brief)
    engine.voice.observe(known)
    return Work(engine, lease, known)


def _as_claimed(engine: Engine, lease: Lease, drafted: tuple[Run, Brief], answer: Claimed) -> tuple[Run, Brief]:
    """Give a run the text that its request was claimed with, where that is another than was read before."""
    run, brief = drafted
    if answer.text is None or answer.text == (brief.title, brief.body):
        return drafted
    title, body = answer.text
    run, brief = replace(run, title=title), replace(brief, title=title, body=body)
    with lease.writing():
        engine.runs.draft(run, brief)
    return run, brief
