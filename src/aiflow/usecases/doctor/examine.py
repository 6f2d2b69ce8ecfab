"""Ask the doctor (DOC-1): quickly without changing anything, or fully, which puts right what a crash left."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.health import Finding, Health, overall
from aiflow.usecases.doctor.check_fully import check_full, look_for_crashes
from aiflow.usecases.health.check_health import check_quick

if TYPE_CHECKING:
    from aiflow.usecases.doctor.check_store import StoreLook
    from aiflow.usecases.engine import Engine


# What is found about issues: with calls to GitHub, or only what this machine shows.
IssueFindings = Callable[[bool], Iterable[Finding]]
_NONE: IssueFindings = lambda _is_full: ()  # noqa: E731


class Examination(NamedTuple):
    """Everything that was found, and what comes of it all."""

    findings: tuple[Finding, ...]
    verdict: Health

    @property
    def failed(self) -> Finding | None:
        """The first check that failed."""
        return next((finding for finding in self.findings if finding.health is Health.FAIL), None)


def examine(engine: Engine, look: StoreLook | None = None, issues: IssueFindings = _NONE) -> Examination:
    """Check what a run needs; with a look at the stores, everything. `issues` says what was found about issues."""
    findings = [*check_quick(engine)[1], *look_for_crashes(engine)] if look is None else check_full(engine, look)
    findings = [*findings, *issues(look is not None)]
    return Examination(tuple(findings), overall(findings))
