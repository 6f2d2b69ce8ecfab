"""All states and all transitions (RUN-2, REQ-5, QUE-3, ISS-2, AUT-1), and how one state shows in the others.

One table per machine, `(state, event) -> state`. A missing row raises; which states are final is derived, never listed.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from aiflow.domain.request import RequestStatus
from aiflow.errors import TransitionError

if TYPE_CHECKING:
    from collections.abc import Mapping

State = TypeVar("State", bound=StrEnum)
Event = TypeVar("Event", bound=StrEnum)


def advance(table: Mapping[tuple[State, Event], State], state: State, event: Event) -> State:
    """Follow one row of a table; a row that does not exist is an error, never a guess."""
    try:
        return table[state, event]
    except KeyError:
        raise TransitionError(state=str(state), event=str(event)) from None


def final_states(table: Mapping[tuple[State, Event], State]) -> frozenset[State]:
    """Return the states that no row leads out of."""
    return frozenset(table.values()) - {state for state, _ in table}


class RequestEvent(StrEnum):
    """What changes a request's status; the first group is aiflow's, the second a person's."""

    STARTED = "started"
    STOPPED = "stopped"
    ACCEPTED = "accepted"
    RESUMED = "resumed"
    SENT_BACK = "sent_back"
    UNDONE = "undone"
    LOST = "lost"
    SET_DRAFT = "set_draft"
    SET_READY = "set_ready"
    SET_BLOCKED = "set_blocked"
    SET_DONE = "set_done"
    SET_ARCHIVED = "set_archived"


_R, _E = RequestStatus, RequestEvent

ENGINE_TRANSITIONS: Mapping[tuple[RequestStatus, RequestEvent], RequestStatus] = {
    (_R.READY, _E.STARTED): _R.RUNNING,
    (_R.RUNNING, _E.STOPPED): _R.BLOCKED,
    (_R.RUNNING, _E.LOST): _R.BLOCKED,
    **{(status, _E.ACCEPTED): _R.DONE for status in (_R.RUNNING, _R.BLOCKED)},
    (_R.BLOCKED, _E.RESUMED): _R.RUNNING,
    (_R.BLOCKED, _E.SENT_BACK): _R.READY,
    (_R.DONE, _E.UNDONE): _R.BLOCKED,
}

# A person may set any status at any time, except `running`: only a run makes a request running.
PERSON_EVENTS: Mapping[RequestStatus, RequestEvent] = {
    status: _E(f"set_{status.value}") for status in _R if status is not _R.RUNNING
}

REQUEST_TRANSITIONS: Mapping[tuple[RequestStatus, RequestEvent], RequestStatus] = {
    **ENGINE_TRANSITIONS,
    **{(state, event): target for state in _R for target, event in PERSON_EVENTS.items() if state is not target},
}


class RunState(StrEnum):
    """The state of a run (D34 §3)."""

    INIT = "INIT"
    PLANNING = "PLANNING"
    IMPLEMENTING = "IMPLEMENTING"
    TESTING = "TESTING"
    REPORTING = "REPORTING"
    DONE = "DONE"
    NEEDS_INPUT = "NEEDS_INPUT"
    FAILED = "FAILED"


class RunEvent(StrEnum):
    """What happens to a run; these names stand in `stage.json`'s history."""

    PLANNING_STARTED = "PLANNING_STARTED"
    PLANNED = "PLANNED"
    IMPLEMENTED = "IMPLEMENTED"
    ATTEMPT_FAILED = "ATTEMPT_FAILED"
    REVIEW_FAILED = "REVIEW_FAILED"
    STEP_DONE = "STEP_DONE"
    LAST_STEP_DONE = "LAST_STEP_DONE"
    REPORTED = "REPORTED"
    NEEDS_INPUT = "NEEDS_INPUT"
    FAILED = "FAILED"
    RECOVERED = "RECOVERED"
    RESUMED_AT_PLANNING = "RESUMED_AT_PLANNING"
    RESUMED_AT_STEP = "RESUMED_AT_STEP"
    RESUMED_AT_TESTS = "RESUMED_AT_TESTS"
    RESUMED_AT_REPORT = "RESUMED_AT_REPORT"
    REPLACED = "REPLACED"
    SENT_BACK = "SENT_BACK"
    ACCEPTING = "ACCEPTING"
    ACCEPTED = "ACCEPTED"
    NOT_ACCEPTED = "NOT_ACCEPTED"
    UNDONE = "UNDONE"
    QUOTA_WAIT = "QUOTA_WAIT"
    QUOTA_BACK = "QUOTA_BACK"
    TEXT_WITHHELD = "TEXT_WITHHELD"
    BASE_MERGED = "BASE_MERGED"
    BASE_CONFLICTS = "BASE_CONFLICTS"
    IN_LINE = "IN_LINE"


_S, _V = RunState, RunEvent
_CALLING = (_S.PLANNING, _S.IMPLEMENTING, _S.TESTING)
_WORKING = (_S.INIT, *_CALLING, _S.REPORTING)

