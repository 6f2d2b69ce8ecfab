"""What `/metrics` counts: sums over runs, each counted by its current state, and what the journal recorded."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.activity import ActivityKind
from aiflow.domain.agents.usage import Usage
from aiflow.domain.lifecycle import RunEvent
from aiflow.domain.run_summary import working_times

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiflow.domain.runs.run import Run

LOCK_RECOVERED = "LOCK_STALE_RECOVERED"


class RunFigures(NamedTuple):
    """One run in figures."""

    outcome: str
    reason_code: str
    usage: Usage
    steps: int
    step_seconds: float
    worked_seconds: float


def figures_of(run: Run) -> RunFigures:
    """Return a run in figures; working time counts for a step while the run is in one."""
    times = list(working_times(run.created_at, ((line.at, line.event) for line in run.history)))
    in_steps = sum(seconds for seconds, line in zip(times, run.history, strict=True) if line.step_id)
    return RunFigures(
        outcome="ACCEPTED" if run.accepted_as else run.state.value,
        reason_code=run.error.reason_code if run.error else "",
        usage=run.usage,
        steps=sum(line.event == RunEvent.STEP_DONE for line in run.history),
        step_seconds=round(in_steps, 3),
        worked_seconds=round(sum(times), 3),
    )


@dataclass(slots=True)
class Measures:
    """What has been counted so far, and up to which place of the journal."""

    cursor: str | None = None
    runs: dict[str, RunFigures] = field(default_factory=dict)
    recoveries: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)

    def hear(self, entry: Mapping[str, object]) -> tuple[str, str] | None:
        """Count an entry of the journal; return the run that it changed, if it is about one."""
        code = str(entry.get("reason_code") or "")
        if entry.get("kind") == ActivityKind.RECOVERY:
            self.recoveries[code] += 1
        elif entry.get("kind") == ActivityKind.REFUSAL:
            self.refusals[code] += 1
        request_id, run_id = entry.get("request_id"), entry.get("run_id")
        return (request_id, run_id) if isinstance(request_id, str) and isinstance(run_id, str) else None

    @property
    def outcomes(self) -> Counter[tuple[str, str]]:
        """How many runs there are of each outcome and reason."""
        return Counter((run.outcome, run.reason_code) for run in self.runs.values())

    @property
    def usage(self) -> Usage:
        """What all agents used together."""
        return sum((run.usage for run in self.runs.values()), Usage())
