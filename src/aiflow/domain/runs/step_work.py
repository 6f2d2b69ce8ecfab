"""What became of one step of a run (RUN-3)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aiflow.domain.runs.step_record import StepRecord

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from aiflow.domain.runs.retry import StepStop


@dataclass(frozen=True, slots=True)
class StepWork:
    """What became of one step: the commit before it, its own, how often each role was called, where it stopped."""

    base: str | None = None
    commit: str | None = None
    is_done: bool = False
    summary: str = ""
    # How often it was done again after it had failed (RUN-4), and how often it started again from its beginning.
    retries: int = 0
    restarts: int = 0
    calls: Mapping[str, int] = field(default_factory=dict)
    stops: tuple[StepStop, ...] = ()
    # When its tests passed, once for each time they did.
    tested_at: tuple[datetime, ...] = ()
    kept: str | None = None
    sessions: Mapping[str, str] = field(default_factory=dict)
    # Only in a step that merges the base branch in (GIT-3): the base's commit, the files that conflict, and which of
    # them no marker shows.
    merges: str | None = None
    conflicts: tuple[str, ...] = ()
    unmarked: tuple[str, ...] = ()
    record: StepRecord = field(default_factory=StepRecord)
