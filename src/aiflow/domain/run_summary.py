"""A run as the rest of the house sees it, and which of a request's runs speaks for it (SEL-4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.lifecycle import ACTIVE_RUN_STATES, RunState

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime


class TaskRef(NamedTuple):
    """The task of the queue that a run is, or was last, worked on for."""

    namespace: str
    task_id: str


class RunSummary(NamedTuple):
    """What selection, `why` and the lists need to know of one run."""

    run_id: str
    state: RunState
    reason_code: str | None = None
    cause: str | None = None
    changed_at: datetime | None = None
    way_on: str | None = None
    task: TaskRef | None = None

    @property
    def is_active(self) -> bool:
        """Whether the run is still working."""
        return self.state in ACTIVE_RUN_STATES

    @property
    def is_waiting(self) -> bool:
        """Whether the run stopped and waits for a person."""
        return self.state is RunState.NEEDS_INPUT


# A run that was closed in favour of another one, or lost, has nothing more to say once there is a newer one.
_CLOSED = ("REPLANNED", "SENT_BACK", "RUN_LOST")
_PREFERENCE = {RunState.NEEDS_INPUT: 1, RunState.FAILED: 2, RunState.DONE: 3}


def latest_run(runs: Iterable[RunSummary]) -> RunSummary | None:
    """Pick the run that speaks for a request: an active one, else the newest NEEDS_INPUT, FAILED, DONE (SEL-4)."""
    best: RunSummary | None = None
    newest_first = sorted(runs, key=lambda run: run.run_id, reverse=True)
    for number, run in enumerate(newest_first):
        if number > 0 and run.reason_code in _CLOSED:
            continue
        if best is None or _PREFERENCE.get(run.state, 0) < _PREFERENCE.get(best.state, 0):
            best = run
    return best
