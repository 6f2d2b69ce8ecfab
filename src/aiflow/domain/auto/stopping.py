"""When auto-run stops (AUT-2, AUT-3): a person asks for it, a ceiling is reached, or nothing could succeed any more."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from aiflow.domain.agents.ceilings import Ceiling, Ceilings, reached
from aiflow.domain.health import Health
from aiflow.domain.run_summary import CUT_OFF, LOST

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiflow.domain.auto.session import AutoSession
    from aiflow.domain.request import RequestId
    from aiflow.domain.run_summary import RunSummary

# A request that is sent back again and again is not worked on for ever (RUN-14).
MOST_RUNS_EACH = 3


# Nothing is wrong with the request: whatever is started next would meet the same (RUN-13, RUN-17).
_MET_AGAIN = frozenset(
    {"AGENT_AUTH_REQUIRED", "AGENT_NOT_FOUND", "AGENT_QUOTA", "AGENT_SANDBOX_MISSING", "BASE_TESTS_FAILED"}
)


class StopRequest(StrEnum):
    """What was asked of a running auto-run, weakest first: by a person, or by whatever ends its process (`CUT_OFF`)."""

    NONE = "none"
    AFTER_RUN = "after_run"
    CUT_OFF = "cut_off"
    NOW = "now"


_STRENGTH = {wish: strength for strength, wish in enumerate(StopRequest)}


def strongest(*wishes: StopRequest) -> StopRequest:
    """Return the wish that counts of several: now outranks after the run."""
    return max(wishes, key=_STRENGTH.__getitem__, default=StopRequest.NONE)


@dataclass(frozen=True, slots=True)
class Limits:
    """When auto-run stops automatically; 0 is never. After `until` it starts no further run."""

    stop_after_needs_input: int = 2
    stop_after_failed: int = 1
    session_runs: int = 0
    session_minutes: int = 0
    session_cost_usd: float = 0
    session_tokens: int = 0
    session_agent_calls: int = 0
    until: datetime | None = None

    @property
    def ceilings(self) -> Ceilings:
        """What agents may use in the session; its time is the session's own, not theirs."""
        return Ceilings(self.session_cost_usd, self.session_tokens, self.session_agent_calls)


def barred(session: AutoSession, latest: Mapping[RequestId, RunSummary]) -> frozenset[str]:
    """Return the requests that the session does not pick any more, ready or not, from their latest runs (AUT-2).

    What it brought to an end has had its run: a file that says `ready` again may come from a stash or another branch.
    Only to send a run back is a person's wish for a further one, within bounds (RUN-14).
    """
    runs = Counter(result.request_id for result in session.results if result.reason_code != LOST)
    sent_back = {request_id for request_id, run in latest.items() if run.reason_code == "SENT_BACK"}
    ended = (each for each, count in runs.items() if count >= (MOST_RUNS_EACH if each in sent_back else 1))
    return session.not_again.union(ended)


def why_stop(session: AutoSession, limits: Limits, now: datetime, health: Health = Health.PASS) -> str | None:
    """Return the reason code for which auto-run stops now, before the next selection, or None to continue (AUT-3)."""
    elapsed = session.spent + (now - session.started_at)
    checks = (
        (session.stop_request is StopRequest.CUT_OFF, CUT_OFF),
        (session.stop_request is not StopRequest.NONE, "AUTO_STOPPED_BY_PERSON"),
        (health is Health.FAIL, "DOCTOR_FAILED"),
        (_met_again(session) is not None, _met_again(session) or ""),
        (_reached(session.failed_in_a_row, limits.stop_after_failed), "AUTO_FAILED_LIMIT"),
        (_reached(session.needs_input_in_a_row, limits.stop_after_needs_input), "AUTO_NEEDS_INPUT_LIMIT"),
        (_reached(session.runs, limits.session_runs), "AUTO_RUNS_LIMIT"),
        (_reached(elapsed / timedelta(minutes=1), limits.session_minutes), "AUTO_MINUTES_LIMIT"),
        (limits.until is not None and now >= limits.until, "AUTO_UNTIL_REACHED"),
        *((reached(session.usage, limits.ceilings) is which, code) for which, code in _CEILING_CODES.items()),
    )
    return next((code for is_met, code in checks if is_met), None)


_CEILING_CODES = {
    Ceiling.COST: "AUTO_COST_LIMIT",
    Ceiling.TOKENS: "AUTO_TOKENS_LIMIT",
    Ceiling.CALLS: "AUTO_CALLS_LIMIT",
}


def _met_again(session: AutoSession) -> str | None:
    """Return why the last run stopped if the next would stop for it too: the agent, or the tests of the base."""
    code = session.results[-1].reason_code if session.results else None
    return code if code in _MET_AGAIN else None


def minutes_left(session: AutoSession, limits: Limits, now: datetime) -> float | None:
    """Return how long the session may still run; None is without a limit."""
    left = []
    if limits.session_minutes > 0:
        elapsed = session.spent + (now - session.started_at)
        left.append(limits.session_minutes - elapsed / timedelta(minutes=1))
    if limits.until is not None:
        left.append((limits.until - now) / timedelta(minutes=1))
    return max(0.0, min(left)) if left else None


def _reached(value: float, limit: float) -> bool:
    """Return whether a limit is set and reached."""
    return limit > 0 and value >= limit
