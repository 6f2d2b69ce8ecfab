"""Answer an issue from here (ISS-6): the words are posted on it with `/retry`, once, and the stopped run is closed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.agents.choices import picked
from aiflow.domain.issue_ways import answer as retry
from aiflow.domain.issue_ways import is_issue
from aiflow.domain.request import RequestId
from aiflow.errors import ConflictError
from aiflow.usecases.runs.accept import send_back
from aiflow.usecases.runs.find import newest_run_id
from aiflow.usecases.runs.start import start_run

if TYPE_CHECKING:
    from aiflow.domain.claims import Refusal
    from aiflow.domain.runs.run import Run
    from aiflow.usecases.engine import Engine

# Something else has the checkout, or the issue: the next run starts in its turn, or has started.
LATER = frozenset({"RUN_IN_PROGRESS", "QUEUE_IN_PROGRESS", "REQUEST_LOCKED"})


def is_answered_there(run: Run, answer: str | None) -> bool:
    """Return whether an answer to a run is posted on its issue; a run that was interrupted continues itself."""
    return is_issue(run.request_id) and not run.is_active and bool((answer or "").strip())


def answer_issue(engine: Engine, run: Run, answer: str) -> Run:
    """Post an answer on the issue of a stopped run; one that was posted is not posted again."""
    comment = picked(answer, run.error.choices if run.error else ()).strip()
    if _was_answered(engine, run, comment):
        return run
    return send_back(engine, run, comment)


def try_again(engine: Engine, run: Run, answer: str) -> Run:
    """Answer an issue and start its next run; where something else runs, that one starts in its turn (ISS-6)."""
    closed = answer_issue(engine, run, answer)
    try:
        return start_run(engine, RequestId(run.request_id))
    except ConflictError as error:
        if error.reason_code not in LATER:
            raise
        engine.voice.warn(engine.voice.texts("issues.answered.later", request_id=run.request_id))
        return closed


def retried_only(request_id: RequestId, refusal: Refusal) -> ConflictError:
    """Say why a stopped run may not continue, and how its issue is tried again instead."""
    commands = (retry(request_id),) if is_issue(request_id) else ()
    facts = dict(refusal.facts)
    return ConflictError(reason_code=refusal.reason_code, request_id=request_id, commands=commands, **facts)


def _was_answered(engine: Engine, run: Run, comment: str) -> bool:
    """Return whether a newer run began with this same answer: somebody pressed twice."""
    newest = newest_run_id(engine, RequestId(run.request_id)) or run.run_id
    error = run.error
    return newest > run.run_id and error is not None and (error.reason_code, error.summary) == ("SENT_BACK", comment)
