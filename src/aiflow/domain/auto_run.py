"""Auto-run decisions (AUT-2 to AUT-4): go on or stop, from what happened so far in this session."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from aiflow.domain.health import Finding, Health
from aiflow.domain.lifecycle import (
    AUTO_RUN_TRANSITIONS,
    AutoRunEvent,
    AutoRunState,
    RunOutcome,
    RunState,
    advance,
    outcome_of,
)
from aiflow.domain.usage import Ceiling, Ceilings, Usage, reached

# In these states a process is at work: a session that was left in one of them was interrupted (AUT-4).
WORKING_STATES = frozenset(state for state, event in AUTO_RUN_TRANSITIONS if event is AutoRunEvent.STOPPED)
# A request that is ready again and again without having been sent back is not worked on for ever (RUN-14).
MOST_RUNS_EACH = 3
# Nothing is wrong with the request: whatever is started next would meet the same (RUN-13).
AGENT_UNUSABLE = frozenset({"AGENT_AUTH_REQUIRED", "AGENT_NOT_FOUND", "AGENT_QUOTA", "AGENT_SANDBOX_MISSING"})


class StopRequest(StrEnum):
    """What a person asked of a running auto-run."""

    NONE = "none"
    AFTER_RUN = "after_run"
    NOW = "now"


_STRENGTH = {wish: strength for strength, wish in enumerate(StopRequest)}


def strongest(*wishes: StopRequest) -> StopRequest:
    """Return the wish that counts of several: now outranks after the run."""
    return max(wishes, key=_STRENGTH.__getitem__, default=StopRequest.NONE)


@dataclass(frozen=True, slots=True)
class Limits:
    """When auto-run stops by itself; 0 is never."""

    stop_after_needs_input: int = 2
    stop_after_failed: int = 1
    session_runs: int = 0
    session_minutes: int = 0
    session_cost_usd: float = 0
    session_tokens: int = 0
    session_agent_calls: int = 0

    @property
    def ceilings(self) -> Ceilings:
        """What agents may use in the session; its time is the session's own, not theirs."""
        return Ceilings(self.session_cost_usd, self.session_tokens, self.session_agent_calls)


@dataclass(frozen=True, slots=True)
class Started:
    """What auto-run began and has not counted yet: a newer run of that request than `newest_before` is the one."""

    request_id: str
    newest_before: str | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one request in this session; without a run id it could not even be started."""

    request_id: str
    run_id: str | None
    outcome: RunOutcome
    reason_code: str | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """One auto-run with its counters; they survive a crash of its process (AUT-4).

    `started_at` is when this process took it up, `spent` what earlier processes of it worked; `state`, `reason_code`
    say where it stands and why it ended.
    """

    started_at: datetime
    runs: int = 0
    done: int = 0
    needs_input_in_a_row: int = 0
    failed_in_a_row: int = 0
    usage: Usage = field(default_factory=Usage)
    not_again: frozenset[str] = frozenset()
    stop_request: StopRequest = StopRequest.NONE
    state: AutoRunState = AutoRunState.IDLE
    reason_code: str | None = None
    began_at: datetime | None = None
    changed_at: datetime | None = None
    spent: timedelta = timedelta()
    current: Started | None = None
    results: tuple[Result, ...] = ()

    @property
    def cost_usd(self) -> float:
        """What its agents cost, as far as they tell."""
        return self.usage.cost_usd

    @property
    def is_interrupted(self) -> bool:
        """Whether its process died: what a living one left says that it has ended."""
        return self.state in WORKING_STATES


@dataclass(frozen=True, slots=True)
class Ended:
    """How one run of the session ended: once per run, by its final outcome, also if it was resumed after a crash."""

    request_id: str
    state: RunState
    reason_code: str | None = None
    usage: Usage = field(default_factory=Usage)
    run_id: str | None = None
    is_accepted: bool = False


@dataclass(frozen=True, slots=True)
class Upcoming:
    """A request as the display names it."""

    request_id: str
    title: str


@dataclass(frozen=True, slots=True)
class AutoStatus:
    """What auto-run does at this moment, for whoever watches: what runs, what comes next, whom it waits for.

    `runnable` is how many could run besides, `upcoming` the first of them.
    `interrupted` is what an earlier process of this session left (AUT-4), told once at the start.
    """

    session: Session
    running: Upcoming | None = None
    upcoming: tuple[Upcoming, ...] = ()
    runnable: int = 0
    waits_for: str | None = None
    waits_until: datetime | None = None
    interrupted: tuple[Upcoming, ...] = ()


@dataclass(frozen=True, slots=True)
class Waiting:
    """A request that waits for a person: why (a question with its choices, or the reason), and the command to go on."""

    request_id: str
    title: str
    reason_code: str
    text: str
    command: str | None = None
    is_question: bool = False
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unreached:
    """A request that was ready and never ran, and why."""

    request_id: str
    title: str
    reason_code: str
    text: str


@dataclass(frozen=True, slots=True)
class Summary:
    """What a person finds in the morning; `findings` are the doctor's if it stopped auto-run, `facts` its trouble's."""

    session: Session
    done: tuple[Upcoming, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    unreached: tuple[Unreached, ...] = ()
    interrupted: tuple[Upcoming, ...] = ()
    findings: tuple[Finding, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()


def carry_on(session: Session, now: datetime) -> Session:
    """Take an interrupted session up in a new process: its counters stay, the time nobody worked does not count."""
    last = session.changed_at or session.started_at
    return replace(
        session,
        started_at=now,
        spent=session.spent + max(last - session.started_at, timedelta()),
        stop_request=StopRequest.NONE,
        state=AutoRunState.IDLE,
        reason_code=None,
    )


def moved(session: Session, event: AutoRunEvent) -> Session:
    """Follow one row of auto-run's table (AUT-1)."""
    return replace(session, state=advance(AUTO_RUN_TRANSITIONS, session.state, event))


