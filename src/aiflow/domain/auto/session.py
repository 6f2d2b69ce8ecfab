"""One auto-run session (AUT-1, AUT-4): what it did so far, kept through a crash."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from aiflow.domain.agents.usage import Usage
from aiflow.domain.auto.stopping import Limits, StopRequest
from aiflow.domain.lifecycle import (
    AUTO_RUN_TRANSITIONS,
    AutoRunEvent,
    AutoRunState,
    RunOutcome,
    RunState,
    advance,
    outcome_of,
)
from aiflow.domain.run_summary import CUT_OFF, LOST

# In these states a process is at work: a session that was left in one of them was interrupted (AUT-4).
WORKING_STATES = frozenset(state for state, event in AUTO_RUN_TRANSITIONS if event is AutoRunEvent.STOPPED)


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
class AutoSession:
    """One auto-run with its counters; they survive a crash of its process (AUT-4).

    `started_at` is when this process took it up, `spent` what earlier processes of it worked; `state`, `reason_code`
    are its state and why it ended. It merges into `base_branch` from its start to its end (AUT-5); `began_clean`
    says that no edits were in the checkout then, so that later ones are no obstacle (RUN-7). `limits` and `is_watching`
    are how it was begun; one that `is_delivered` is a task's, which the queue delivers again.
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
    base_branch: str = ""
    began_clean: bool = False
    limits: Limits | None = None
    is_watching: bool = False
    is_delivered: bool = False

    @property
    def cost_usd(self) -> float:
        """What its agents cost, as far as they report it."""
        return self.usage.cost_usd

    @property
    def is_interrupted(self) -> bool:
        """Whether its process is gone without recording an end."""
        return self.state in WORKING_STATES

    @property
    def was_cut(self) -> bool:
        """Whether the next auto-run continues it (AUT-4): its process crashed or ended with its terminal or machine."""
        return self.is_interrupted or self.reason_code == CUT_OFF


@dataclass(frozen=True, slots=True)
class RunEnded:
    """How one run of the session ended: once per run, by its final outcome, even if it was resumed after a crash."""

    request_id: str
    state: RunState
    reason_code: str | None = None
    usage: Usage = field(default_factory=Usage)
    run_id: str | None = None
    is_accepted: bool = False


@dataclass(frozen=True, slots=True)
class Upcoming:
    """A request as the display names it; `is_lost` of one whose run was lost."""

    request_id: str
    title: str
    is_lost: bool = False


@dataclass(frozen=True, slots=True)
class AutoStatus:
    """What auto-run is doing now, to be displayed: what runs, what comes next, whom it waits for.

    `runnable` is how many could run besides, `upcoming` the first of them. Where `is_turn`, whom it waits for has not
    started anything yet.
    `interrupted` is what an earlier process of this session left (AUT-4), reported once at the start.
    """

    session: AutoSession
    running: Upcoming | None = None
    upcoming: tuple[Upcoming, ...] = ()
    runnable: int = 0
    waits_for: str | None = None
    is_turn: bool = False
    waits_until: datetime | None = None
    interrupted: tuple[Upcoming, ...] = ()


def carry_on(session: AutoSession, now: datetime) -> AutoSession:
    """Continue an interrupted session in a new process: its counters stay, the time without work does not count."""
    last = session.changed_at or session.started_at
    return replace(
        session,
        started_at=now,
        spent=session.spent + max(last - session.started_at, timedelta()),
        stop_request=StopRequest.NONE,
        state=AutoRunState.IDLE,
        reason_code=None,
    )


def moved(session: AutoSession, event: AutoRunEvent) -> AutoSession:
    """Follow one row of auto-run's table (AUT-1)."""
    return replace(session, state=advance(AUTO_RUN_TRANSITIONS, session.state, event))


def record_end(session: AutoSession, ended: RunEnded) -> AutoSession:
    """Count a run that ended, once; one that a person cancelled or sent back is neither a failure nor a success.

    One that was lost is only named: its request is blocked, and neither ends nor shortens the night (AUT-3). One that
    was cut off with the auto-run is counted when that is continued, by its final outcome (AUT-4).
    """
    if ended.reason_code == CUT_OFF:
        return replace(session, current=None)
    if ended.run_id is not None and any(result.run_id == ended.run_id for result in session.results):
        return replace(session, current=None)
    outcome = outcome_of(ended.state, ended.reason_code, is_accepted=ended.is_accepted)
    counted = replace(
        session,
        runs=session.runs + (ended.reason_code != LOST),
        usage=session.usage + ended.usage,
        current=None,
        results=(*session.results, Result(ended.request_id, ended.run_id, outcome, ended.reason_code)),
    )
    if outcome in (RunOutcome.CANCELLED, RunOutcome.SENT_BACK) or ended.reason_code == LOST:
        return counted
    if outcome is RunOutcome.NEEDS_INPUT:
        return replace(counted, needs_input_in_a_row=session.needs_input_in_a_row + 1, failed_in_a_row=0)
    if ended.state is RunState.FAILED:
        return replace(counted, failed_in_a_row=session.failed_in_a_row + 1, needs_input_in_a_row=0)
    return replace(counted, done=session.done + 1, needs_input_in_a_row=0, failed_in_a_row=0)


def record_failed_start(session: AutoSession, request_id: str, reason_code: str | None = None) -> AutoSession:
    """Count a start that failed before a run existed as FAILED, and never try it again in this session (AUT-2)."""
    return replace(
        never_again(session, request_id),
        failed_in_a_row=session.failed_in_a_row + 1,
        needs_input_in_a_row=0,
        current=None,
        results=(*session.results, Result(request_id, None, RunOutcome.FAILED, reason_code)),
    )


def never_again(session: AutoSession, request_id: str) -> AutoSession:
    """Keep a request from being started again in this session."""
    return replace(session, not_again=session.not_again | {request_id})