RUN_TRANSITIONS: Mapping[tuple[RunState, RunEvent], RunState] = {
    (_S.INIT, _V.PLANNING_STARTED): _S.PLANNING,
    (_S.PLANNING, _V.ATTEMPT_FAILED): _S.PLANNING,
    (_S.PLANNING, _V.PLANNED): _S.IMPLEMENTING,
    (_S.IMPLEMENTING, _V.ATTEMPT_FAILED): _S.IMPLEMENTING,
    (_S.IMPLEMENTING, _V.IMPLEMENTED): _S.TESTING,
    (_S.TESTING, _V.ATTEMPT_FAILED): _S.IMPLEMENTING,
    (_S.TESTING, _V.REVIEW_FAILED): _S.TESTING,  # the reviewer itself failed: it is asked again, the work stays
    (_S.TESTING, _V.STEP_DONE): _S.IMPLEMENTING,
    (_S.TESTING, _V.LAST_STEP_DONE): _S.REPORTING,
    (_S.REPORTING, _V.REPORTED): _S.DONE,
    **{(state, event): state for state in _CALLING for event in (_V.QUOTA_WAIT, _V.QUOTA_BACK, _V.TEXT_WITHHELD)},
    **{(state, _V.NEEDS_INPUT): _S.NEEDS_INPUT for state in _WORKING},
    **{(state, _V.FAILED): _S.FAILED for state in _WORKING},
    **{(state, _V.RECOVERED): state for state in _WORKING},  # after a crash; nothing finished is repeated (RUN-11)
    **{(state, _V.RESUMED_AT_PLANNING): _S.PLANNING for state in (_S.NEEDS_INPUT, _S.FAILED)},
    **{(state, _V.RESUMED_AT_STEP): _S.IMPLEMENTING for state in (_S.NEEDS_INPUT, _S.FAILED)},
    **{(state, _V.RESUMED_AT_TESTS): _S.TESTING for state in (_S.NEEDS_INPUT, _S.FAILED)},
    **{(state, _V.RESUMED_AT_REPORT): _S.REPORTING for state in (_S.NEEDS_INPUT, _S.FAILED)},
    **{(state, _V.REPLACED): _S.FAILED for state in (_S.NEEDS_INPUT, _S.FAILED)},
    **{(state, _V.SENT_BACK): _S.FAILED for state in (_S.NEEDS_INPUT, _S.FAILED, _S.DONE)},
    # What is done is accepted, or not yet; its base is merged into it (`resume --update`) in a step of its own.
    **{(_S.DONE, event): _S.DONE for event in (_V.ACCEPTING, _V.ACCEPTED, _V.NOT_ACCEPTED, _V.UNDONE)},
    **{(state, _V.BASE_MERGED): _S.TESTING for state in (_S.INIT, _S.PLANNING)},
    **{(state, _V.BASE_CONFLICTS): _S.IMPLEMENTING for state in (_S.INIT, _S.PLANNING)},
    (_S.TESTING, _V.IN_LINE): _S.PLANNING,  # what a run continues is in line with its base: now it is planned (REQ-6a)
    (_S.DONE, _V.RESUMED_AT_STEP): _S.IMPLEMENTING,
    (_S.DONE, _V.RESUMED_AT_TESTS): _S.TESTING,
}

ACTIVE_RUN_STATES = frozenset(state for state, event in RUN_TRANSITIONS if event is RunEvent.NEEDS_INPUT)


class TaskStatus(StrEnum):
    """The status of a task in the queue store."""

    QUEUED = "QUEUED"
    RUNNING = "RUNNING"
    COMPLETE = "COMPLETE"
    ERROR = "ERROR"
    CANCELLED = "CANCELLED"


class TaskEvent(StrEnum):
    """What happens to a task."""

    CLAIMED = "claimed"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


_T, _K = TaskStatus, TaskEvent

TASK_TRANSITIONS: Mapping[tuple[TaskStatus, TaskEvent], TaskStatus] = {
    (_T.QUEUED, _K.CLAIMED): _T.RUNNING,
    (_T.QUEUED, _K.CANCELLED): _T.CANCELLED,
    (_T.RUNNING, _K.COMPLETED): _T.COMPLETE,
    (_T.RUNNING, _K.FAILED): _T.ERROR,
    (_T.RUNNING, _K.CANCELLED): _T.CANCELLED,
}


class IssueLabel(StrEnum):
    """The one agent label an issue carries; NONE is no label at all."""

    NONE = ""
    QUEUED = "agent:queued"
    RUNNING = "agent:running"
    BLOCKED = "agent:blocked"
    RETRY = "agent:retry"


class IssueEvent(StrEnum):
    """What moves an issue from label to label."""

    QUEUED = "queued"
    STARTED = "started"
    BLOCKED = "blocked"
    RETRIED = "retried"
    WITHDRAWN = "withdrawn"
    CLOSED = "closed"


_L, _I = IssueLabel, IssueEvent

