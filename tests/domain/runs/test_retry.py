"""Limits (RUN-4, RUN-5, RUN-14, ISS-7): nothing runs for ever, and a plan that does not work is changed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aiflow.domain.reasons import CATALOGUE
from aiflow.domain.runs.retry import (
    ReplanSignal,
    StepStop,
    StopRun,
    TryAgain,
    after_failure,
    may_retry_issue,
    may_retry_step,
    replan_signal,
)

# What a role's own work can fail with; everything else that stops a run is not mended by calling the role again.
ROLE_FAILURES = [
    "JSON_PARSE_ERROR",
    "JSON_SCHEMA_INVALID",
    "AGENT_FAILED",
    "AGENT_TIMEOUT",
    "UNIT_TEST_FAILED",
    "E2E_TEST_FAILED",
    "TEST_TIMEOUT",
    "QA_REJECTED",
    "WORKTREE_LOST",
    "CHANGES_REFUSED",
    "SUBMODULE_CHANGED",
    "FILE_TOO_LARGE",
]
STOPS = [code for code, row in CATALOGUE.items() if row.stops_as is not None]
UNIT, E2E, QA = "UNIT_TEST_FAILED", "E2E_TEST_FAILED", "QA_REJECTED"


# --- a role's attempts -----------------------------------------------------------------------------------------------


@pytest.mark.spec("RUN-4")
@pytest.mark.parametrize("code", ROLE_FAILURES)
def test_a_role_is_called_twice_and_the_second_call_gets_the_first_failure(code: str) -> None:
    assert after_failure([code], 2) == TryAgain(attempt=2, feedback=code)
    assert after_failure([code, code], 2) == StopRun("RETRY_LIMIT_EXCEEDED", cause=code)


@pytest.mark.spec("RUN-4")
@pytest.mark.parametrize(
    ("failures", "attempts", "expected"),
    [
        ([UNIT, QA], 2, StopRun(QA)),
        ([QA, UNIT], 2, StopRun(UNIT)),
        ([UNIT], 1, StopRun(UNIT)),
        ([UNIT], 3, TryAgain(2, UNIT)),
        ([UNIT, QA], 3, TryAgain(3, QA)),
        ([UNIT, UNIT, UNIT], 3, StopRun("RETRY_LIMIT_EXCEEDED", UNIT)),
        ([QA, UNIT, UNIT], 3, StopRun(UNIT)),
        ([UNIT, UNIT, QA], 3, StopRun(QA)),
        # a limit that was lowered meanwhile
        ([UNIT, UNIT, UNIT], 2, StopRun("RETRY_LIMIT_EXCEEDED", UNIT)),
    ],
)
def test_different_failures_stop_with_the_last_and_the_limit_is_a_setting(
    failures: list[str], attempts: int, expected: TryAgain | StopRun
) -> None:
    assert after_failure(failures, attempts) == expected


@pytest.mark.spec("RUN-4", "RUN-13")
@pytest.mark.parametrize("code", ["NEEDS_CLARIFICATION", "AGENT_QUOTA"])
def test_a_question_and_an_exhausted_quota_stop_the_run_and_are_no_attempt(code: str) -> None:
    assert after_failure([code], 2) == StopRun(code)
    assert after_failure([UNIT, code], 2) == StopRun(code)
    assert after_failure([code, UNIT], 2) == TryAgain(2, UNIT)
    assert after_failure([code, code, UNIT, code, UNIT], 2) == StopRun("RETRY_LIMIT_EXCEEDED", UNIT)


@pytest.mark.spec("RUN-4", "RUN-5", "RUN-12", "LCK-3")
def test_only_what_the_role_did_wrong_is_tried_again() -> None:
    for code in STOPS:
        expected = TryAgain(2, code) if code in ROLE_FAILURES else StopRun(code)
        assert after_failure([code], 2) == expected


@pytest.mark.spec("RUN-4", "RUN-14")
@settings(max_examples=30)
@given(st.lists(st.sampled_from(STOPS), min_size=1, max_size=6), st.integers(1, 4))
def test_no_visit_goes_on_for_ever(failures: list[str], role_attempts: int) -> None:
    decision = after_failure(failures, role_attempts)
    counted = [code for code in failures if code not in ("NEEDS_CLARIFICATION", "AGENT_QUOTA")]
    if isinstance(decision, TryAgain):
        assert decision.attempt == len(counted) + 1 <= role_attempts
        assert decision.feedback == failures[-1]
    elif decision.cause is not None:
        assert decision.reason_code == "RETRY_LIMIT_EXCEEDED"
        assert set(counted) == {decision.cause}
        assert len(counted) >= max(2, role_attempts)
    else:
        assert decision.reason_code == failures[-1]


# --- steps and issues ------------------------------------------------------------------------------------------------


@pytest.mark.spec("RUN-4")
def test_a_step_is_retried_three_times_and_not_a_fourth() -> None:
    assert [may_retry_step(retries, 3) for retries in range(5)] == [True, True, True, False, False]
    assert not may_retry_step(0, 0)


@pytest.mark.spec("ISS-7")
def test_an_issue_runs_once_and_is_retried_five_times() -> None:
    assert [may_retry_issue(headers, 5) for headers in range(8)] == [True] * 6 + [False] * 2


@pytest.mark.spec("ISS-7")
def test_only_a_higher_setting_lifts_the_limit_of_an_issue() -> None:
    assert not may_retry_issue(6, 5)
    assert may_retry_issue(6, 6)
    assert may_retry_issue(0, 0)
    assert not may_retry_issue(1, 0)


# --- when the plan must change ---------------------------------------------------------------------------------------


def stop(code: str, lines: int = 0, areas: str = "", cause: str | None = None) -> StepStop:
    return StepStop(code, cause, lines, frozenset(areas.split()))


@pytest.mark.spec("RUN-5")
@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ("", None),
        ("UNIT_TEST_FAILED", None),
        ("STEP_TOO_LARGE", ReplanSignal.STEP_TOO_LARGE),
        ("UNIT_TEST_FAILED STEP_TOO_LARGE", ReplanSignal.STEP_TOO_LARGE),
        ("STEP_TOO_LARGE STEP_TOO_LARGE", ReplanSignal.STEP_TOO_LARGE),
        ("STEP_TOO_LARGE UNIT_TEST_FAILED", None),
        ("UNIT_TEST_FAILED UNIT_TEST_FAILED", ReplanSignal.SAME_REASON_TWICE),
        ("QA_REJECTED UNIT_TEST_FAILED UNIT_TEST_FAILED", ReplanSignal.SAME_REASON_TWICE),
        ("UNIT_TEST_FAILED QA_REJECTED", None),
        ("UNIT_TEST_FAILED QA_REJECTED UNIT_TEST_FAILED", None),
        ("UNIT_TEST_FAILED UNIT_TEST_FAILED QA_REJECTED", None),
    ],
)
def test_too_large_or_twice_in_a_row_for_the_same_reason(codes: str, expected: ReplanSignal | None) -> None:
    assert replan_signal([stop(code) for code in codes.split()]) is expected


@pytest.mark.spec("RUN-4", "RUN-5")
@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (UNIT, UNIT, ReplanSignal.SAME_REASON_TWICE),
        (QA, QA, ReplanSignal.SAME_REASON_TWICE),
        (UNIT, QA, None),
        (QA, "STEP_TOO_LARGE", ReplanSignal.STEP_TOO_LARGE),
    ],
)
def test_a_reached_limit_counts_as_its_cause(first: str, second: str, expected: ReplanSignal | None) -> None:
    limit = "RETRY_LIMIT_EXCEEDED"
    assert replan_signal([stop(limit, cause=first), stop(limit, cause=second)]) is expected
    assert replan_signal([stop(first), stop(limit, cause=second)]) is expected


@pytest.mark.spec("RUN-5", "RUN-10", "RUN-11", "RUN-12", "RUN-13")
@pytest.mark.parametrize(
    "code",
    [
        "NEEDS_CLARIFICATION",
        "AGENT_QUOTA",
        "CANCELLED",
        "PROCESS_CRASHED",
        "RUN_LOST",
        "LOCK_LOST",
        "WORKTREE_DIRTY",
        "DOCTOR_FAILED",
        "DISK_FULL",
        "IO_ERROR",
        "SETTINGS_INVALID",
        "NETWORK_FILE_SYSTEM",
        "AGENT_AUTH_REQUIRED",
        "COST_LIMIT_REACHED",
    ],
)
def test_what_is_not_the_steps_doing_says_nothing_about_its_plan(code: str) -> None:
    assert replan_signal([stop(code), stop(code), stop(code)]) is None
    assert replan_signal([stop(UNIT), stop(code)]) is None
    assert replan_signal([stop(UNIT), stop(code), stop(UNIT)]) is ReplanSignal.SAME_REASON_TWICE
    assert replan_signal([stop("STEP_TOO_LARGE"), stop(code)]) is ReplanSignal.STEP_TOO_LARGE


@pytest.mark.spec("RUN-5")
@pytest.mark.parametrize("targets", [(), ("",), (".",), ("./",), ("*",), ("**",), ("**/*",), ("/",), ("src/a.py", ".")])
def test_a_diff_that_doubles_while_the_targets_hold_nothing_back(targets: tuple[str, ...]) -> None:
    assert replan_signal([stop(UNIT, 100), stop(QA, 200)], targets) is ReplanSignal.DIFF_EXPLODES
    assert replan_signal([stop(UNIT, 100), stop(QA, 199)], targets) is None
    assert replan_signal([stop(UNIT, 0), stop(QA, 500)], targets) is None
    assert replan_signal([stop(QA, 500)], targets) is None


@pytest.mark.spec("RUN-5")
@pytest.mark.parametrize("targets", [("src/a.py",), ("src/", "tests/"), ("src/**",)])
def test_a_diff_that_doubles_within_narrow_targets_is_left_alone(targets: tuple[str, ...]) -> None:
    assert replan_signal([stop(UNIT, 100), stop(QA, 900)], targets) is None


@pytest.mark.spec("RUN-5")
@pytest.mark.parametrize(
    ("areas", "expected"),
    [
        (("ui server", "ui server", "ui runner"), ReplanSignal.MIXED_STEP),
        (("ui", "ui server", "ui server", "ui server"), ReplanSignal.MIXED_STEP),
        (("ui server", "ui server"), None),
        (("ui server", "ui", "ui server"), None),
        (("ui server", "ui server", "ui server", "ui"), None),
        (("ui", "ui", "ui"), None),
    ],
)
def test_a_mixed_step_that_does_not_converge_in_three_stops(
    areas: tuple[str, ...], expected: ReplanSignal | None
) -> None:
    codes = [UNIT, QA, E2E, UNIT]
    stops = [stop(code, areas=each) for code, each in zip(codes, areas, strict=False)]
    assert replan_signal(stops, ("src/a.py",)) is expected
