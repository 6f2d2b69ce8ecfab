"""Health (DOC-1): any FAIL is FAIL, and only FAIL keeps a run from starting."""

from __future__ import annotations

import itertools

import pytest

from aiflow.domain.health import Finding, Health, may_start, overall


def findings(*verdicts: Health) -> list[Finding]:
    return [Finding(f"check-{number}", verdict) for number, verdict in enumerate(verdicts)]


@pytest.mark.spec("DOC-1")
@pytest.mark.parametrize("length", range(4))
def test_the_worst_verdict_counts_wherever_it_stands(length: int) -> None:
    for verdicts in itertools.product(Health, repeat=length):
        worst = next((health for health in ("FAIL", "WARN") if health in verdicts), "PASS")
        assert overall(findings(*verdicts)) == worst
        assert may_start(findings(*verdicts)) == ("FAIL" not in verdicts)


@pytest.mark.spec("DOC-1")
def test_findings_may_come_one_by_one() -> None:
    assert overall(iter(findings(Health.WARN, Health.FAIL))) is Health.FAIL
    assert may_start(iter(findings(Health.WARN, Health.WARN)))
