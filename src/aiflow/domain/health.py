"""Health (DOC-1): findings in, one verdict out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aiflow.domain.next_action import NextAction


class Health(StrEnum):
    """The verdict of one check, and of all together."""

    PASS = "PASS"  # noqa: S105
    WARN = "WARN"
    FAIL = "FAIL"


_WEIGHT = {Health.PASS: 0, Health.WARN: 1, Health.FAIL: 2}


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found, and what fixes it; `message` is the key of a text, the facts fill it."""

    check_id: str
    health: Health
    reason_code: str | None = None
    message: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    evidence: tuple[str, ...] = ()
    fix: NextAction | None = None


def overall(findings: Iterable[Finding]) -> Health:
    """Return the worst verdict; no findings is a pass."""
    return max((finding.health for finding in findings), key=_WEIGHT.__getitem__, default=Health.PASS)


def may_start(findings: Iterable[Finding]) -> bool:
    """Return whether a run or auto-run may start: anything but FAIL (RUN-7, AUT-1)."""
    return overall(findings) is not Health.FAIL
