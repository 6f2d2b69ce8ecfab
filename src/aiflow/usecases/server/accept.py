"""Accept from the page (REQ-6, GIT-3): in a process of its own, for the merge is tested and that may take minutes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.lifecycle import RunEvent
from aiflow.errors import AiflowError
from aiflow.usecases.runs.find import find_newest_run
from aiflow.usecases.runs.report import message_facts
from aiflow.usecases.server.orders import accept_line
from aiflow.usecases.server.start_work import MOMENT_SECONDS

if TYPE_CHECKING:
    from datetime import datetime

    from aiflow.domain.request import RequestId
    from aiflow.domain.runs.run import Run
    from aiflow.usecases.engine import Engine
    from aiflow.usecases.server.start_work import Entry, WorkStarter

# What every message may need, and no error of an acceptance is about.
_NOT_TOLD = ("setting", "endpoint", "question")


def accept(
    engine: Engine, work: WorkStarter, request_id: RequestId, person: str, seconds: float = MOMENT_SECONDS
) -> tuple[Run, Entry | None]:
    """Have a request's last attempt accepted: return it with the result, None while that is in progress."""
    run = find_newest_run(engine, request_id)
    answer = work.perform(accept_line(engine, request_id), person, seconds)
    if answer is not None and answer.get("accepted_as") is None:
        raise _refusal(engine, find_newest_run(engine, request_id), str(answer.get("reason_code")))
    return run, answer


def is_accepting(engine: Engine, work: WorkStarter, request_id: RequestId) -> bool:
    """Return whether a worker accepts a request now: one of this server, or one that outlived the server before."""
    line = accept_line(engine, request_id)
    return any(worker.argv[-len(line) :] == line for worker in work.at_work())


def refusal_since(engine: Engine, run: Run, since: datetime) -> AiflowError | None:
    """Return why a run was not accepted when that was last tried since a moment, as its record says."""
    last = run.history[-1] if run.history else None
    if last is None or run.error is None or last.event != RunEvent.NOT_ACCEPTED or last.at < since:
        return None
    return _refusal(engine, run, run.error.reason_code)


def _refusal(engine: Engine, run: Run, code: str) -> AiflowError:
    """Say why the run is not accepted, as its record does."""
    facts = message_facts(run, run.error, engine.voice.texts) if run.error else {"request_id": run.request_id}
    return AiflowError(
        reason_code=code, **{name: fact for name, fact in facts.items() if name not in _NOT_TOLD and fact}
    )
