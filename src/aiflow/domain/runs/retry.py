"""Limits (RUN-4, RUN-5, RUN-14, ISS-7): may it be tried again, and when must the plan change."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from aiflow.domain.reasons import reason_for

if TYPE_CHECKING:
    from collections.abc import Sequence

# A question or an exhausted quota is not the role's failure: the attempt is given back (RUN-4, RUN-13).
NOT_AN_ATTEMPT = frozenset({"NEEDS_CLARIFICATION", "AGENT_QUOTA"})


@dataclass(frozen=True, slots=True)
class TryAgain:
    """The role is called once more and gets the failure as feedback."""

    attempt: int
    feedback: str


@dataclass(frozen=True, slots=True)
class StopRun:
    """The run stops; a limit that was reached names its cause."""

    reason_code: str
    cause: str | None = None


def after_failure(failures: Sequence[str], role_attempts: int) -> TryAgain | StopRun:
    """Decide after a role's failure; `failures` are the reasons of this visit, oldest first, the last just now."""
    last = failures[-1]
    counted = [code for code in failures if code not in NOT_AN_ATTEMPT]
    if last in NOT_THE_WORK or not reason_for(last).is_retryable:
        return StopRun(last)
    if len(counted) < role_attempts:
        return TryAgain(attempt=len(counted) + 1, feedback=last)
    if len(counted) > 1 and len(set(counted)) == 1:
        return StopRun("RETRY_LIMIT_EXCEEDED", cause=last)
    return StopRun(last)


def may_retry_step(retries_so_far: int, step_retries: int) -> bool:
    """Return whether a step may be done again from its start: at most `step_retries` times in one run."""
    return retries_so_far < step_retries


def may_retry_issue(run_headers: int, issue_retries: int) -> bool:
    """Return whether an issue may run again: its first run is no retry, every further Run Header is one (ISS-7)."""
    return run_headers - 1 < issue_retries


class ReplanSignal(StrEnum):
    """Why a step needs a new plan rather than another try (RUN-5, D34 §7); the words are the texts `replan.…`."""

    STEP_TOO_LARGE = "step_too_large"
    SAME_REASON_TWICE = "same_reason_twice"
    DIFF_EXPLODES = "diff_explodes"
    MIXED_STEP = "mixed_step"


@dataclass(frozen=True, slots=True)
class StepStop:
    """One stop of a step: why, and how much it had changed where."""

    reason_code: str
    cause: str | None = None
    changed_lines: int = 0
    areas: frozenset[str] = frozenset()

    @property
    def root_reason(self) -> str:
        """The reason itself, or what a reached limit was caused by."""
        return self.cause or self.reason_code


BROAD_TARGETS = frozenset({"", ".", "./", "*", "**", "**/*", "/"})
MIXED_STOPS = 3

# A runner that stopped, was lost or had no store ended the run; another delivery of its task continues it (QUE-7). An
# auto-run whose terminal was closed did; the next auto-run continues it (AUT-4).
CUT_OFF = frozenset({"RUNNER_STOPPED", "RUNNER_LOST", "STORE_UNREACHABLE", "AUTO_CUT_OFF"})
FROM_OUTSIDE = CUT_OFF | {"CANCELLED"}

# The tests fail on the base itself, without anything of the run's (RUN-17).
BASE_RED = "BASE_TESTS_FAILED"

# The work itself did not fail: calling the role again fixes nothing, and the plan may well be right.
NOT_THE_WORK = (
    NOT_AN_ATTEMPT
    | FROM_OUTSIDE
    | {
        "PROCESS_CRASHED",
        "RUN_LOST",
        "LOCK_LOST",
        "WORKTREE_DIRTY",
        "DOCTOR_FAILED",
        "DISK_FULL",
        "IO_ERROR",
        "SETTINGS_INVALID",
        "NETWORK_FILE_SYSTEM",
        "SETUP_FAILED",
        BASE_RED,
        "GIT_FAILED",
        "GIT_NOT_FOUND",
        "GIT_IDENTITY_MISSING",
        "BASE_BRANCH_MISSING",
        "BRANCH_IN_THE_WAY",
        "AGENT_NOT_FOUND",
        "AGENT_AUTH_REQUIRED",
        "AGENT_SANDBOX_MISSING",
        "COST_LIMIT_REACHED",
        "RUN_LIMIT_REACHED",
    }
)


def replan_signal(stops: Sequence[StepStop], target_paths: Sequence[str] = ()) -> ReplanSignal | None:
    """Say why a step's plan must change, from its stops so far (oldest first), or None if it need not."""
    telling = [stop for stop in stops if stop.root_reason not in NOT_THE_WORK]
    if not telling:
        return None
    if telling[-1].root_reason == "STEP_TOO_LARGE":
        return ReplanSignal.STEP_TOO_LARGE
    if len(telling) > 1 and telling[-1].root_reason == telling[-2].root_reason:
        return ReplanSignal.SAME_REASON_TWICE
    if _is_exploding(telling) and _is_broad(target_paths):
        return ReplanSignal.DIFF_EXPLODES
    if len(telling) >= MIXED_STOPS and all(len(stop.areas) > 1 for stop in telling[-MIXED_STOPS:]):
        return ReplanSignal.MIXED_STEP
    return None


def _is_exploding(stops: Sequence[StepStop]) -> bool:
    """Return whether the last stop's diff is at least twice the one before."""
    return len(stops) > 1 and stops[-2].changed_lines > 0 and stops[-1].changed_lines >= 2 * stops[-2].changed_lines


def _is_broad(target_paths: Sequence[str]) -> bool:
    """Return whether a step's targets hold nothing back."""
    return not target_paths or any(path in BROAD_TARGETS for path in target_paths)
