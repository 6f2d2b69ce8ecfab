"""The catalogue of reason codes (ERR-1): nothing missing, nothing that contradicts the specification."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from aiflow.domain import reason_codes
from aiflow.domain.lifecycle import PROJECTIONS, IssueLabel, RunEvent, outcome_of
from aiflow.domain.next_action import ABOUT_SOMETHING, ActionKind, NextAction
from aiflow.domain.reasons import (
    CATALOGUE,
    WAYS,
    BlockedReason,
    Category,
    ExitCode,
    WayOn,
    exit_code,
    reason_for,
    way_on,
    way_to_mend,
)
from aiflow.domain.runs.resume import Goal, Refused, ResumeMode, StoppedRun, decide_resume
from builders import typed

ROOT = Path(__file__).parents[2]
SPEC = (ROOT / "docs" / "spec.md").read_text(encoding="utf-8")

STOPS_AS_NEEDS_INPUT = [
    "BASE_TESTS_FAILED",
    "RUN_LIMIT_REACHED",
    "SETTINGS_INVALID",
    "NETWORK_FILE_SYSTEM",
    "LINK_REFUSED",
    "DISK_FULL",
    "IO_ERROR",
    "DOCTOR_FAILED",
    "SETUP_FAILED",
    "LOCK_LOST",
    "RUN_LOST",
    "PROCESS_CRASHED",
    "CANCELLED",
    "COST_LIMIT_REACHED",
    "RETRY_LIMIT_EXCEEDED",
    "STEP_TOO_LARGE",
    "UNIT_TEST_FAILED",
    "E2E_TEST_FAILED",
    "TEST_TIMEOUT",
    "CHANGES_REFUSED",
    "SUBMODULE_CHANGED",
    "FILE_TOO_LARGE",
    "QA_REJECTED",
    "NEEDS_CLARIFICATION",
    "JSON_PARSE_ERROR",
    "JSON_SCHEMA_INVALID",
    "AGENT_NOT_FOUND",
    "AGENT_FAILED",
    "AGENT_TIMEOUT",
    "AGENT_QUOTA",
    "WORKTREE_LOST",
    "BASE_BRANCH_MISSING",
    "BRANCH_IN_THE_WAY",
    "GIT_IDENTITY_MISSING",
    "GIT_NOT_FOUND",
    "GIT_FAILED",
    "AGENT_AUTH_REQUIRED",
    "AGENT_SANDBOX_MISSING",
    "AGENT_PERMISSION_DENIED",
    "WORKTREE_DIRTY",
    "RUNNER_LOST",
    "RUNNER_STOPPED",
    "STORE_UNREACHABLE",
    "AUTO_CUT_OFF",
]
STOPS_AS_FAILED = ["SENT_BACK", "REPLANNED", "TRANSITION_NOT_ALLOWED", "INTERNAL_ERROR"]
# A run that was sent back or replaced is closed: nothing waits for a person any more.
CLOSED = {"SENT_BACK", "REPLANNED"}


@pytest.mark.spec("ERR-1")
def test_every_line_of_the_table_is_a_row_of_the_catalogue() -> None:
    lines = [line.split()[0] for line in reason_codes._TABLE.splitlines() if line]
    assert lines == list(CATALOGUE)
    assert all(code == row.code and re.fullmatch(r"[A-Z][A-Z0-9_]+", code) for code, row in CATALOGUE.items())
    assert {row.category for row in CATALOGUE.values()} == set(Category)


@pytest.mark.spec("ERR-1")
def test_an_unknown_code_counts_as_an_internal_error() -> None:
    assert reason_for("NO_SUCH_CODE") is CATALOGUE["INTERNAL_ERROR"]
    assert exit_code("NO_SUCH_CODE") == 9
    assert reason_for("UNIT_TEST_FAILED").code == "UNIT_TEST_FAILED"


# --- the specification's words ---------------------------------------------------------------------------------------

# Words of the specification in the same spelling that are no reason codes.
STATES = {"NEEDS_INPUT"}
ENVIRONMENT_VARIABLES = {
    "AIFLOW_AGENT_KIND",
    "AIFLOW_ATTEMPT",
    "AIFLOW_REQUEST_ID",
    "AIFLOW_RESULT",
    "AIFLOW_ROLE",
    "AIFLOW_RUN_ID",
    "AIFLOW_STEP_ID",
    "GITHUB_TOKEN",
    "GITHUB_WEBHOOK_SECRET",
}
NO_REASONS = STATES | ENVIRONMENT_VARIABLES


@pytest.mark.spec("ERR-1", "SEL-3")
def test_every_reason_code_of_the_specification_is_in_the_catalogue() -> None:
    words = set(re.findall(r"(?<![\w-])[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+(?!\w)", SPEC))
    assert words >= NO_REASONS, "an ignored word that does not occur hides nothing: take it out"
    assert words - NO_REASONS <= CATALOGUE.keys()
    assert not NO_REASONS & CATALOGUE.keys()
    assert "CANCELLED" in CATALOGUE  # the one code of a single word
    assert len(words - NO_REASONS) > 30


@pytest.mark.spec("ERR-1")
def test_every_reason_code_that_the_program_names_is_in_the_catalogue() -> None:
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    words = set(re.findall(r'"([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)"', sources)) - {event.value for event in RunEvent}
    is_variable = re.compile(
        r"(AIFLOW|GCM|GITHUB|JAVA|LC|NO|XDG|LD|DYLD|SC)_|GIT_(?!\w+(MISSING|FOUND|OLD|FAILED)$)"
        r"|(ANTHROPIC|AWS|AZURE|BEDROCK|CLAUDE|CLOUD|CODEX|DISABLE|ENABLE|GEMINI|GOOGLE|OPENAI|OPENCODE|OPENROUTER|VERTEX)_"
        r"|(CARGO|PIP|UV)_|(NOTIFY_SOCKET|SSH_\w+|WAYLAND_DISPLAY)$"
        r"|\w+_API_KEY$"
    ).match
    # Names of files in a git directory.
    is_file = re.compile(r"BISECT_\w+|AUTO_MERGE|SQUASH_MSG|MERGE_(HEAD|MODE|MSG|RR)|\w+_HEAD").fullmatch
    # Words of DynamoDB and of the system.
    foreign = {"ALL_NEW", "KEYS_ONLY", "PAY_PER_REQUEST", "F_OFD_SETLK"}
    named = {word for word in words - foreign if not is_variable(word) and not is_file(word)}
    assert named - NO_REASONS <= CATALOGUE.keys()


@pytest.mark.spec("SEL-3")
def test_the_reasons_for_which_a_request_is_not_chosen() -> None:
    assert {code for code, row in CATALOGUE.items() if row.category is Category.SELECTION} == {
        "NOT_READY",
        "DEPENDS_NOT_DONE",
        "DEPENDS_NOT_FOUND",
        "DEPENDS_CYCLE",
        "REQUEST_LOCKED",
        "QUEUE_LOCKED",
        "LATEST_RUN_NEEDS_INPUT",
        "REQUEST_INVALID",
        "DUPLICATE_ID",
        "LABEL_NOT_PERMITTED",
        "ISSUE_TEXT_CHANGED",
    }


# --- HTTP status and exit code ---------------------------------------------------------------------------------------


@pytest.mark.spec("ERR-1", "CLI")
def test_exit_codes_are_those_of_the_specification() -> None:
    assert {code.value for code in ExitCode} == {0, 2, 3, 4, 5, 6, 7, 9}
    assert {row.exit_code for row in CATALOGUE.values()} == set(ExitCode)


@pytest.mark.spec("ERR-1", "CLI")
@pytest.mark.parametrize(
    ("meaning", "http", "codes"),
    [
        (2, 422, "REQUEST_INVALID DUPLICATE_ID INPUT_INVALID SETTINGS_INVALID STATUS_NOT_ALLOWED"),
        (2, 404, "REQUEST_NOT_FOUND RUN_NOT_FOUND"),
        (4, 409, "RUN_IN_PROGRESS QUEUE_IN_PROGRESS LOCK_LOST LOCK_MISMATCH EDIT_CONFLICT REQUEST_EXISTS NOT_READY"),
        (4, 409, "DEPENDS_NOT_DONE REQUEST_LOCKED QUEUE_LOCKED LATEST_RUN_NEEDS_INPUT RUN_NOT_RESUMABLE CANCELLED"),
        (5, 502, "JSON_PARSE_ERROR JSON_SCHEMA_INVALID AGENT_FAILED"),
        (7, 422, "UNIT_TEST_FAILED E2E_TEST_FAILED"),
        (7, 504, "TEST_TIMEOUT"),
        (6, 409, "WORKTREE_DIRTY MERGE_CONFLICT CHECKOUT_IN_THE_WAY SUBMODULE_CHANGED"),
        (5, 422, "CHANGES_REFUSED STEP_TOO_LARGE FILE_TOO_LARGE"),
        (3, 429, "AGENT_QUOTA"),
        (3, 401, "AGENT_AUTH_REQUIRED"),
        (3, 503, "AGENT_SANDBOX_MISSING"),
        (
            0,
            200,
            "ORIGIN_MISSING REMOTE_NOT_GITHUB LOCK_STALE_RECOVERED CHECKOUT_RECOVERED AWAITING_ACCEPTANCE NOTHING_CHANGED",
        ),
        (9, 500, "INTERNAL_ERROR TRANSITION_NOT_ALLOWED"),
    ],
)
def test_a_code_means_the_same_as_exit_code_and_as_http_status(meaning: int, http: int, codes: str) -> None:
    for code in codes.split():
        assert (exit_code(code), reason_for(code).http_status) == (meaning, http), code


@pytest.mark.spec("ERR-1", "CLI")
def test_category_exit_code_and_http_status_of_every_row_agree() -> None:
    for code, row in CATALOGUE.items():
        is_fine = row.http_status == 200
        # A question is an answer to the call that led to it, but the run has stopped.
        assert is_fine == (row.exit_code == ExitCode.OK) or code == "NEEDS_CLARIFICATION"
        assert is_fine or 400 <= row.http_status < 600, code
        assert (row.category is Category.INTERNAL) == (row.exit_code == ExitCode.INTERNAL), code
        assert (row.category is Category.GIT and not is_fine) == (row.exit_code == ExitCode.GIT), code
        assert row.exit_code != ExitCode.BAD_INPUT or row.category in (Category.INPUT, Category.SELECTION), code
        assert row.category is not Category.ENVIRONMENT or row.exit_code == ExitCode.ENVIRONMENT, code
        assert row.exit_code != ExitCode.CONFLICT or row.http_status in (409, 429), code
        assert row.exit_code != ExitCode.TESTS or "TEST" in code, code
        # An issue that may not run is blocked by a rule before it has a run.
        is_rule = row.category is Category.SELECTION and row.blocked_reason is BlockedReason.POLICY_DENIED
        is_about_a_run = row.stops_as is not None or row.category not in (Category.INPUT, Category.SELECTION) or is_rule
        assert is_about_a_run or row.blocked_reason is None, code


# --- stops and ways on -----------------------------------------------------------------------------------------------


@pytest.mark.spec("RUN-2", "ERR-1")
def test_which_reasons_stop_a_run_and_as_what() -> None:
    stops = {code: row.stops_as for code, row in CATALOGUE.items() if row.stops_as is not None}
    assert {code for code, state in stops.items() if state == "NEEDS_INPUT"} == set(STOPS_AS_NEEDS_INPUT)
    assert {code for code, state in stops.items() if state == "FAILED"} == set(STOPS_AS_FAILED)
    assert len(stops) == len(STOPS_AS_NEEDS_INPUT) + len(STOPS_AS_FAILED)


@pytest.mark.spec("CLI", "RUN-2")
def test_a_run_that_stopped_short_of_done_never_exits_with_0() -> None:
    assert {code for code in [*STOPS_AS_NEEDS_INPUT, *STOPS_AS_FAILED] if exit_code(code) == 0} == CLOSED


@pytest.mark.spec("RUN-8")
@pytest.mark.parametrize(
    ("code", "way"),
    [
        ("JSON_PARSE_ERROR", "retry_step"),
        ("JSON_SCHEMA_INVALID", "retry_step"),
        ("STEP_TOO_LARGE", "replan"),
        ("UNIT_TEST_FAILED", "retry_step"),
        ("E2E_TEST_FAILED", "retry_step"),
        ("WORKTREE_DIRTY", "resume"),
        ("ORIGIN_MISSING", "resume"),
        ("REMOTE_NOT_GITHUB", "resume"),
        ("RUN_IN_PROGRESS", "wait"),
    ],
)
def test_the_recommended_way_on_is_that_of_d34(code: str, way: str) -> None:
    assert way_on(code) == way


@pytest.mark.spec("RUN-8", "RUN-10", "RUN-12", "RUN-13", "REQ-6", "GIT-3", "ISS-6")
@pytest.mark.parametrize(
    ("code", "way"),
    [
        ("NEEDS_CLARIFICATION", "answer"),
        ("CANCELLED", "resume"),
        ("AGENT_QUOTA", "resume"),
        ("PROCESS_CRASHED", "resume"),
        ("AWAITING_ACCEPTANCE", "accept"),
        ("MERGE_CONFLICT", "update"),
        ("REPLAN_REQUIRED", "replan"),
        ("RUN_LOST", "new_run"),
        ("ISSUE_RETRY_ONLY", "issue_retry"),
    ],
)
def test_the_way_on_of_what_the_specification_adds(code: str, way: str) -> None:
    assert way_on(code) == way


@pytest.mark.spec("RUN-8", "SEL-5")
def test_every_stop_has_a_command_unless_a_person_mends_something_or_nothing_is_left_to_do() -> None:
    stops = [*STOPS_AS_NEEDS_INPUT, *STOPS_AS_FAILED]
    to_mend = {code for code in stops if way_on(code) is WayOn.MEND}
    assert {code for code in stops if way_to_mend(code, "RQ-1") is None} == CLOSED | to_mend


@pytest.mark.spec("RUN-6", "RUN-8")
def test_the_recommended_way_is_one_that_is_not_refused() -> None:
    """A FAILED run resumes only by force, so nothing that stops as FAILED may recommend it (D34 §2.1)."""
    ways = {WayOn.RESUME, WayOn.RETRY_STEP, WayOn.REPLAN}
    for code, row in CATALOGUE.items():
        if row.stops_as is not None and row.way_on in ways:
            run = StoppedRun("RUN-1", row.stops_as, ("S01",), current_step_id="S01")
            decision = decide_resume(run, Goal(ResumeMode(row.way_on.value)), step_retries=3)
            assert not isinstance(decision, Refused), code


@pytest.mark.spec("RUN-4")
@pytest.mark.parametrize(
    ("cause", "way", "code"),
    [
        ("UNIT_TEST_FAILED", "retry_step", 7),
        ("TEST_TIMEOUT", "retry_step", 7),
        ("QA_REJECTED", "retry_step", 5),
        ("JSON_PARSE_ERROR", "retry_step", 5),
        ("STEP_TOO_LARGE", "replan", 5),
        ("AGENT_QUOTA", "resume", 3),
        ("WORKTREE_DIRTY", "resume", 6),
    ],
)
def test_a_reached_limit_follows_its_cause(cause: str, way: str, code: int) -> None:
    assert (way_on("RETRY_LIMIT_EXCEEDED", cause), exit_code("RETRY_LIMIT_EXCEEDED", cause)) == (way, code)
    assert way_to_mend("RETRY_LIMIT_EXCEEDED", "RQ-1", cause) == way_to_mend(cause, "RQ-1")


@pytest.mark.spec("RUN-4")
@pytest.mark.parametrize("cause", [None, "NO_SUCH_CODE"])
def test_a_reached_limit_without_a_known_cause_points_to_replan(cause: str | None) -> None:
    assert way_on("RETRY_LIMIT_EXCEEDED", cause) is WayOn.REPLAN
    assert exit_code("RETRY_LIMIT_EXCEEDED", cause) is ExitCode.AGENT
    assert way_to_mend("RETRY_LIMIT_EXCEEDED", "RQ-1", cause) == NextAction(ActionKind.REPLAN, "RQ-1")


@pytest.mark.spec("RUN-4")
def test_only_a_reached_limit_follows_a_cause() -> None:
    assert way_on("STEP_TOO_LARGE", "UNIT_TEST_FAILED") is WayOn.REPLAN
    assert exit_code("STEP_TOO_LARGE", "UNIT_TEST_FAILED") is ExitCode.AGENT


@pytest.mark.spec("SEL-5", "RUN-8")
@pytest.mark.parametrize(
    ("way", "code", "command"),
    [
        ("resume", "WORKTREE_DIRTY", "aiflow resume RQ-1"),
        ("retry_step", "UNIT_TEST_FAILED", "aiflow retry-step RQ-1"),
        ("replan", "STEP_TOO_LARGE", "aiflow replan RQ-1"),
        ("answer", "NEEDS_CLARIFICATION", 'aiflow resume RQ-1 --answer "…"'),
        ("update", "MERGE_CONFLICT", "aiflow resume RQ-1 --update"),
        ("accept", "AWAITING_ACCEPTANCE", "aiflow accept RQ-1"),
        ("new_run", "RUN_LOST", "aiflow set RQ-1 status=ready"),
        ("issue_retry", "ISSUE_RETRY_ONLY", None),
        ("wait", "RUN_IN_PROGRESS", None),
        ("mend", "SETTINGS_INVALID", None),
        ("none", "AUTO_RUNS_LIMIT", None),
    ],
)
def test_the_command_that_takes_each_way(way: str, code: str, command: str | None) -> None:
    assert way_on(code) == way
    assert typed(way_to_mend(code, "RQ-1")) == (command,)


@pytest.mark.spec("SEL-5")
def test_every_way_on_is_recommended_by_something_and_every_action_is_about_a_request() -> None:
    assert {row.way_on for row in CATALOGUE.values()} == set(WayOn)
    assert {action.kind for action in WAYS.values()} <= ABOUT_SOMETHING


# --- issues ----------------------------------------------------------------------------------------------------------


@pytest.mark.spec("ISS-5")
def test_every_blocked_reason_of_the_specification_exists_and_is_used() -> None:
    expected = {
        "quality_rule_violation",
        "retry_condition_unmet",
        "environment_failure",
        "decision_needed",
        "lock_mismatch",
        "policy_denied",
        "resource_exceeded",
    }
    assert set(BlockedReason) == expected
    assert {row.blocked_reason for row in CATALOGUE.values()} - {None} == expected


@pytest.mark.spec("ISS-5", "ISS-9")
def test_every_stop_that_blocks_an_issue_says_why_in_its_words() -> None:
    for code, row in CATALOGUE.items():
        if row.stops_as is not None and PROJECTIONS[outcome_of(row.stops_as, code)].label is IssueLabel.BLOCKED:
            # A replaced run leaves its issue to the run that replaced it.
            assert row.blocked_reason is not None or code == "REPLANNED", code


@pytest.mark.spec("ISS-5")
@pytest.mark.parametrize(
    ("code", "blocked_reason"),
    [
        ("UNIT_TEST_FAILED", "quality_rule_violation"),
        ("QA_REJECTED", "quality_rule_violation"),
        ("STEP_TOO_LARGE", "quality_rule_violation"),
        ("RETRY_LIMIT_EXCEEDED", "retry_condition_unmet"),
        ("ISSUE_RETRY_ONLY", "retry_condition_unmet"),
        ("ISSUE_RETRY_LIMIT", "retry_condition_unmet"),
        ("ISSUE_TEXT_CHANGED", "policy_denied"),
        ("LABEL_NOT_PERMITTED", "policy_denied"),
        ("DOCTOR_FAILED", "environment_failure"),
        ("PROCESS_CRASHED", "environment_failure"),
        ("NEEDS_CLARIFICATION", "decision_needed"),
        ("LOCK_LOST", "lock_mismatch"),
        ("AGENT_PERMISSION_DENIED", "policy_denied"),
        ("AGENT_QUOTA", "resource_exceeded"),
        ("COST_LIMIT_REACHED", "resource_exceeded"),
    ],
)
def test_why_an_issue_is_blocked(code: str, blocked_reason: str) -> None:
    assert CATALOGUE[code].blocked_reason == blocked_reason
