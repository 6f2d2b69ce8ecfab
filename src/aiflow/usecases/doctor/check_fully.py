"""The doctor's full check (DOC-1, DOC-2): everything, and what a crash left is put right."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from aiflow.domain.backlog.folder import strangers
from aiflow.domain.health import Finding, Health
from aiflow.domain.next_action import ActionKind, NextAction, set_status, shell
from aiflow.domain.request import RequestStatus
from aiflow.domain.untrusted.calls import HIDDEN_TEXT
from aiflow.errors import AiflowError
from aiflow.usecases.backlog.hidden_text import hidden_in, hidden_words
from aiflow.usecases.doctor.check_store import check_store
from aiflow.usecases.health.check_health import check_quick
from aiflow.usecases.runs.locks import cut_off_facts, put_checkout_right, reclaim_locks
from aiflow.usecases.runs.recover import mark_crashed, settle_orphan
from aiflow.usecases.shapes.backlog import ENGLISH, describe_problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiflow.usecases.doctor.check_store import StoreLook
    from aiflow.usecases.engine import Engine

LEAST_GIT = (2, 38)


def check_full(engine: Engine, look: StoreLook) -> list[Finding]:
    """Check everything, and put right what a crash left: stale locks, interrupted runs, requests without a run."""
    cut_off = list(_put_right(engine))  # before checking the checkout: half-written files are no person's change
    findings = [*check_quick(engine, asks=True)[1], *cut_off, *_check_git_version(engine)]
    findings += check_store(engine.settings, look, engine.voice.texts)
    findings += [_reclaim(engine), *_mark(engine)]
    return [*findings, *_check_requests(engine)]


def look_for_crashes(engine: Engine) -> list[Finding]:
    """Find stale locks and interrupted runs without changing anything, for the quick check that a person asks for."""
    statuses = engine.locks.survey()
    stale = tuple(s.lock.request_id or s.lock.lock_type.value for s in statuses if s.verdict.is_stale)
    held = {s.lock.request_id for s in statuses if not s.verdict.is_stale}
    cut = [owner for owner, run in engine.runs.latest().items() if run.is_active and owner not in held]
    findings = list(_look_for_cut_off(engine))
    if stale:
        count = (("count", str(len(stale))),)
        fix = NextAction(ActionKind.DOCTOR, options=(("full", ""),))
        findings.append(Finding("locks", Health.WARN, None, "locks.stale", count, stale, fix))
    if cut:
        count, fix = (("count", str(len(cut))),), NextAction(ActionKind.RUN, cut[0])
        findings.append(Finding("runs", Health.WARN, "PROCESS_CRASHED", "runs.interrupted", count, tuple(cut), fix))
    return findings


def _look_for_cut_off(engine: Engine) -> Iterator[Finding]:
    """Find an acceptance that was cut off while git wrote into the checkout (GIT-3)."""
    found = None
    with contextlib.suppress(AiflowError):  # said already
        found = engine.merging.find_cut_off()
    if found is not None:
        told, fix = tuple(cut_off_facts(found).items()), NextAction(ActionKind.DOCTOR, options=(("full", ""),))
        yield Finding("merge", Health.WARN, "CHECKOUT_RECOVERED", "merge.cut_off", told, (found.path,), fix)


def _put_right(engine: Engine) -> Iterator[Finding]:
    found = put_checkout_right(engine)
    if found is not None:
        told = (("told", engine.voice.texts(f"cut_off.{found.outcome}", **cut_off_facts(found))),)
        evidence, fix = found.left or found.locks or (found.path,), shell("git status")
        yield Finding("merge", Health.WARN, "CHECKOUT_RECOVERED", "merge.recovered", told, evidence, fix)


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
        requests, queue = engine.locks.held()
        held = len(requests) + (queue is not None)
        return Finding("locks", Health.PASS, None, "locks.pass", (("count", str(held)),))
    names = tuple(status.lock.request_id or status.lock.lock_type.value for status in reclaimed)
    return Finding(
        "locks", Health.WARN, "LOCK_STALE_RECOVERED", "locks.reclaimed", (("count", str(len(names))),), names
    )


def _mark(engine: Engine) -> Iterator[Finding]:
    """Mark interrupted runs, and correct requests whose run has no process."""
    marked: list[str] = []
    lost: list[str] = []
    latest = engine.runs.latest()
    for request in (each for each in engine.source.load_all()[0] if not each.is_held_elsewhere):
        run = latest.get(request.id)
        is_active = run is not None and run.is_active
        if not is_active and request.status is not RequestStatus.RUNNING:
            continue
        orphan = None if is_active else settle_orphan(engine, request.id)
        if orphan is not None:
            (lost if orphan.is_lost else marked).append(request.id)
        elif (crashed := mark_crashed(engine, request.id)) is not None:  # also one that was only drafted until now
            marked.append(f"{request.id} {crashed.run_id}")
    yield from _marked_findings(marked, lost)


def _marked_findings(marked: list[str], lost: list[str]) -> Iterator[Finding]:
    if marked:
        request_id, _, run_id = marked[0].partition(" ")
        # One that had ended already waits for something else than to be resumed.
        fix = NextAction(ActionKind.RESUME if run_id else ActionKind.WHY, request_id)
        count = (("count", str(len(marked))),)
        yield Finding("runs", Health.WARN, "PROCESS_CRASHED", "runs.marked", count, tuple(marked), fix)
    if lost:
        count, fix = (("count", str(len(lost))),), set_status(lost[0], RequestStatus.READY.value)
        yield Finding("runs", Health.WARN, "RUN_LOST", "runs.lost", count, tuple(lost), fix)
    if not marked and not lost:
        yield Finding("runs", Health.PASS, None, "runs.pass")


def _check_requests(engine: Engine) -> Iterator[Finding]:
    """Check the request files: broken ones, and those that lack what selection sorts by (REQ-2, REQ-4)."""
    valid, broken = engine.source.load_all()
    if broken:
        evidence = tuple(f"{file.where}: {describe_problem(file.problems[0], ENGLISH)}" for file in broken)
        count = (("count", str(len(broken))),)
        yield Finding("requests", Health.WARN, "REQUEST_INVALID", "requests.broken", count, evidence)
    open_ones = [r for r in valid if r.status not in (RequestStatus.DONE, RequestStatus.ARCHIVED)]
    bare = tuple(sorted(r.where for r in open_ones if r.updated_at is None and r.created_at is None))
    if bare:
        yield Finding("requests", Health.WARN, None, "requests.bare", (("count", str(len(bare))),), bare)
    others = _strangers(engine)
    if others:
        told = (("count", str(len(others))), ("folder", f"{engine.settings.requests_dir}/"))
        yield Finding("requests", Health.WARN, "REQUESTS_DIR_IN_USE", "requests.strangers", told, others)
    hidden = {r.id: counts for r in open_ones if (counts := hidden_in(r, engine.source.body(r.id)))}
    if hidden:
        evidence = tuple(f"{name}: {hidden_words(counts, ENGLISH)}" for name, counts in hidden.items())
        count, fix = (("count", str(len(hidden))),), NextAction(ActionKind.SHOW, next(iter(hidden)))
        yield Finding("requests", Health.WARN, HIDDEN_TEXT, "requests.hidden", count, evidence, fix)
    if not broken and not bare and not others and not hidden:
        yield Finding("requests", Health.PASS, None, "requests.pass", (("count", str(len(valid))),))


def _strangers(engine: Engine) -> tuple[str, ...]:
    """Find what git tracks in the folder of the requests and is none."""
    folder = engine.settings.requests_dir
    try:
        return strangers(folder, engine.workspaces(None).tracked(folder))
    except AiflowError:  # said already
        return ()
