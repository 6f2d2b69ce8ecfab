"""What must hold after any run with a real agent, however it ended: nothing is left running, locked, raw or told."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from e2e.bench import Bench
from e2e.leaks import leaks
from e2e.real_agents import STUB_KEY, processes_left

# Stands for a secret of the user's that has nothing to do with the agent; a test plants it where an agent may find it.
PLANTED = "ghp_" + "p1aNted" * 5
_RAW = re.compile(r'^\s*\{"|"(?:type|thread_id|session_id)"\s*:')


def assert_over(bench: Bench, *, planning: int, steps: dict[str, dict[str, int]] | None = None) -> Any:
    """Check a run's aftermath, and how often each role was called; return its `stage.json`.

    `steps` names the calls of each step's roles, such as `{"S01": {"implementer": 2, "qa": 1}}`.
    """
    stage = bench.stage()
    assert processes_left(stage["run_id"]) == []
    assert bench.locks() == []
    assert stage["state"] in ("DONE", "NEEDS_INPUT", "FAILED")
    assert stage["attempts"]["planning"] == planning
    known = {
        step_id: {role: count for role, count in calls.items() if count and role != "tests"}
        for step_id, calls in stage["attempts"]["steps"].items()
    }
    assert {step_id: calls for step_id, calls in known.items() if calls} == (steps or {})
    assert_readable(bench.folder())
    assert_untold(bench)
    return stage


def assert_readable(folder: Path) -> None:
    """A step's log is for a person: no line of it is an event."""
    raw = [
        f"{path.name}: {line}"
        for path in folder.glob("logs/*.log")
        for line in path.read_text("utf-8").splitlines()
        if _RAW.search(line)
    ]
    assert raw == []


def assert_untold(bench: Bench, *secrets: str) -> None:
    """The agent's key, the planted token and these secrets stand in nothing that aiflow wrote."""
    assert leaks(bench, STUB_KEY, PLANTED, *secrets) == []
