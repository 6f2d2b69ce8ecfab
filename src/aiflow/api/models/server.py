"""The server itself: health, status, activity and sessions, as they are answered and taken."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from aiflow.api.models.base import AnswerModel, BodyModel, Code, Instant, RequestName, RunName, StepName, body_config
from aiflow.api.models.queue import AutoAnswer, NextRequestAnswer, StatsAnswer, WaitingAnswer
from aiflow.api.models.runs import TaskRefAnswer


class AtWorkAnswer(AnswerModel):
    """A request with a run at work."""

    request_id: RequestName
    title: str
    run_id: RunName | None
    state: str | None
    current_step_id: StepName | None
    steps: int
    steps_done: int
    since: Instant | None
    pid: int | None
    host: str | None
    task: TaskRefAnswer | None


class SpentAnswer(AnswerModel):
    """What the runs that began in the last days used."""

    days: int
    runs: int
    cost_usd: float
    tokens: int
    agent_calls: int


class TurnAnswer(AnswerModel):
    """A runner that has the checkout's turn."""

    pid: int | None
    host: str | None
    since: Instant | None


class ContinuedAnswer(AnswerModel):
    """A request whose run was interrupted or cut off, and is continued without a person."""

    request_id: RequestName
    title: str


class FollowUpDraftAnswer(AnswerModel):
    """A draft that an agent proposed while it worked on another request."""

    request_id: RequestName
    title: str
    found_in: RequestName


class StatusAnswer(AnswerModel):
    """What runs, what waits for a person, what is next, and the state of auto-run."""

    running: list[AtWorkAnswer]
    waiting: list[WaitingAnswer]
    turn: TurnAnswer | None = Field(description="The runner that is about to start a run in this checkout.")
    follow_ups: list[FollowUpDraftAnswer] = Field(description="The drafts that agents proposed.")
    continued: list[ContinuedAnswer] = Field(description="The runs that the next auto-run continues before `next`.")
    next: NextRequestAnswer | None
    stats: StatsAnswer
    auto: AutoAnswer
    spent: SpentAnswer


class ActivityEntryAnswer(AnswerModel):
    """One thing that happened."""

    cursor: str
    at: Instant | None
    kind: str | None
    actor: str | None
    request_id: RequestName | None
    run_id: RunName | None
    reason_code: Code | None
    pid: int | None
    by: str | None = Field(description="On whose behalf, if the page or the API asked for it.")
    data: dict[str, Any] | None


class ActivityAnswer(AnswerModel):
    """A page of the journal; `next_cursor` continues in the same direction."""

    activity: list[ActivityEntryAnswer]
    next_cursor: str
    is_end: bool
    has_gap: bool
    damaged: int


class SessionAnswer(AnswerModel):
    """A browser that signed in."""

    session_id: str
    name: str
    agent: str
    created_at: Instant
    expires_at: Instant
    seen_at: Instant
    is_current: bool


class SessionsAnswer(AnswerModel):
    """Signed-in browsers, most recently used first."""

    sessions: list[SessionAnswer]


class CodeAnswer(AnswerModel):
    """A code with which one browser can sign in, once, and the address that has it."""

    code: str
    expires_at: Instant
    url: str


class EndedSessionsAnswer(AnswerModel):
    """How many sessions were ended."""

    ended: int


class SignInBody(BodyModel):
    """A one-time code, and the name that the journal records."""

    model_config = body_config(code="K7QPW-3MZ4D", name="Aki")

    code: str = Field(max_length=100, examples=["K7QPW-3MZ4D"])
    name: str = Field(default="", max_length=200)


class HealthAnswer(AnswerModel):
    """Which server this is; what is degraded is shown only to those who are signed in."""

    instance_id: str
    version: str
    degraded: list[Code] | None
