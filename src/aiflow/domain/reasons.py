"""The catalogue of reason codes (ERR-1): what every stop, refusal and exclusion is called and what follows from it.

API, CLI, UI, comments and the reference page are drawn from this table; the words are in `messages/`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING

from aiflow.domain.lifecycle import RunState
from aiflow.domain.next_action import OPEN, ActionKind, NextAction

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
    """The recommended way on after a stop (RUN-8, D34 §6.2)."""

    RESUME = "resume"
    RETRY_STEP = "retry_step"
    REPLAN = "replan"
    ANSWER = "answer"
    UPDATE = "update"
    ACCEPT = "accept"
    NEW_RUN = "new_run"
    ISSUE_RETRY = "issue_retry"
    WAIT = "wait"
    MEND = "mend"
    NONE = "none"


# What takes each way; what a person mends by hand has nothing.
WAYS: Mapping[WayOn, NextAction] = {
    WayOn.RESUME: NextAction(ActionKind.RESUME),
    WayOn.RETRY_STEP: NextAction(ActionKind.RETRY_STEP),
    WayOn.REPLAN: NextAction(ActionKind.REPLAN),
    WayOn.ANSWER: NextAction(ActionKind.ANSWER, options=(("answer", OPEN),)),
    WayOn.UPDATE: NextAction(ActionKind.UPDATE),
    WayOn.ACCEPT: NextAction(ActionKind.ACCEPT),
    WayOn.NEW_RUN: NextAction(ActionKind.SET, options=(("status", "ready"),)),
}


# What a person can mend in the run's worktree instead, and have tested: `resume --keep-changes`.
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

# code | category | HTTP | exit | way on | stops a run as (N, F, -) | blocked reason of an issue | retryable
_TABLE = """
NOT_READY                SELECTION    409 CONFLICT    MEND        - -                      no
DEPENDS_NOT_DONE         SELECTION    409 CONFLICT    WAIT        - -                      yes
DEPENDS_NOT_FOUND        SELECTION    409 BAD_INPUT   MEND        - -                      no
DEPENDS_CYCLE            SELECTION    409 BAD_INPUT   MEND        - -                      no
REQUEST_LOCKED           SELECTION    409 CONFLICT    WAIT        - -                      yes
QUEUE_LOCKED             SELECTION    409 CONFLICT    WAIT        - -                      yes
LATEST_RUN_NEEDS_INPUT   SELECTION    409 CONFLICT    RESUME      - -                      no
REQUEST_INVALID          SELECTION    422 BAD_INPUT   MEND        - -                      no
DUPLICATE_ID             SELECTION    422 BAD_INPUT   MEND        - -                      no

INPUT_INVALID            INPUT        422 BAD_INPUT   MEND        - -                      no
SETTINGS_INVALID         INPUT        422 BAD_INPUT   MEND        N environment_failure    no
REQUEST_NOT_FOUND        INPUT        404 BAD_INPUT   MEND        - -                      no
RUN_NOT_FOUND            INPUT        404 BAD_INPUT   MEND        - -                      no
LOCK_NOT_FOUND           INPUT        404 BAD_INPUT   MEND        - -                      no
REQUEST_EXISTS           INPUT        409 CONFLICT    MEND        - -                      no
STATUS_NOT_ALLOWED       INPUT        422 BAD_INPUT   MEND        - -                      no
EDIT_CONFLICT            INPUT        409 CONFLICT    MEND        - -                      yes
EDITED_ELSEWHERE         INPUT        409 BAD_INPUT   MEND        - -                      no
FOLDER_IN_USE            INPUT        409 BAD_INPUT   MEND        - -                      no
REQUESTS_DIR_IN_USE      INPUT        409 BAD_INPUT   MEND        - -                      no
HIDDEN_TEXT              INPUT        200 OK          MEND        - -                      no

PROJECT_NOT_FOUND        ENVIRONMENT  503 ENVIRONMENT MEND        - -                      no
REQUESTS_DIR_MISSING     ENVIRONMENT  503 ENVIRONMENT MEND        - -                      no
PLATFORM_UNSUPPORTED     ENVIRONMENT  503 ENVIRONMENT NONE        - -                      no
NETWORK_FILE_SYSTEM      ENVIRONMENT  503 ENVIRONMENT MEND        N environment_failure    no
LINK_REFUSED             ENVIRONMENT  503 ENVIRONMENT MEND        N environment_failure    no
DISK_FULL                ENVIRONMENT  507 ENVIRONMENT RESUME      N environment_failure    yes
IO_ERROR                 ENVIRONMENT  503 ENVIRONMENT RESUME      N environment_failure    yes
DOCTOR_FAILED            ENVIRONMENT  409 ENVIRONMENT RESUME      N environment_failure    yes
SETUP_FAILED             ENVIRONMENT  409 ENVIRONMENT RESUME      N environment_failure    yes

