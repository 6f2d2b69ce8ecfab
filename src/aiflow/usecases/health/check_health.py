"""The doctor's quick check (DOC-1, RUN-7): what every run needs, before every start and resume; changes nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from aiflow.domain.health import Finding, Health
from aiflow.domain.next_action import ActionKind, NextAction, shell
from aiflow.errors import AiflowError, EnvironmentProblemError
from aiflow.messages.details import as_text, words
from aiflow.settings import FILE_NAME
from aiflow.usecases.health.check_agents import check_agents, check_sandbox
from aiflow.usecases.shapes.usage_words import untold_cost

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from aiflow.domain.request import RequestId
    from aiflow.domain.runs.worktree import RepositoryFacts
    from aiflow.usecases.engine import Engine

LEAST_FREE_BYTES = 50_000_000
LOW_FREE_BYTES = 500_000_000
EVIDENCE_SHOWN = 20


class UnhealthyError(EnvironmentProblemError):
    """The doctor found something that no run may start with."""

    findings: tuple[Finding, ...] = ()


def require_health(engine: Engine, request_id: RequestId, typed: str | None = None) -> RepositoryFacts:
    """Check what a run needs, and return what was learnt of the repository; a FAIL refuses with its reason (RUN-7)."""
    facts, findings = check_quick(engine)
    failed = [finding for finding in findings if finding.health is Health.FAIL]
    if failed or facts is None:
        raise unhealthy(engine, failed, request_id=request_id, **({"typed": typed} if typed else {}))
    return facts


def unhealthy(engine: Engine, failed: Sequence[Finding], **context: object) -> UnhealthyError:
    """Make the error of what failed: the reason of the first, and what is wrong with the others."""
    first, others = failed[0], failed[1:]
    told = [word_of(engine, each) for each in others]
    if first.evidence or first.check_id in ("agent", "disk"):  # its reason says what to do, and not what is wrong
        told = [word_of(engine, first), *first.evidence[:EVIDENCE_SHOWN], *told]
    if told:
        context["detail"] = "\n".join(told)
    error = UnhealthyError(reason_code=first.reason_code, **{**dict(first.facts), **context})
    error.findings = tuple(failed)
    return error


def word_of(engine: Engine, finding: Finding) -> str:
    """Say what a check found."""
    return engine.voice.texts(f"check.{finding.message}", **dict(finding.facts))


def check_quick(engine: Engine, *, asks: bool = False) -> tuple[RepositoryFacts | None, list[Finding]]:
    """Check what every run needs: file system, git, the checkout, the agent, the tests, room on the disk.

    `asks` has the agents themselves report whether they are logged in, which takes time.
    """
    findings = [*_check_machine(engine)]
    facts: RepositoryFacts | None = None
    try:
        facts = engine.workspaces(None).facts(engine.base_branch)
    except AiflowError as error:
        told = tuple((name, as_text(value)) for name, value in error.context.items())
        findings.append(Finding("repository", Health.FAIL, error.reason_code, "repository.fail", told))
    else:
        if not engine.workshop.is_repository_root():
            findings.append(Finding("repository", Health.FAIL, "NOT_A_REPOSITORY", "repository.below"))
        findings += [*_check_repository(facts), *_check_submodules(engine, facts)]
        findings += [*_check_checkout(engine, facts), *_check_remote(engine, facts)]
        if engine.charge.ground is not None:
            engine.charge.ground.learn(
                facts.base_branch, is_clean=not edited_paths(facts, f"{engine.settings.requests_dir}/")
            )
    findings += [
        *check_agents(engine, asks=asks),
        *check_sandbox(engine),
        *_check_tests(engine),
        *_check_notify(engine),
        *_check_settings(engine),
    ]
    return facts, findings


def _check_machine(engine: Engine) -> Iterator[Finding]:
    kind = engine.workshop.file_system()
    if kind is not None:
        yield Finding("file_system", Health.FAIL, "NETWORK_FILE_SYSTEM", "file_system.fail", (("kind", kind),))
    else:
        yield Finding("file_system", Health.PASS, None, "file_system.pass")
    if (found := engine.workshop.unwritable()) is not None:
        where = (("path", found[0]), ("problem", found[1]))
        yield Finding("state", Health.FAIL, "IO_ERROR", "state.fail", where)
    path, free = engine.workshop.least_room()
    told = (
        ("free", f"{free / 1e9:.1f} GB" if free >= 1e9 else f"{free // 1_000_000} MB"),
        ("needed", f"{LEAST_FREE_BYTES // 1_000_000} MB"),
        ("path", path),
        ("problem", ""),
    )
    if free < LEAST_FREE_BYTES:
        yield Finding("disk", Health.FAIL, "DISK_FULL", "disk.fail", told)
    else:
        health = Health.WARN if free < LOW_FREE_BYTES else Health.PASS
        yield Finding("disk", health, None, f"disk.{health.lower()}", told)


def _check_repository(facts: RepositoryFacts) -> Iterator[Finding]:
    if facts.head_commit is None:
        fix = shell('git add -A && git commit -m "First commit"')
        yield Finding("repository", Health.FAIL, "NO_COMMITS", "repository.empty", fix=fix)
    else:
        yield Finding("repository", Health.PASS, None, "repository.pass")
        branch = (("branch", facts.base_branch or words("base_branch.detached")),)
        if facts.base_commit is None:
            yield Finding(
                "base_branch", Health.FAIL, "BASE_BRANCH_MISSING", "base_branch.fail", branch, fix=shell("git branch")
            )
        else:
            yield Finding("base_branch", Health.PASS, None, "base_branch.pass", branch)
    if facts.identity is None:
        fix = shell('git config --global user.name "…" && git config --global user.email …')
        yield Finding("identity", Health.FAIL, "GIT_IDENTITY_MISSING", "identity.fail", fix=fix)
    else:
        yield Finding("identity", Health.PASS, None, "identity.pass", (("identity", facts.identity),))
    if facts.is_name_taken:
        fix = shell("git branch -m aiflow aiflow-branch")
        yield Finding("branch", Health.FAIL, "BRANCH_IN_THE_WAY", "branch.fail", fix=fix)
    if facts.uses_lfs:
        yield Finding("lfs", Health.WARN, None, "lfs.warn")


def _check_submodules(engine: Engine, facts: RepositoryFacts) -> Iterator[Finding]:
    """Warn of submodules that no set-up fills: git leaves them empty in a run's worktree."""
    from aiflow.domain.runs.worktree import FILL_SUBMODULES

    setup = engine.settings.text("worktree.setup")
    if facts.has_submodules and "submodule" not in setup:
        command = " && ".join(filter(None, (FILL_SUBMODULES, setup)))
        yield Finding("submodules", Health.WARN, None, "submodules.warn", (("setup", json.dumps(command)),))
    elif facts.has_submodules:
        yield Finding("submodules", Health.PASS, None, "submodules.pass")


