"""Secrets that must be nowhere in what aiflow writes (SEC): an assertion that every test of an agent can use."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

from e2e.bench import Bench


def leaks(bench: Bench, *secrets: str) -> list[str]:
    """Name everything aiflow wrote in which a secret is: runs, logs, journal, state, and what git tells of commits.

    A run's worktree is the agent's own, and what it puts into files is its work: those are not looked at.
    """
    forms = [form for secret in secrets for form in _forms(secret)]
    found = [str(path) for path in _written(bench) if any(form in path.read_bytes() for form in forms)]
    told = subprocess.run(
        ["git", "log", "--all", "--format=%H%n%an%n%ae%n%B"], cwd=bench.root, capture_output=True, check=True
    )
    return [*found, *(["git log"] if any(form in told.stdout for form in forms) else [])]


def _written(bench: Bench) -> Iterator[Path]:
    for base in (bench.root / "runs", bench.root / ".aiflow", bench.state):
        for folder, folders, files in os.walk(base):
            if "worktrees" in folders:
                folders.remove("worktrees")
            yield from (Path(folder, name) for name in files)


def _forms(secret: str) -> Iterator[bytes]:
    """Give a secret as it may show: plain, inside JSON or an address, and encoded."""
    raw = secret.encode()
    yield raw
    yield json.dumps(secret)[1:-1].encode()
    yield urllib.parse.quote(secret, safe="").encode()
    # However the three bytes fall, the middle of what base64 makes of a secret is one of these.
    for start in range(3):
        yield base64.b64encode(raw[start : start + (len(raw) - start) // 3 * 3])
