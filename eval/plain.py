"""The plain agent: its program called as a user calls it who lets it work alone, without aiflow."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from aiflow.adapters.agents.call.stream import Told
from aiflow.adapters.agents.claude.events import ClaudeEvents
from aiflow.adapters.agents.codex.events import CodexEvents
from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.usage import Usage
from suite import CannotBeginError, end_group

# The prompt comes on standard input.
PROGRAMS: Mapping[str, tuple[str, ...]] = {
    "claude-code": (
        *("claude", "-p", "--output-format", "stream-json", "--verbose"),
        *("--permission-mode", "acceptEdits", "--allowedTools", "Bash"),
    ),
    "codex": ("codex", "exec", "--json", "--skip-git-repo-check", "-s", "workspace-write"),
}


class Plain(NamedTuple):
    """Which program is called, and what it may use."""

    kind: str
    model: str
    budget_usd: float
    seconds: float


def call(plain: Plain, request: str, repository: Path, environ: Mapping[str, str]) -> tuple[str, Usage]:
    """Let the program work in a repository; return how it ended, and what it used."""
    program = shutil.which(PROGRAMS[plain.kind][0], path=environ.get("PATH"))
    if program is None:
        raise CannotBeginError(f"{PROGRAMS[plain.kind][0]} is not installed")
    begin = time.monotonic()
    process = subprocess.Popen(
        [program, *_options(plain)],
        cwd=repository,
        env={**environ, "PWD": str(repository)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    )
    try:
        out, ended = process.communicate(request, timeout=plain.seconds)[0], "ended"
    except subprocess.TimeoutExpired as error:
        out, ended = _text(error.stdout), "took too long"
    finally:
        end_group(process)
    told = _read(plain.kind, str(repository), out)
    if told.trouble is not None:
        ended = told.trouble.reason_code
    elif not told.is_closed and ended == "ended":
        ended = f"exit code {process.returncode}"
    return ended, told.usage + Usage(calls=1, seconds=time.monotonic() - begin)


def _options(plain: Plain) -> list[str]:
    model = ("--model", plain.model) if plain.model else ()
    budget = ("--max-budget-usd", f"{plain.budget_usd:g}") if plain.budget_usd and plain.kind == "claude-code" else ()
    return [*PROGRAMS[plain.kind][1:], *model, *budget, *(("-",) if plain.kind == "codex" else ())]


def _read(kind: str, folder: str, out: str) -> Told:
    now = lambda: datetime.now(UTC)  # noqa: E731
    events = ClaudeEvents(Role.QA, folder, now) if kind == "claude-code" else CodexEvents(None, folder, now)
    for line in out.splitlines():
        events.read(line.encode())
    return events.told


def _text(given: bytes | str | None) -> str:
    return given.decode("utf-8", "replace") if isinstance(given, bytes) else given or ""