RUN_IN_PROGRESS          EXECUTION    409 CONFLICT    WAIT        - -                      yes
QUEUE_IN_PROGRESS        EXECUTION    409 CONFLICT    WAIT        - -                      yes
LOCK_STALE_RECOVERED     EXECUTION    200 OK          NONE        - -                      no
LOCK_LOST                EXECUTION    409 CONFLICT    RESUME      N lock_mismatch          yes
LOCK_MISMATCH            EXECUTION    409 CONFLICT    NONE        - lock_mismatch          no
RUN_LOST                 EXECUTION    409 ENVIRONMENT NEW_RUN     N environment_failure    yes
PROCESS_CRASHED          EXECUTION    500 ENVIRONMENT RESUME      N environment_failure    yes
CANCELLED                EXECUTION    409 CONFLICT    RESUME      N decision_needed        yes
SENT_BACK                EXECUTION    200 OK          NONE        F decision_needed        no
REPLANNED                EXECUTION    200 OK          NONE        F -                      no
AWAITING_ACCEPTANCE      EXECUTION    200 OK          ACCEPT      - -                      no
NOTHING_CHANGED          EXECUTION    200 OK          ACCEPT      - -                      no
SETTINGS_CHANGED         EXECUTION    200 OK          ACCEPT      - -                      no
CONFLICT_TO_REVIEW       EXECUTION    200 OK          ACCEPT      - -                      no
RUN_NOT_ACCEPTABLE       EXECUTION    409 CONFLICT    NONE        - -                      no
MERGE_TESTS_FAILED       EXECUTION    409 TESTS       UPDATE      - quality_rule_violation yes
RUN_NOT_ACTIVE           EXECUTION    409 CONFLICT    NONE        - -                      no
RUN_FROM_NEWER_VERSION   EXECUTION    409 CONFLICT    MEND        - -                      no
RUN_NOT_RESUMABLE        EXECUTION    409 CONFLICT    NEW_RUN     - -                      no
REPLAN_REQUIRED          EXECUTION    409 CONFLICT    REPLAN      - -                      no
RETRY_LIMIT_EXCEEDED     EXECUTION    409 AGENT       REPLAN      N retry_condition_unmet  no
STEP_TOO_LARGE           EXECUTION    422 AGENT       REPLAN      N quality_rule_violation no
FILE_TOO_LARGE           EXECUTION    422 AGENT       RETRY_STEP  N quality_rule_violation yes
UNIT_TEST_FAILED         EXECUTION    422 TESTS       RETRY_STEP  N quality_rule_violation yes
E2E_TEST_FAILED          EXECUTION    422 TESTS       RETRY_STEP  N quality_rule_violation yes
TEST_TIMEOUT             EXECUTION    504 TESTS       RETRY_STEP  N quality_rule_violation yes
QA_REJECTED              EXECUTION    422 AGENT       RETRY_STEP  N quality_rule_violation yes
NEEDS_CLARIFICATION      EXECUTION    200 AGENT       ANSWER      N decision_needed        no
COST_LIMIT_REACHED       EXECUTION    429 CONFLICT    RESUME      N resource_exceeded      yes
RUN_LIMIT_REACHED        EXECUTION    429 CONFLICT    RESUME      N resource_exceeded      yes

JSON_PARSE_ERROR         AGENT        502 AGENT       RETRY_STEP  N quality_rule_violation yes
JSON_SCHEMA_INVALID      AGENT        502 AGENT       RETRY_STEP  N quality_rule_violation yes
AGENT_NOT_FOUND          AGENT        503 ENVIRONMENT RESUME      N environment_failure    no
AGENT_FAILED             AGENT        502 AGENT       RETRY_STEP  N environment_failure    yes
AGENT_TIMEOUT            AGENT        504 AGENT       RETRY_STEP  N resource_exceeded      yes
AGENT_QUOTA              AGENT        429 ENVIRONMENT RESUME      N resource_exceeded      yes
AGENT_AUTH_REQUIRED      AGENT        401 ENVIRONMENT RESUME      N environment_failure    no
AGENT_SANDBOX_MISSING    AGENT        503 ENVIRONMENT RESUME      N environment_failure    no
AGENT_PERMISSION_DENIED  AGENT        403 AGENT       RETRY_STEP  N policy_denied          no
CHANGES_REFUSED          AGENT        422 AGENT       RETRY_STEP  N policy_denied          yes
AGENT_SESSION_LOST       AGENT        200 OK          NONE        - -                      no

