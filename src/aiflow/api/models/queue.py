"""Selection, auto-run, tasks and runners, as they are answered and taken."""

from __future__ import annotations

from pydantic import Field

from aiflow.api.models.base import AnswerModel, BodyModel, Code, Instant, RequestName, RunName, body_config
from aiflow.api.models.doctor import CheckAnswer
from aiflow.api.models.errors import ErrorModel
from aiflow.domain.auto.stopping import StopRequest
from aiflow.domain.lifecycle import AutoRunState, RunOutcome, TaskStatus
from aiflow.domain.request import Priority, RequestStatus


class NextRequestAnswer(AnswerModel):
    """The request that runs next (D59 §8.2)."""

    request_id: RequestName
    priority: Priority
    status: RequestStatus
    title: str
    path: str


class StatsAnswer(AnswerModel):
    """How many requests there are, are ready, and could run now."""

    total: int
    ready: int
    runnable: int


class ExclusionAnswer(AnswerModel):
    """A request that was not chosen, and why."""

    request_id: RequestName
    reason_code: Code
    detail: str


class NextAnswerModel(AnswerModel):
    """D59's `NextRequestResult`."""

    next: NextRequestAnswer | None
    stats: StatsAnswer
    excluded: list[ExclusionAnswer]


class PlannedAnswer(AnswerModel):
    """A request in the forecast."""

    request_id: RequestName
    priority: Priority
    title: str
    depends_on: list[RequestName]
    path: str


class ForecastAnswer(AnswerModel):
    """What runs, what follows if every run succeeds, and what never runs."""

    running: list[PlannedAnswer]
    order: list[PlannedAnswer]
    never: list[ExclusionAnswer]
    total: int
    next_after: int | None


class SessionResultAnswer(AnswerModel):
    """What came of one request in an auto-run."""

    request_id: RequestName
    run_id: RunName | None
    outcome: RunOutcome
    reason_code: Code | None


class WaitingAnswer(AnswerModel):
    """A request that waits for a person."""

    request_id: RequestName
    title: str
    reason_code: Code
    text: str
    command: str | None
    is_question: bool
    choices: list[str]


class UnreachedAnswer(AnswerModel):
    """A request that was ready and never ran."""

    request_id: RequestName
    title: str
    reason_code: Code
    text: str


class AutoSessionAnswer(AnswerModel):
    """One auto-run in numbers."""

    state: AutoRunState
    reason_code: Code | None
    began_at: Instant | None
    changed_at: Instant | None
    base_branch: str
    runs: int
    done: int
    cost_usd: float
    tokens: int
    agent_calls: int
    results: list[SessionResultAnswer]


class FoundAnswer(AnswerModel):
    """A draft that an agent proposed."""

    request_id: RequestName
    title: str


class AutoSummaryAnswer(AnswerModel):
    """How an auto-run ended, and what a person finds then."""

    state: AutoRunState
    reason_code: Code | None
    began_at: Instant | None
    ended_at: Instant | None
    base_branch: str
    runs: int
    done: int
    cost_usd: float
    tokens: int
    agent_calls: int
    interrupted: list[RequestName]
    results: list[SessionResultAnswer]
    waiting: list[WaitingAnswer]
    unreached: list[UnreachedAnswer]
    follow_ups: list[FoundAnswer] = Field(description="The drafts that its agents proposed.")
    checks: list[CheckAnswer]


class BeginningAnswer(AnswerModel):
    """An auto-run that waits for its time (`auto --at`)."""

    at: Instant
    pid: int


class AutoAnswer(AnswerModel):
    """Whether auto-run is running, what it is doing, and its current or last session."""

    is_running: bool
    was_cut: bool
    pid: int | None
    host: str | None
    since: Instant | None
    begins: list[BeginningAnswer]
    stop_request: StopRequest
    request_id: RequestName | None
    run_id: RunName | None
    is_session_current: bool
    session: AutoSessionAnswer | None
    summary: AutoSummaryAnswer | None


class StoreAnswer(AnswerModel):
    """The store that the settings name: whether it answers, or why not and what to do."""

    name: str
    is_answering: bool
    error: ErrorModel | None


class QueueAnswer(AnswerModel):
    """Auto-run, and the tasks of this project by status; `null` while the store does not answer."""

    auto: AutoAnswer
    store: StoreAnswer
    namespace: str
    counts: dict[TaskStatus, int] | None
    total: int | None


class AutoStartedAnswer(AnswerModel):
    """An auto-run that has begun; `summary` if it has ended already, for nothing was runnable."""

    pid: int
    summary: AutoSummaryAnswer | None


class StopAnswer(AnswerModel):
    """What was asked of which process, and its current run."""

    stop_request: StopRequest
    request_id: RequestName | None
    run_id: RunName | None
    pid: int | None
    host: str | None
    has_ended: bool


class RunNextBody(BodyModel):
    """The limits of an auto-run."""

    model_config = body_config(until="06:30", max_runs=10)

    watch: bool = Field(default=False, description="Keep running, and wait for new requests.")
    until: str | None = Field(default=None, pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$", examples=["06:30"])
    max_runs: int | None = Field(default=None, ge=0, le=1_000_000)
    max_minutes: int | None = Field(default=None, ge=0, le=1_000_000)
    max_cost_usd: float | None = Field(default=None, ge=0, le=1_000_000, allow_inf_nan=False)


class StopBody(BodyModel):
    """When auto-run stops: after the current run, or now."""

    model_config = body_config(now=False)

    now: bool = False
