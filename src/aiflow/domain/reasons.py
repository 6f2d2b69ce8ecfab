"""The catalogue of reason codes (ERR-1): what every stop, refusal and exclusion is called and what follows from it.

API, CLI, UI, comments and the reference page are drawn from the table in `reason_codes.py`; words are in `messages/`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING

from aiflow.domain.issue_ways import RETRY, answer, at_github, is_issue
from aiflow.domain.lifecycle import RunState
from aiflow.domain.next_action import OPEN, ActionKind, NextAction
from aiflow.domain.reason_codes import ROWS

if TYPE_CHECKING:
    from collections.abc import Mapping


class Category(StrEnum):
    """The kind of trouble, as the API names it."""

    INPUT = "INPUT"
    SELECTION = "SELECTION"
    ENVIRONMENT = "ENVIRONMENT"
    EXECUTION = "EXECUTION"
    AGENT = "AGENT"
    GIT = "GIT"
    QUEUE = "QUEUE"
    INTERNAL = "INTERNAL"


class ExitCode(IntEnum):
    """What the program's exit code says (SPEC §13)."""

    OK = 0
    BAD_INPUT = 2
    ENVIRONMENT = 3
    CONFLICT = 4
    AGENT = 5
    GIT = 6
    TESTS = 7
    INTERNAL = 9


class WayOn(StrEnum):
    """The recommended next step after a stop (RUN-8, D34 §6.2)."""

    RESUME = "resume"
    RETRY_STEP = "retry_step"
    REPLAN = "replan"
    ANSWER = "answer"
    UPDATE = "update"
    ACCEPT = "accept"
    SEND_BACK = "send_back"
    NEW_RUN = "new_run"
    ISSUE_RETRY = "issue_retry"
    WAIT = "wait"
    MEND = "mend"
    NONE = "none"


# The action for each next step; what a person fixes by hand has none.
WAYS: Mapping[WayOn, NextAction] = {
    WayOn.RESUME: NextAction(ActionKind.RESUME),
    WayOn.RETRY_STEP: NextAction(ActionKind.RETRY_STEP),
    WayOn.REPLAN: NextAction(ActionKind.REPLAN),
    WayOn.ANSWER: NextAction(ActionKind.ANSWER, options=(("answer", OPEN),)),
    WayOn.UPDATE: NextAction(ActionKind.UPDATE),
    WayOn.ACCEPT: NextAction(ActionKind.ACCEPT),
    WayOn.SEND_BACK: NextAction(ActionKind.SEND_BACK, options=(("message", OPEN),)),
    WayOn.NEW_RUN: NextAction(ActionKind.SET, options=(("status", "ready"),)),
}


# None of these is open to an issue's run that has stopped.
_TRIED_AGAIN = frozenset(
    {WayOn.RESUME, WayOn.RETRY_STEP, WayOn.REPLAN, WayOn.ANSWER, WayOn.UPDATE, WayOn.NEW_RUN, WayOn.ISSUE_RETRY}
)


# What a person can fix in the run's worktree instead, and have tested: `resume --keep-changes`.
BY_HAND = frozenset({"UNIT_TEST_FAILED", "E2E_TEST_FAILED", "TEST_TIMEOUT", "QA_REJECTED"})


class BlockedReason(StrEnum):
    """Why an issue is blocked, in the words of ISSUE (ISS-5)."""

    QUALITY_RULE_VIOLATION = "quality_rule_violation"
    RETRY_CONDITION_UNMET = "retry_condition_unmet"
    ENVIRONMENT_FAILURE = "environment_failure"
    DECISION_NEEDED = "decision_needed"
    LOCK_MISMATCH = "lock_mismatch"
    POLICY_DENIED = "policy_denied"
    RESOURCE_EXCEEDED = "resource_exceeded"


@dataclass(frozen=True, slots=True)
class Reason:
    """One row of the catalogue."""

    code: str
    category: Category
    http_status: int
    exit_code: ExitCode
    way_on: WayOn
    stops_as: RunState | None = None
    blocked_reason: BlockedReason | None = None
    is_retryable: bool = False


_STOPS = {"-": None, "N": RunState.NEEDS_INPUT, "F": RunState.FAILED}


def _read(row: str) -> Reason:
    code, category, http, exit_code, way_on, stops_as, blocked, retryable = row.split()
    return Reason(
        code=code,
        category=Category(category),
        http_status=int(http),
        exit_code=ExitCode[exit_code],
        way_on=WayOn[way_on],
        stops_as=_STOPS[stops_as],
        blocked_reason=None if blocked == "-" else BlockedReason(blocked),
        is_retryable=retryable == "yes",
    )


CATALOGUE: Mapping[str, Reason] = {reason.code: reason for reason in map(_read, ROWS.values())}


def reason_for(code: str) -> Reason:
    """Return a code's row; an unknown code is itself an internal error."""
    return CATALOGUE.get(code, CATALOGUE["INTERNAL_ERROR"])


def way_on(code: str, cause: str | None = None) -> WayOn:
    """Return the recommended next step; for a limit that was reached, that of its cause (RUN-4)."""
    if code == "RETRY_LIMIT_EXCEEDED" and cause is not None and cause in CATALOGUE:
        return CATALOGUE[cause].way_on
    return reason_for(code).way_on


def exit_code(code: str, cause: str | None = None) -> ExitCode:
    """Return the exit code; a limit that was reached takes that of its cause (RUN-4)."""
    if code == "RETRY_LIMIT_EXCEEDED" and cause is not None and cause in CATALOGUE:
        return CATALOGUE[cause].exit_code
    return reason_for(code).exit_code


def way_to_mend(code: str, request_id: str, cause: str | None = None, way: str | None = None) -> NextAction | None:
    """Return the action for the recommended next step, or None if a person has to fix something first."""
    open_way = WayOn(way) if way in tuple(WayOn) else way_on(code, cause)
    if is_issue(request_id) and shown_way(open_way, request_id) is WayOn.ISSUE_RETRY:
        return at_github(RETRY, request_id) if code == "RUN_LOST" else answer(request_id)
    action = WAYS.get(open_way)
    return replace(action, request_id=request_id) if action else None


def shown_way(way: WayOn, request_id: str) -> WayOn:
    """Return the next step of a request: an issue's run that has stopped is tried again with a new one (ISS-6)."""
    return WayOn.ISSUE_RETRY if way in _TRIED_AGAIN and is_issue(request_id) else way
