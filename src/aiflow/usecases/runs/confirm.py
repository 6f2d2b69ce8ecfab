"""One more look at a request just before a run's first agent call (ISS-3): no agent is called for unwanted work.

Its source decides. One that cannot be asked is asked again for a while: nothing is called on a guess.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from aiflow.domain.reasons import reason_for
from aiflow.domain.request import RequestId
from aiflow.domain.runs.events import failure, stopped
from aiflow.errors import AiflowError
from aiflow.usecases.runs.ending import end_run
from aiflow.usecases.runs.work import SECONDS_OVER

if TYPE_CHECKING:
    from aiflow.domain.claims import Refusal
    from aiflow.usecases.runs.work import Work

# How often a source that does not answer is asked again, and how often a person's cancel is heard meanwhile.
ASK_SECONDS, EAR_SECONDS = 15.0, 0.2


def may_call(work: Work) -> bool:
    """Return whether agents may be called for this run; asked once, and a run that may not begin is ended here."""
    if work.is_confirmed:
        return True
    refusal = _ask(work)
    if work.should_stop():  # the loop sees why
        return False
    if refusal is None:
        work.is_confirmed = True
        return True
    why = failure(work.run, refusal.reason_code, "")
    end_run(work, stopped(work.run, replace(why, facts=refusal.facts), work.engine.time.now()))
    return False


def _ask(work: Work) -> Refusal | None:
    """Ask the source; one that cannot be asked gets a third of the lock's TTL, so that others still see us at work."""
    time = work.engine.time
    until = time.monotonic() + work.engine.settings.number("locks.ttl_seconds") / 3
    while True:
        try:
            return work.engine.source.confirm(RequestId(work.run.request_id), work.run.run_id)
        except AiflowError as error:
            if not reason_for(error.reason_code).is_retryable or time.monotonic() >= until or work.should_stop():
                raise
        _wait(work, min(until, time.monotonic() + ASK_SECONDS))


def _wait(work: Work, until: float) -> None:
    time = work.engine.time
    while (left := until - time.monotonic()) > 0 and not work.should_stop():
        work.lease.allow(min(left, EAR_SECONDS) + SECONDS_OVER)
        time.sleep(min(left, EAR_SECONDS))
