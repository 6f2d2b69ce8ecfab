"""Accept everything that waits for acceptance (CLI `accept --all`; REQ-6): one after the other, the oldest first."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.lifecycle import RunState
from aiflow.domain.request import RequestStatus
from aiflow.domain.runs.undoing import is_undone
from aiflow.errors import AiflowError
from aiflow.usecases.runs.accept import accept_run
from aiflow.usecases.runs.find import newest_run
from aiflow.usecases.runs.update import accept_updated

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiflow.domain.runs.run import Run
    from aiflow.usecases.engine import Engine


class Verdict(NamedTuple):
    """What became of one run: as it is now, or the error for which it was not even tried."""

    run: Run
    error: AiflowError | None = None

    @property
    def reason_code(self) -> str | None:
        """Why it was not accepted; None if it was."""
        if self.error is not None:
            return self.error.reason_code
        if self.run.accepted_as:
            return None
        return self.run.error.reason_code if self.run.error else "CANCELLED"


def accept_all(engine: Engine, *, is_updating: bool = False) -> Iterator[Verdict]:
    """Accept each run that waits for it, and yield what became of it; one that cannot be stops no other."""
    accept = accept_updated if is_updating else accept_run
    for run in awaiting_acceptance(engine):
        if engine.voice.interrupted():
            return
        try:
            yield Verdict(accept(engine, run))
        except AiflowError as error:
            yield Verdict(run, error)


def _is_waiting(run: Run) -> bool:
    return run.state is RunState.DONE and not run.accepted_as and not is_undone(run)


def awaiting_acceptance(engine: Engine) -> tuple[Run, ...]:
    """Return the finished runs that wait for a person, in the order in which they began.

    One that was accepted and undone is not among them: a person has to ask for it again.
    """
    requests, _ = engine.source.load_all()
    blocked = (request.id for request in requests if request.status is RequestStatus.BLOCKED)
    found = (newest_run(engine, request_id) for request_id in blocked)
    waiting = (run for run in found if run is not None and _is_waiting(run))
    return tuple(sorted(waiting, key=lambda run: (run.created_at, run.run_id)))
