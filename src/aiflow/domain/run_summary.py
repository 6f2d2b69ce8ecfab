"""A run as the rest of the house sees it, and which of a request's runs speaks for it (SEL-4)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.lifecycle import ACTIVE_RUN_STATES, RUN_TRANSITIONS, RunState

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# The format of `stage.json`. A newer one, or a state or step that is not known here, only a newer aiflow can follow.
STAGE_VERSION = "1.0"
FROM_NEWER = "RUN_FROM_NEWER_VERSION"


class TaskRef(NamedTuple):
    """The task of the queue that a run is, or was last, worked on for."""

    namespace: str
    task_id: str


class RoleSpent(NamedTuple):
    """What one role of a run used."""

    role: str
    calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    seconds: float = 0.0


class RunRecord(NamedTuple):
    """What a list of runs shows besides: when it began, how long it was worked on, what its agents used.

    `is_accepted` of one whose work is in the base branch; `pull_url` is the pull request that shows it; `roles` is what
    each role used, as far as that was recorded.
    """

    created_at: datetime | None
    worked_seconds: float
    cost_usd: float = 0.0
    tokens: int = 0
    agent_calls: int = 0
    agent_seconds: float = 0.0
    is_accepted: bool = False
    pull_url: str | None = None
    roles: tuple[RoleSpent, ...] = ()


class RunSummary(NamedTuple):
    """What selection, `why` and the lists need to know of one run; the record only where runs are listed.

    `merging_as` is the merge that was to be the base's when an acceptance was last at work, while no record says that
    it became that.
    """

    run_id: str
    state: RunState
    reason_code: str | None = None
    cause: str | None = None
    changed_at: datetime | None = None
    way_on: str | None = None
    task: TaskRef | None = None
    record: RunRecord | None = None
    merging_as: str | None = None

    @property
    def why(self) -> str | None:
        """Why it stopped: the reason itself, or what a reached limit was caused by."""
        return self.cause if self.reason_code == "RETRY_LIMIT_EXCEEDED" and self.cause else self.reason_code

    @property
    def is_active(self) -> bool:
        """Whether the run is still working."""
        return self.state in ACTIVE_RUN_STATES

    @property
    def is_waiting(self) -> bool:
        """Whether the run stopped and waits for a person."""
        return self.state is RunState.NEEDS_INPUT


def made_at(run_id: str) -> datetime | None:
    """Read from a run's id when it began (SPEC §1); None if it does not say."""
    try:
        return datetime.strptime(run_id[4:19], "%Y%m%d-%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return None


# After these events a run is worked on; after all others it rests, until a person or process continues it.
WORKING = frozenset(event.value for (_, event), target in RUN_TRANSITIONS.items() if target in ACTIVE_RUN_STATES)
RESTING = frozenset(event.value for _, event in RUN_TRANSITIONS) - WORKING


def working_times(created_at: datetime, history: Iterable[tuple[datetime, str]]) -> Iterator[float]:
    """Yield for each line of a history the seconds of work before it: while a run waits for a person there are none."""
    before, is_resting = created_at, False
    for at, event in history:
        yield 0.0 if is_resting else max(0.0, (at - before).total_seconds())
        before, is_resting = at, event in RESTING


def worked_seconds(created_at: datetime, history: Iterable[tuple[datetime, str]]) -> float:
    """Return how long a run was worked on by its history."""
    return round(sum(working_times(created_at, history)), 3)


class RunList(NamedTuple):
    """Runs with the requests they belong to, how many there are in all, and where the next page begins, if one does."""

    runs: tuple[tuple[str, RunSummary], ...]
    total: int
    next_after: str | None = None


# Nothing is left of a request's run: a person has to say that it may begin again (REQ-5, AUT-3).
LOST = "RUN_LOST"
# Its auto-run's terminal was closed, or the machine went down: the next auto-run continues it (AUT-4).
CUT_OFF = "AUTO_CUT_OFF"
# A run that was closed in favour of another one, or lost, has nothing more to say once there is a newer one.
_CLOSED = ("REPLANNED", "SENT_BACK", LOST)
_PREFERENCE = {RunState.NEEDS_INPUT: 1, RunState.FAILED: 2, RunState.DONE: 3}


def is_lost(latest: RunSummary | None) -> bool:
    """Return whether nothing is left of the run of a `running` request: none is there, or only older ones (REQ-5).

    One that was sent back no longer counts: a run that claimed the request since then is lost.
    """
    return latest is None or latest.reason_code in (LOST, "SENT_BACK")


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
