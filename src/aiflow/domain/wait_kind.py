"""What a request waits for, if it waits for a person: derived from the run that speaks for it."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from aiflow.domain.lifecycle import RunState
from aiflow.domain.reasons import WayOn, way_on

if TYPE_CHECKING:
    from aiflow.domain.run_summary import RunSummary


class WaitKind(StrEnum):
    """For what a request waits, in the order in which it is shown."""

    QUESTION = "question"
    STOPPED = "stopped"
    ACCEPTANCE = "acceptance"


def kind_of(latest: RunSummary | None) -> WaitKind:
    """Return what a request waits for, by the run that represents it."""
    if latest is None or latest.is_active:
        return WaitKind.STOPPED
    if latest.state is RunState.DONE:
        return WaitKind.ACCEPTANCE
    is_asked = latest.reason_code is not None and way_on(latest.reason_code, latest.cause) is WayOn.ANSWER
    return WaitKind.QUESTION if is_asked and latest.is_waiting else WaitKind.STOPPED