WORKTREE_DIRTY           GIT          409 GIT         RESUME      N environment_failure    yes
WORKTREE_LOST            GIT          409 GIT         RESUME      N environment_failure    yes
SUBMODULE_CHANGED        GIT          409 GIT         RETRY_STEP  N policy_denied          yes
DEPENDS_NOT_IN_BASE      GIT          200 OK          MEND        - -                      no
ORIGIN_MISSING           GIT          200 OK          RESUME      - -                      no
REMOTE_NOT_GITHUB        GIT          200 OK          RESUME      - -                      no
PUSH_FAILED              GIT          200 OK          RESUME      - -                      no
NOT_A_REPOSITORY         GIT          503 GIT         MEND        - environment_failure    no
NO_COMMITS               GIT          409 GIT         MEND        - environment_failure    no
BASE_BRANCH_MISSING      GIT          409 GIT         MEND        N environment_failure    no
BRANCH_IN_THE_WAY        GIT          409 GIT         RESUME      N environment_failure    no
GIT_IDENTITY_MISSING     GIT          409 GIT         RESUME      N environment_failure    no
GIT_NOT_FOUND            GIT          503 GIT         MEND        N environment_failure    no
GIT_TOO_OLD              GIT          503 GIT         MEND        - environment_failure    no
GIT_FAILED               GIT          500 GIT         RESUME      N environment_failure    yes
MERGE_CONFLICT           GIT          409 GIT         UPDATE      - decision_needed        yes
CHECKOUT_IN_THE_WAY      GIT          409 GIT         ACCEPT      - decision_needed        yes
CHECKOUT_RECOVERED       GIT          200 OK          NONE        - -                      no

RUNNER_LOST              QUEUE        503 ENVIRONMENT RESUME      N environment_failure    yes
RUNNER_STOPPED           QUEUE        503 ENVIRONMENT RESUME      N environment_failure    yes
STORE_UNREACHABLE        QUEUE        503 ENVIRONMENT RESUME      N environment_failure    yes
STORE_THROTTLED          QUEUE        429 ENVIRONMENT WAIT        - resource_exceeded      yes
STORE_REFUSED            QUEUE        403 ENVIRONMENT MEND        - environment_failure    no
STORE_CREDENTIALS_MISSING QUEUE       403 ENVIRONMENT MEND        - environment_failure    no
STORE_TABLE_MISMATCH     QUEUE        409 ENVIRONMENT MEND        - environment_failure    no
STORE_NOT_INSTALLED      QUEUE        503 ENVIRONMENT MEND        - environment_failure    no
STORE_NOT_FETCHED        QUEUE        503 ENVIRONMENT MEND        - environment_failure    yes
STORE_NOT_STARTED        QUEUE        503 ENVIRONMENT MEND        - environment_failure    yes
TASK_NOT_FOUND           INPUT        404 BAD_INPUT   MEND        - -                      no
TASK_EXISTS              QUEUE        409 CONFLICT    MEND        - -                      no
TASK_NOT_ACTIVE          QUEUE        409 CONFLICT    NONE        - -                      no
TASK_ID_INVALID          INPUT        422 BAD_INPUT   MEND        - -                      no
REQUEST_QUEUED           QUEUE        409 CONFLICT    WAIT        - -                      yes
PROMPT_TOO_LARGE         INPUT        413 BAD_INPUT   MEND        - -                      no
PROMPT_EMPTY             INPUT        422 BAD_INPUT   MEND        - -                      no
PROMPT_LOST              QUEUE        409 ENVIRONMENT MEND        - environment_failure    no
NAMESPACE_INVALID        INPUT        422 BAD_INPUT   MEND        - -                      no
ISSUE_RETRY_ONLY         QUEUE        409 CONFLICT    ISSUE_RETRY - retry_condition_unmet  no

