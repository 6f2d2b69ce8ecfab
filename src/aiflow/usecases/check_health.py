"""The doctor (DOC-1, DOC-2, RUN-7): quick before every run, full when asked; full also puts right what a crash left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.answers import Role
from aiflow.domain.health import Finding, Health
from aiflow.domain.request import RequestStatus
from aiflow.errors import AiflowError, EnvironmentProblemError
from aiflow.settings import FILE_NAME
from aiflow.usecases.recover_runs import mark_crashed, reclaim_locks, settle_orphan
from aiflow.usecases.shapes import ENGLISH, describe_problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiflow.domain.place import RepositoryFacts
    from aiflow.domain.request import RequestId
    from aiflow.usecases.engine import Engine

# Files of the backlog and the settings are a person's to edit at any time (RUN-7).
REQUESTS = "requests/"
LEAST_GIT = (2, 38)
LEAST_FREE_BYTES = 50_000_000
LOW_FREE_BYTES = 500_000_000
EVIDENCE_SHOWN = 20


def require_health(engine: Engine, request_id: RequestId) -> RepositoryFacts:
    """Check what a run needs, and return what was learnt of the repository; a FAIL refuses with its reason (RUN-7)."""
    facts, findings = check_quick(engine)
    failed = [finding for finding in findings if finding.health is Health.FAIL]
    if failed or facts is None:
        first = failed[0]
        details = [f"{ENGLISH(f'check.{each.message}', **dict(each.facts))}" for each in failed]
        evidence = [*first.evidence[:EVIDENCE_SHOWN]]
        raise EnvironmentProblemError(
            reason_code=first.reason_code,
            request_id=request_id,
            detail="\n".join([*details, *evidence]),
            **dict(first.facts),
        )
    return facts


def check_quick(engine: Engine) -> tuple[RepositoryFacts | None, list[Finding]]:
    """Check what every run needs: file system, git, the checkout, the agent, the tests, room on the disk."""
    findings = [*_check_machine(engine)]
    facts: RepositoryFacts | None = None
    try:
        facts = engine.workspaces(None).facts(engine.settings.text("base_branch"))
    except AiflowError as error:
        told = tuple((name, str(value)) for name, value in error.context.items())
        findings.append(Finding("repository", Health.FAIL, error.reason_code, "repository.fail", told))
    else:
        findings += [*_check_repository(facts), *_check_checkout(engine, facts), *_check_remote(facts)]
    return facts, [*findings, *_check_agents(engine), *_check_tests(engine)]


def check_full(engine: Engine) -> list[Finding]:
    """Check everything, and put right what a crash left: stale locks, interrupted runs, requests without a run."""
    findings = [*check_quick(engine)[1], *_check_git_version(engine)]
    findings.append(_reclaim(engine))
    findings.append(_mark(engine))
    return [*findings, *_check_requests(engine)]


def _check_machine(engine: Engine) -> Iterator[Finding]:
    kind = engine.workshop.file_system()
    if kind is not None:
        yield Finding("file_system", Health.FAIL, "NETWORK_FILE_SYSTEM", "file_system.fail", (("kind", kind),))
    else:
        yield Finding("file_system", Health.PASS, None, "file_system.pass")
    free = engine.workshop.free_bytes()
    told = (("free", f"{free // 1_000_000} MB"), ("path", ""), ("problem", ""))
    if free < LEAST_FREE_BYTES:
        yield Finding("disk", Health.FAIL, "DISK_FULL", "disk.fail", told)
    else:
        health = Health.WARN if free < LOW_FREE_BYTES else Health.PASS
        yield Finding("disk", health, None, f"disk.{health.lower()}", told)


def _check_repository(facts: RepositoryFacts) -> Iterator[Finding]:
    if facts.head_commit is None:
        fix = 'git add -A && git commit -m "First commit"'
        yield Finding("repository", Health.FAIL, "NO_COMMITS", "repository.empty", fix=fix)
    else:
        yield Finding("repository", Health.PASS, None, "repository.pass")
        branch = (("branch", facts.base_branch or "?"),)
        if facts.base_commit is None:
            yield Finding(
                "base_branch", Health.FAIL, "BASE_BRANCH_MISSING", "base_branch.fail", branch, fix="git branch"
            )
        else:
            yield Finding("base_branch", Health.PASS, None, "base_branch.pass", branch)
    if facts.identity is None:
        fix = 'git config --global user.name "…" && git config --global user.email …'
        yield Finding("identity", Health.FAIL, "GIT_IDENTITY_MISSING", "identity.fail", fix=fix)
    else:
        yield Finding("identity", Health.PASS, None, "identity.pass", (("identity", facts.identity),))
    if facts.has_submodules:
        yield Finding("submodules", Health.WARN, None, "submodules.warn")
    if facts.uses_lfs:
        yield Finding("lfs", Health.WARN, None, "lfs.warn")


def _check_checkout(engine: Engine, facts: RepositoryFacts) -> Iterator[Finding]:
    """Find tracked files that were changed outside the backlog and the settings (WORKTREE_DIRTY)."""
    dirty = tuple(path for path in facts.changed_paths if not path.startswith(REQUESTS) and path != FILE_NAME)
    if not dirty:
        yield Finding("checkout", Health.PASS, None, "checkout.pass")
        return
    health = Health.FAIL if engine.settings.text("git.dirty_checkout") == "fail" else Health.WARN
    count = (("count", str(len(dirty))),)
    yield Finding("checkout", health, "WORKTREE_DIRTY", "checkout.dirty", count, dirty, "git status")


def _check_remote(facts: RepositoryFacts) -> Iterator[Finding]:
    from aiflow.domain.place import compare_url

    if facts.origin_url is None:
        yield Finding("origin", Health.WARN, "ORIGIN_MISSING", "origin.missing", fix="git remote add origin …")
    elif compare_url(facts.origin_url, "a", "b") is None:
        yield Finding("origin", Health.WARN, "REMOTE_NOT_GITHUB", "origin.not_github")
    else:
        yield Finding("origin", Health.PASS, None, "origin.pass")


def _check_agents(engine: Engine) -> Iterator[Finding]:
    """Check each role's agent; the same trouble is told once."""
    problems: dict[str, list[str]] = {}
    for role in Role:
        problem = engine.agents.problem_of(role)
        if problem is not None:
            problems.setdefault(problem, []).append(role.value)
    for problem, roles in problems.items():
        told = (("problem", problem), ("roles", ", ".join(roles)))
        yield Finding("agent", Health.FAIL, "AGENT_NOT_FOUND", "agent.fail", told, fix="aiflow settings")
    if not problems:
        yield Finding("agent", Health.PASS, None, "agent.pass", (("kind", engine.settings.text("agent.kind")),))


