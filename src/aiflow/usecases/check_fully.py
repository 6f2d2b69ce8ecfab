"""The doctor's full check (DOC-1, DOC-2): everything, and what a crash left is put right."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.health import Finding, Health
from aiflow.domain.request import RequestStatus
from aiflow.domain.withheld import HIDDEN_TEXT
from aiflow.errors import AiflowError
from aiflow.usecases.check_health import check_quick
from aiflow.usecases.check_store import check_store
from aiflow.usecases.hidden_text import hidden_in, hidden_words
from aiflow.usecases.recover_runs import mark_crashed, reclaim_locks, settle_orphan
from aiflow.usecases.shapes import ENGLISH, describe_problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiflow.usecases.check_store import StoreLook
    from aiflow.usecases.engine import Engine

LEAST_GIT = (2, 38)


def check_full(engine: Engine, look: StoreLook) -> list[Finding]:
    """Check everything, and put right what a crash left: stale locks, interrupted runs, requests without a run."""
    findings = [*check_quick(engine, asks=True)[1], *_check_git_version(engine)]
    findings += check_store(engine.settings, look, engine.texts)
    findings += [_reclaim(engine), *_mark(engine)]
    return [*findings, *_check_requests(engine)]


def look_for_crashes(engine: Engine) -> list[Finding]:
    """Find stale locks and interrupted runs without changing anything, for the quick check that a person asks for."""
    statuses = engine.locks.survey()
    stale = tuple(s.lock.request_id or s.lock.lock_type.value for s in statuses if s.verdict.is_stale)
    held = {s.lock.request_id for s in statuses if not s.verdict.is_stale}
    cut = [owner for owner, run in engine.runs.latest().items() if run.is_active and owner not in held]
    findings = []
    if stale:
        count = (("count", str(len(stale))),)
        findings.append(Finding("locks", Health.WARN, None, "locks.stale", count, stale, "aiflow doctor --full"))
    if cut:
        count, fix = (("count", str(len(cut))),), f"aiflow run {cut[0]}"
        findings.append(Finding("runs", Health.WARN, "PROCESS_CRASHED", "runs.interrupted", count, tuple(cut), fix))
    return findings


def _check_git_version(engine: Engine) -> Iterator[Finding]:
    try:
        version = engine.workspaces(None).version()
    except AiflowError:  # said already
        return
    told = (("version", ".".join(map(str, version))),)
    if version < LEAST_GIT:
        yield Finding("git", Health.WARN, "GIT_TOO_OLD", "git.warn", told)
    else:
        yield Finding("git", Health.PASS, None, "git.pass", told)


def _reclaim(engine: Engine) -> Finding:
    reclaimed = reclaim_locks(engine)
    if not reclaimed:
        held = len(engine.locks.held()[0])
        return Finding("locks", Health.PASS, None, "locks.pass", (("count", str(held)),))
    names = tuple(status.lock.request_id or status.lock.lock_type.value for status in reclaimed)
    return Finding(
        "locks", Health.WARN, "LOCK_STALE_RECOVERED", "locks.reclaimed", (("count", str(len(names))),), names
    )


def _mark(engine: Engine) -> Iterator[Finding]:
    """Mark interrupted runs, and set requests right that nobody works on."""
    marked: list[str] = []
    lost: list[str] = []
    latest = engine.runs.latest()
    for request in engine.backlog.requests.load()[0]:
        run = latest.get(request.id)
        if run is not None and run.is_active:
            if mark_crashed(engine, request.id) is not None:
                marked.append(f"{request.id} {run.run_id}")
        elif request.status is RequestStatus.RUNNING and (orphan := settle_orphan(engine, request.id)) is not None:
            (lost if orphan.is_lost else marked).append(request.id)
    if marked:
        request_id, _, run_id = marked[0].partition(" ")
        # One that had ended already waits for something else than to be resumed.
        count, fix = (("count", str(len(marked))),), f"aiflow {'resume' if run_id else 'why'} {request_id}"
        yield Finding("runs", Health.WARN, "PROCESS_CRASHED", "runs.marked", count, tuple(marked), fix)
    if lost:
        count, fix = (("count", str(len(lost))),), f"aiflow set {lost[0]} status=ready"
        yield Finding("runs", Health.WARN, "RUN_LOST", "runs.lost", count, tuple(lost), fix)
    if not marked and not lost:
        yield Finding("runs", Health.PASS, None, "runs.pass")


def _check_requests(engine: Engine) -> Iterator[Finding]:
    """Check the request files: broken ones, and those that lack what selection sorts by (REQ-2, REQ-4)."""
    valid, broken = engine.backlog.requests.load()
    if broken:
        evidence = tuple(f"{file.path}: {describe_problem(file.problems[0], ENGLISH)}" for file in broken)
        count = (("count", str(len(broken))),)
        yield Finding("requests", Health.WARN, "REQUEST_INVALID", "requests.broken", count, evidence)
    open_ones = [r for r in valid if r.status not in (RequestStatus.DONE, RequestStatus.ARCHIVED)]
    bare = tuple(sorted(r.path for r in open_ones if r.updated_at is None and r.created_at is None))
    if bare:
        yield Finding("requests", Health.WARN, None, "requests.bare", (("count", str(len(bare))),), bare)
    hidden = {r.id: counts for r in open_ones if (counts := hidden_in(r, engine.backlog.requests.body(r.id)))}
    if hidden:
        evidence = tuple(f"{name}: {hidden_words(counts, ENGLISH)}" for name, counts in hidden.items())
        count, fix = (("count", str(len(hidden))),), f"aiflow show {next(iter(hidden))}"
        yield Finding("requests", Health.WARN, HIDDEN_TEXT, "requests.hidden", count, evidence, fix)
    if not broken and not bare and not hidden:
        yield Finding("requests", Health.PASS, None, "requests.pass", (("count", str(len(valid))),))