AUTO_NOT_RUNNING         EXECUTION    409 CONFLICT    NONE        - -                      no
AUTO_NOT_CUT             EXECUTION    409 CONFLICT    NONE        - -                      no
AUTO_NEEDS_INPUT_LIMIT   EXECUTION    200 OK          MEND        - -                      no
AUTO_FAILED_LIMIT        EXECUTION    200 OK          MEND        - -                      no
AUTO_STOPPED_BY_PERSON   EXECUTION    200 OK          NONE        - -                      no
AUTO_CUT_OFF             EXECUTION    503 ENVIRONMENT RESUME      N environment_failure    yes
AUTO_RUNS_LIMIT          EXECUTION    200 OK          NONE        - resource_exceeded      no
AUTO_MINUTES_LIMIT       EXECUTION    200 OK          NONE        - resource_exceeded      no
AUTO_UNTIL_REACHED       EXECUTION    200 OK          NONE        - resource_exceeded      no
AUTO_COST_LIMIT          EXECUTION    200 OK          NONE        - resource_exceeded      no
AUTO_TOKENS_LIMIT        EXECUTION    200 OK          NONE        - resource_exceeded      no
AUTO_CALLS_LIMIT         EXECUTION    200 OK          NONE        - resource_exceeded      no
AUTO_NOTHING_RUNNABLE    EXECUTION    200 OK          NONE        - -                      no

AUTH_REQUIRED            INPUT        401 BAD_INPUT   MEND        - -                      no
CODE_REFUSED             INPUT        401 BAD_INPUT   MEND        - -                      no
ORIGIN_REFUSED           INPUT        403 BAD_INPUT   MEND        - -                      no
HOST_REFUSED             INPUT        421 BAD_INPUT   MEND        - -                      no
BODY_TOO_LARGE           INPUT        413 BAD_INPUT   MEND        - -                      no
BODY_TOO_SLOW            INPUT        408 BAD_INPUT   MEND        - -                      yes
CONTENT_TYPE_REFUSED     INPUT        415 BAD_INPUT   MEND        - -                      no
ROUTE_NOT_FOUND          INPUT        404 BAD_INPUT   MEND        - -                      no
METHOD_NOT_ALLOWED       INPUT        405 BAD_INPUT   MEND        - -                      no
SESSION_NOT_FOUND        INPUT        404 BAD_INPUT   MEND        - -                      no
START_UNCONFIRMED        ENVIRONMENT  504 ENVIRONMENT WAIT        - -                      yes
SERVER_RUNNING           EXECUTION    409 CONFLICT    NONE        - -                      no
SERVER_NOT_RUNNING       ENVIRONMENT  503 ENVIRONMENT MEND        - -                      no
SERVER_STOPPING          ENVIRONMENT  503 ENVIRONMENT WAIT        - -                      yes
PORT_IN_USE              ENVIRONMENT  503 ENVIRONMENT MEND        - -                      no
SERVICE_UNAVAILABLE      ENVIRONMENT  503 ENVIRONMENT MEND        - -                      no
SERVICE_FAILED           ENVIRONMENT  503 ENVIRONMENT MEND        - -                      no

TRANSITION_NOT_ALLOWED   INTERNAL     500 INTERNAL    NEW_RUN     F environment_failure    no
INTERNAL_ERROR           INTERNAL     500 INTERNAL    NEW_RUN     F environment_failure    no
"""


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


CATALOGUE: Mapping[str, Reason] = {reason.code: reason for reason in map(_read, filter(None, _TABLE.splitlines()))}


def reason_for(code: str) -> Reason:
    """Return a code's row; an unknown code is itself an internal error."""
    return CATALOGUE.get(code, CATALOGUE["INTERNAL_ERROR"])


def way_on(code: str, cause: str | None = None) -> WayOn:
    """Return the recommended way on; a limit that was reached takes that of its cause (RUN-4)."""
    if code == "RETRY_LIMIT_EXCEEDED" and cause is not None and cause in CATALOGUE:
        return CATALOGUE[cause].way_on
    return reason_for(code).way_on


def exit_code(code: str, cause: str | None = None) -> ExitCode:
    """Return the exit code; a limit that was reached takes that of its cause (RUN-4)."""
    if code == "RETRY_LIMIT_EXCEEDED" and cause is not None and cause in CATALOGUE:
        return CATALOGUE[cause].exit_code
    return reason_for(code).exit_code


def way_to_mend(code: str, request_id: str, cause: str | None = None, way: str | None = None) -> NextAction | None:
    """Return what takes the recommended way on, or None if a person has to mend something first."""
    action = WAYS.get(WayOn(way) if way in tuple(WayOn) else way_on(code, cause))
    return replace(action, request_id=request_id) if action else None