def _check_tests(engine: Engine) -> Iterator[Finding]:
    commands = engine.test_commands
    if not commands:
        yield Finding("tests", Health.WARN, None, "tests.none")
    for kind, command in commands.items():
        missing = engine.workshop.find_program(command)
        told = (("kind", kind), ("command", command), ("program", missing or ""))
        health = Health.WARN if missing else Health.PASS
        yield Finding("tests", health, None, f"tests.{health.lower()}", told)


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


def _mark(engine: Engine) -> Finding:
    """Mark interrupted runs, and set requests right that nobody works on."""
    marked: list[str] = []
    latest = engine.runs.latest()
    for request in engine.backlog.requests.load()[0]:
        run = latest.get(request.id)
        if run is not None and run.is_active:
            if mark_crashed(engine, request.id) is not None:
                marked.append(f"{request.id} {run.run_id}")
        elif request.status is RequestStatus.RUNNING and settle_orphan(engine, request.id) is not None:
            marked.append(request.id)
    if not marked:
        return Finding("runs", Health.PASS, None, "runs.pass")
    count = (("count", str(len(marked))),)
    fix = f"aiflow resume {marked[0].split()[0]}"
    return Finding("runs", Health.WARN, "PROCESS_CRASHED", "runs.marked", count, tuple(marked), fix)


def _check_requests(engine: Engine) -> Iterator[Finding]:
    """Check the request files: broken ones, and those that lack what selection sorts by (REQ-2, REQ-4)."""
    valid, broken = engine.backlog.requests.load()
    if broken:
        evidence = tuple(f"{file.path}: {describe_problem(file.problems[0], ENGLISH)}" for file in broken)
        count = (("count", str(len(broken))),)
        yield Finding("requests", Health.WARN, "REQUEST_INVALID", "requests.broken", count, evidence)
    bare = tuple(r.path for r in valid if r.updated_at is None and r.created_at is None)
    if bare:
        yield Finding("requests", Health.WARN, None, "requests.bare", (("count", str(len(bare))),), bare)
    if not broken and not bare:
        yield Finding("requests", Health.PASS, None, "requests.pass", (("count", str(len(valid))),))
