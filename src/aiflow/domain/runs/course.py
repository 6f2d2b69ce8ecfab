"""What a run goes through besides the work itself (RUN-17, RUN-18): settled when it begins, the same after a crash."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Course:
    """Which parts a run has: tests of its base, a plan, reviews. A file that does not say is of an older aiflow."""

    has_baseline: bool = False
    has_plan: bool = True
    has_review: bool = True
