"""Ask the doctor (DOC-1): quickly without changing anything, or fully, which puts right what a crash left."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.health import Finding, Health, overall
from aiflow.usecases.doctor.check_fully import check_full, look_for_crashes
from aiflow.usecases.health.check_health import check_quick

if TYPE_CHECKING:
    from aiflow.usecases.doctor.check_store import StoreLook
    from aiflow.usecases.engine import Engine


class Examination(NamedTuple):
    """Everything that was found, and what comes of it all."""

    findings: tuple[Finding, ...]
    verdict: Health

    @property
    def failed(self) -> Finding | None:
        """The first check that failed."""
        return next((finding for finding in self.findings if finding.health is Health.FAIL), None)


def examine(engine: Engine, look: StoreLook | None = None) -> Examination:
    """Check what a run needs; with a look at the stores, everything."""
    findings = [*check_quick(engine)[1], *look_for_crashes(engine)] if look is None else check_full(engine, look)
    return Examination(tuple(findings), overall(findings))
