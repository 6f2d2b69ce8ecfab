"""Undoing an acceptance (REQ-6): what a run knows of that, and what happens to it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from aiflow.domain.lifecycle import RunEvent
from aiflow.domain.runs.events import failure, happen, noted

if TYPE_CHECKING:
    from datetime import datetime

    from aiflow.domain.runs.merge import Landing
    from aiflow.domain.runs.run import Run, RunError

ACCEPTANCE_UNDONE = "ACCEPTANCE_UNDONE"
# Lines of the history that change no state: the tests of the base without the work begin; it stays accepted.
UNDOING = "UNDOING"
KEPT = "KEPT"


def undone_of(run: Run) -> Landing | None:
    """Return how a run's work had come into the base branch, if it was taken out again and not brought back since."""
    return None if run.accepted_as else run.landing


def is_undone(run: Run) -> bool:
    """Return whether a run waits because its acceptance was undone."""
    return run.error is not None and run.error.reason_code == ACCEPTANCE_UNDONE


def undoing(run: Run, now: datetime, place: str | None = None) -> Run:
    """The run's work is taken out of the base branch, and the tests of that begin (`place` as for `accepting`)."""
    return noted(run, UNDOING, now, note=place)


def not_undone(run: Run, why: RunError, now: datetime) -> Run:
    """The run's work could not be taken out: it stays accepted."""
    return noted(run, KEPT, now, why.reason_code, why.summary or None)


def undone(run: Run, landing: Landing | None, now: datetime) -> Run:
    """The run's work is out of the base branch again, or nothing of it ever was in (no `landing`): it waits."""
    commit = landing.undone_as if landing else None
    facts = (("branch", run.place.branch), ("base", run.place.base_branch), ("commit", (commit or "")[:12]))
    error = replace(failure(run, ACCEPTANCE_UNDONE, ""), facts=facts)
    out = replace(run, accepted_as=None, merging_as=None, landing=landing, error=error)
    return happen(out, RunEvent.UNDONE, now, ACCEPTANCE_UNDONE, commit)