def edited_paths(facts: RepositoryFacts, requests: str) -> tuple[str, ...]:
    """Return the tracked files that a person changed, outside the backlog and the settings."""
    return tuple(path for path in facts.changed_paths if not path.startswith(requests) and path != FILE_NAME)


def _check_checkout(engine: Engine, facts: RepositoryFacts) -> Iterator[Finding]:
    """Find what a person changed (WORKTREE_DIRTY); while a night that began clean works, people may (RUN-7)."""
    requests = f"{engine.settings.requests_dir}/"
    dirty = edited_paths(facts, requests)
    if not dirty:
        yield Finding("checkout", Health.PASS, None, "checkout.pass", (("requests", requests),))
        return
    ground = engine.charge.ground
    is_strict = engine.settings.text("git.dirty_checkout") == "fail" and not (ground and ground.is_clean)
    health = Health.FAIL if is_strict else Health.WARN
    count = (("count", str(len(dirty))),)
    yield Finding("checkout", health, "WORKTREE_DIRTY", "checkout.dirty", count, dirty, shell("git status"))


def _check_remote(engine: Engine, facts: RepositoryFacts) -> Iterator[Finding]:
    """Look at where branches are shown to others, and whether what the settings want of it can come about (ISS-9)."""
    from aiflow.domain.runs.worktree import compare_url

    if facts.origin_url is None:
        yield Finding("origin", Health.WARN, "ORIGIN_MISSING", "origin.missing", fix=shell("git remote add origin …"))
    elif compare_url(facts.origin_url, "a", "b", engine.settings.text("github.api_url")) is None:
        yield Finding("origin", Health.WARN, "REMOTE_NOT_GITHUB", "origin.not_github")
    else:
        yield Finding("origin", Health.PASS, None, "origin.pass")
    if engine.settings.flag("github.pull_request") and not engine.settings.flag("git.push"):
        fix = NextAction(ActionKind.SETTINGS)
        yield Finding("pull_request", Health.WARN, "PULL_NEEDS_PUSH", "pull_request.no_push", fix=fix)


def _check_tests(engine: Engine) -> Iterator[Finding]:
    commands = engine.test_commands
    if not commands:
        yield Finding("tests", Health.WARN, None, "tests.none")
    for kind, command in commands.items():
        missing = engine.workshop.find_program(command)
        told = (("kind", kind), ("command", command), ("program", missing or ""))
        if missing is not None and _is_made_by_setup(engine, missing):
            yield Finding("tests", Health.PASS, None, "tests.setup", told)
            continue
        health = Health.WARN if missing else Health.PASS
        yield Finding("tests", health, None, f"tests.{health.lower()}", told)


def _is_made_by_setup(engine: Engine, program: str) -> bool:
    """Return whether a program is a worktree file that its set-up can make, such as `.venv/bin/pytest` (GIT-4)."""
    return (
        "/" in program and not program.startswith(("/", "~")) and bool(engine.settings.text("worktree.setup").strip())
    )


def _check_notify(engine: Engine) -> Iterator[Finding]:
    """Look for the program of `notify.command`; the command itself may hold a secret and is not shown."""
    command = engine.settings.text("notify.command")
    if command.strip():
        missing = engine.workshop.find_program(command)
        health = Health.WARN if missing else Health.PASS
        told, fix = (("program", missing or ""),), NextAction(ActionKind.SETTINGS)
        yield Finding("notify", health, None, f"notify.{health.lower()}", told, fix=fix)
    variable = engine.settings.text("notify.urls_env")
    if variable:
        state = engine.notifier.lack() or "pass"
        health, told = Health.PASS if state == "pass" else Health.WARN, (("variable", variable),)
        fix = NextAction(ActionKind.SETTINGS)
        yield Finding("notify", health, None, f"notify_urls.{state}", told, fix=fix)


COST_CEILINGS = ("limits.run_cost_usd", "limits.session_cost_usd")


def _check_settings(engine: Engine) -> Iterator[Finding]:
    costs = [name for name in COST_CEILINGS if engine.settings.number(name)]
    if costs and (silent := untold_cost(engine.settings)):
        told = (("roles", ", ".join(silent)),)
        yield Finding("settings", Health.WARN, None, "settings.no_cost", told, tuple(costs))