ISSUE_TRANSITIONS: Mapping[tuple[IssueLabel, IssueEvent], IssueLabel] = {
    (_L.NONE, _I.QUEUED): _L.QUEUED,
    **{(label, _I.STARTED): _L.RUNNING for label in (_L.QUEUED, _L.RETRY)},
    **{(label, _I.BLOCKED): _L.BLOCKED for label in (_L.QUEUED, _L.RETRY, _L.RUNNING)},
    (_L.BLOCKED, _I.RETRIED): _L.RETRY,
    (_L.RUNNING, _I.RETRIED): _L.RETRY,
    (_L.BLOCKED, _I.QUEUED): _L.QUEUED,
    **{(label, _I.WITHDRAWN): _L.NONE for label in (_L.QUEUED, _L.RETRY, _L.RUNNING, _L.BLOCKED)},
    **{(label, _I.CLOSED): _L.NONE for label in _L if label},
}


class AutoRunState(StrEnum):
    """The state of auto-run."""

    IDLE = "idle"
    SELECTING = "selecting"
    RUNNING = "running"
    WAITING = "waiting"
    STOPPING = "stopping"
    STOPPED = "stopped"
    COMPLETED = "completed"


class AutoRunEvent(StrEnum):
    """What happens to auto-run."""

    STARTED = "started"
    RUN_STARTED = "run_started"
    RUN_ENDED = "run_ended"
    WAIT_BEGAN = "wait_began"
    WAIT_ENDED = "wait_ended"
    STOP_ASKED = "stop_asked"
    STOPPED = "stopped"
    NOTHING_LEFT = "nothing_left"


_A, _O = AutoRunState, AutoRunEvent

AUTO_RUN_TRANSITIONS: Mapping[tuple[AutoRunState, AutoRunEvent], AutoRunState] = {
    **{(state, _O.STARTED): _A.SELECTING for state in (_A.IDLE, _A.STOPPED, _A.COMPLETED)},
    **{(state, _O.RUN_STARTED): _A.RUNNING for state in (_A.SELECTING, _A.WAITING)},
    **{(state, _O.WAIT_BEGAN): _A.WAITING for state in (_A.SELECTING, _A.RUNNING)},
    (_A.SELECTING, _O.NOTHING_LEFT): _A.COMPLETED,
    (_A.RUNNING, _O.RUN_ENDED): _A.SELECTING,
    (_A.WAITING, _O.WAIT_ENDED): _A.SELECTING,
    **{(state, _O.STOP_ASKED): _A.STOPPING for state in (_A.SELECTING, _A.RUNNING, _A.WAITING)},
    **{(_A.STOPPING, event): _A.STOPPING for event in (_O.RUN_ENDED, _O.WAIT_BEGAN, _O.WAIT_ENDED, _O.STOP_ASKED)},
    **{(state, _O.STOPPED): _A.STOPPED for state in (_A.SELECTING, _A.RUNNING, _A.WAITING, _A.STOPPING)},
}


class RunOutcome(StrEnum):
    """What a run's state means for its request, task and issue."""

    ACTIVE = "active"
    AWAITING_ACCEPTANCE = "awaiting_acceptance"
    ACCEPTED = "accepted"
    NEEDS_INPUT = "needs_input"
    CANCELLED = "cancelled"
    FAILED = "failed"
    SENT_BACK = "sent_back"


class Projection(NamedTuple):
    """How one outcome shows as request status, task status and issue label."""

    request: RequestStatus
    task: TaskStatus
    label: IssueLabel


PROJECTIONS: Mapping[RunOutcome, Projection] = {
    RunOutcome.ACTIVE: Projection(_R.RUNNING, _T.RUNNING, _L.RUNNING),
    RunOutcome.AWAITING_ACCEPTANCE: Projection(_R.BLOCKED, _T.COMPLETE, _L.RUNNING),
    RunOutcome.ACCEPTED: Projection(_R.DONE, _T.COMPLETE, _L.NONE),
    RunOutcome.NEEDS_INPUT: Projection(_R.BLOCKED, _T.ERROR, _L.BLOCKED),
    RunOutcome.CANCELLED: Projection(_R.BLOCKED, _T.CANCELLED, _L.BLOCKED),
    RunOutcome.FAILED: Projection(_R.BLOCKED, _T.ERROR, _L.BLOCKED),
    RunOutcome.SENT_BACK: Projection(_R.READY, _T.ERROR, _L.RETRY),
}


def outcome_of(state: RunState, reason_code: str | None = None, *, is_accepted: bool = False) -> RunOutcome:
    """Name what a run's state and reason mean to the outside."""
    if state in ACTIVE_RUN_STATES:
        return RunOutcome.ACTIVE
    if state is RunState.DONE:
        return RunOutcome.ACCEPTED if is_accepted else RunOutcome.AWAITING_ACCEPTANCE
    if state is RunState.NEEDS_INPUT:
        return RunOutcome.CANCELLED if reason_code == "CANCELLED" else RunOutcome.NEEDS_INPUT
    return RunOutcome.SENT_BACK if reason_code == "SENT_BACK" else RunOutcome.FAILED
