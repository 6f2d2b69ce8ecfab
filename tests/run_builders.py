"""Short ways to make runs, at any point of their way."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.plan import PlanStep
from aiflow.domain.lifecycle import RunState
from aiflow.domain.runs.events import (
    attempt_failed,
    called,
    implemented,
    planned,
    prepared,
    reported,
    reviewed,
    step_done,
    tested,
    testing,
)
from aiflow.domain.runs.run import Evidence, Run, RunError
from aiflow.domain.runs.run_limits import RunLimits
from aiflow.domain.runs.worktree import Changes, FileChange, Place
from builders import NOW

LIMITS = RunLimits()
RUN_ID = "RUN-20260102-030405-aaaaaa"
PLACE = Place(RUN_ID, f"/w/{RUN_ID}", f"aiflow/RQ-1/{RUN_ID}", "main", "base")
PLAN = (
    PlanStep("S01", "First", "Do the first.", ("src",), ("unit",)),
    PlanStep("S02", "Second"),
    PlanStep("S03", "Third | last"),
)
# What `errors.json` says, in this order (RUN-1).
ERRORS_KEYS = [
    "version",
    "request_id",
    "run_id",
    "state",
    "category",
    "reason_code",
    "cause",
    "title",
    "message",
    "retryable",
    "actions",
    "evidence",
    "suggested_next",
]
CHANGES = Changes((FileChange("src/a.py", 3, 1), FileChange("README.md", 1, 0)))


def at(minutes: float) -> datetime:
    """A moment of the test's own clock."""
    return NOW + timedelta(minutes=minutes)


def new_run(**fields: Any) -> Run:
    """A run that was just made."""
    return replace(Run("RQ-1", RUN_ID, PLACE, NOW, title="A title", agent="demo"), **fields)


def planning() -> Run:
    """A run in PLANNING."""
    return prepared(new_run(), at(1))


def in_step(number: int = 1, plan: tuple[PlanStep, ...] = PLAN) -> Run:
    """A run that enters a step, the ones before it done."""
    run = planned(called(planning(), Role.PLANNER), plan, at(2))
    for before in range(1, number):
        run = step_done(ready_to_commit(run), f"commit-{before}", at(2 + before))
    return run


def in_tests(number: int = 1, summary: str = "did it") -> Run:
    """A run whose implementer has just finished."""
    return implemented(called(in_step(number), Role.IMPLEMENTER), CHANGES, summary, at(10))


def in_review(number: int = 1) -> Run:
    """A run whose tests have passed."""
    return tested(testing(in_tests(number)), at(11))


def ready_to_commit(run: Run) -> Run:
    """The same run with its step implemented, tested and reviewed."""
    run = implemented(called(run, Role.IMPLEMENTER), CHANGES, "did it", run.changed_at)
    return reviewed(called(tested(testing(run), run.changed_at), Role.QA))


def in_report() -> Run:
    """A run whose last step is done."""
    return step_done(ready_to_commit(in_step(len(PLAN))), "commit-3", at(20))


def done() -> Run:
    """A run that is DONE."""
    return reported(in_report(), at(21))


def why(code: str = "UNIT_TEST_FAILED", summary: str = "2 tests failed", **evidence: Any) -> RunError:
    """A failure."""
    return RunError(code, summary, evidence=Evidence(**evidence))


def fail(run: Run, code: str, role: Role = Role.IMPLEMENTER, limits: RunLimits = LIMITS) -> Run:
    """The same run after a failed attempt."""
    return attempt_failed(run, role, why(code), limits, at(30))


EVERY_STATE = {
    RunState.INIT: new_run(),
    RunState.PLANNING: planning(),
    RunState.IMPLEMENTING: in_step(),
    RunState.TESTING: in_tests(),
    RunState.REPORTING: in_report(),
}
