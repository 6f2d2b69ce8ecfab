"""What became of a run, as the morning shows it: one word for a bar of the night and for a day's column."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from aiflow.domain.lifecycle import RunOutcome, RunState, outcome_of
from aiflow.domain.run_summary import LOST

if TYPE_CHECKING:
    from aiflow.domain.run_summary import RunSummary


class RunFate(StrEnum):
    """What became of a run: done and accepted, or stopped and waiting, and so on."""

    DONE = "done"
    WAITS = "waits"
    CONTINUES = "continues"
    FAILED = "failed"
    RUNNING = "running"
    CANCELLED = "cancelled"
    REPLACED = "replaced"
    SENT_BACK = "sent_back"


REPLANNED = "REPLANNED"
_FATES = {
    RunOutcome.ACTIVE: RunFate.RUNNING,
    RunOutcome.ACCEPTED: RunFate.DONE,
    RunOutcome.AWAITING_ACCEPTANCE: RunFate.WAITS,
    RunOutcome.NEEDS_INPUT: RunFate.WAITS,
    RunOutcome.CANCELLED: RunFate.CANCELLED,
    RunOutcome.FAILED: RunFate.FAILED,
    RunOutcome.SENT_BACK: RunFate.SENT_BACK,
}


def fate_of(state: RunState, reason_code: str | None = None, *, is_accepted: bool = False) -> RunFate:
    """Name what became of a run; `is_accepted` even if a person closed its request without aiflow."""
    if state is RunState.FAILED and reason_code == REPLANNED:
        return RunFate.REPLACED
    return _FATES[outcome_of(state, reason_code, is_accepted=is_accepted)]


def fate_of_summary(run: RunSummary, *, is_closed: bool) -> RunFate:
    """Name what became of a run that was summed up; `is_closed` of one whose request is done."""
    is_accepted = is_closed or (run.record is not None and run.record.is_accepted)
    return fate_of(run.state, run.reason_code, is_accepted=is_accepted)


def is_counted(run: RunSummary) -> bool:
    """Return whether anything is known of a run: of one whose files are gone there is nothing to show."""
    return not (run.reason_code == LOST and run.record is None)