def record_end(session: Session, ended: Ended) -> Session:
    """Count a run that ended, once; one that a person cancelled or sent back is neither a failure nor a success."""
    if ended.run_id is not None and any(result.run_id == ended.run_id for result in session.results):
        return replace(session, current=None)
    outcome = outcome_of(ended.state, ended.reason_code, is_accepted=ended.is_accepted)
    counted = replace(
        session,
        runs=session.runs + 1,
        usage=session.usage + ended.usage,
        current=None,
        results=(*session.results, Result(ended.request_id, ended.run_id, outcome, ended.reason_code)),
    )
    if outcome in (RunOutcome.CANCELLED, RunOutcome.SENT_BACK):
        return counted
    if outcome is RunOutcome.NEEDS_INPUT:
        return replace(counted, needs_input_in_a_row=session.needs_input_in_a_row + 1, failed_in_a_row=0)
    if ended.state is RunState.FAILED:
        return replace(counted, failed_in_a_row=session.failed_in_a_row + 1, needs_input_in_a_row=0)
    return replace(counted, done=session.done + 1, needs_input_in_a_row=0, failed_in_a_row=0)


def record_failed_start(session: Session, request_id: str, reason_code: str | None = None) -> Session:
    """Count a start that failed before a run existed as FAILED, and never try it again in this session (AUT-2)."""
    return replace(
        never_again(session, request_id),
        failed_in_a_row=session.failed_in_a_row + 1,
        needs_input_in_a_row=0,
        current=None,
        results=(*session.results, Result(request_id, None, RunOutcome.FAILED, reason_code)),
    )


def never_again(session: Session, request_id: str) -> Session:
    """Keep a request from being started again in this session."""
    return replace(session, not_again=session.not_again | {request_id})


def worn_out(session: Session) -> frozenset[str]:
    """Return the requests that have had all the runs one session gives them (RUN-14)."""
    runs = Counter(result.request_id for result in session.results)
    return frozenset(request_id for request_id, count in runs.items() if count >= MOST_RUNS_EACH)


def why_stop(session: Session, limits: Limits, now: datetime, health: Health = Health.PASS) -> str | None:
    """Return the reason code for which auto-run stops now, before the next selection, or None to go on (AUT-3)."""
    elapsed = session.spent + (now - session.started_at)
    checks = (
        (session.stop_request is not StopRequest.NONE, "AUTO_STOPPED_BY_PERSON"),
        (health is Health.FAIL, "DOCTOR_FAILED"),
        (_unusable(session) is not None, _unusable(session) or ""),
        (_reached(session.failed_in_a_row, limits.stop_after_failed), "AUTO_FAILED_LIMIT"),
        (_reached(session.needs_input_in_a_row, limits.stop_after_needs_input), "AUTO_NEEDS_INPUT_LIMIT"),
        (_reached(session.runs, limits.session_runs), "AUTO_RUNS_LIMIT"),
        (_reached(elapsed / timedelta(minutes=1), limits.session_minutes), "AUTO_MINUTES_LIMIT"),
        *((reached(session.usage, limits.ceilings) is which, code) for which, code in _CEILING_CODES.items()),
    )
    return next((code for is_met, code in checks if is_met), None)


_CEILING_CODES = {
    Ceiling.COST: "AUTO_COST_LIMIT",
    Ceiling.TOKENS: "AUTO_TOKENS_LIMIT",
    Ceiling.CALLS: "AUTO_CALLS_LIMIT",
}


def _unusable(session: Session) -> str | None:
    """Return why the agent cannot be used if the last run stopped for that: the next would stop for it too."""
    code = session.results[-1].reason_code if session.results else None
    return code if code in AGENT_UNUSABLE else None


def minutes_left(session: Session, limits: Limits, now: datetime) -> float | None:
    """Return how long the session may still go on; None is as long as it likes."""
    if limits.session_minutes <= 0:
        return None
    elapsed = session.spent + (now - session.started_at)
    return max(0.0, limits.session_minutes - elapsed / timedelta(minutes=1))


def _reached(value: float, limit: float) -> bool:
    """Tell whether a limit is set and reached."""
    return limit > 0 and value >= limit
