"""Requests, as they are answered and taken."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from aiflow.api.models.base import AnswerModel, BodyModel, Code, Instant, PageModel, RequestName, body_config
from aiflow.api.models.runs import RunAnswer
from aiflow.domain.backlog.metadata import MAX_TITLE_CHARACTERS
from aiflow.domain.request import Priority, RequestStatus

MOST_BODY = 500_000
Title = Annotated[str, Field(min_length=1, max_length=MAX_TITLE_CHARACTERS, examples=["Bootstrap: aiflow-local v1"])]
Label = Annotated[str, Field(min_length=1, max_length=200)]
# What a person may set; the rest is aiflow's (REQ-5).
PersonStatus = Literal["draft", "ready", "blocked", "done", "archived"]


class RequestAnswer(AnswerModel):
    """One request."""

    request_id: RequestName
    title: str
    status: RequestStatus
    priority: Priority
    depends_on: list[RequestName]
    labels: list[str]
    created_at: Instant | None
    updated_at: Instant | None
    found_in: RequestName | None = Field(description="The request in whose run an agent proposed this one.")
    path: str
    latest_run: RunAnswer | None


class RequestRowAnswer(RequestAnswer):
    """A request in the list: whether it is next, and what keeps it if it is ready and cannot run."""

    is_next: bool
    reason_code: Code | None
    detail: str | None


class FileProblemAnswer(AnswerModel):
    """One thing that is wrong with a file."""

    line: int | None
    message: str


class InvalidFileAnswer(AnswerModel):
    """A request file that cannot be used."""

    request_id: RequestName
    path: str
    reason_code: Code
    problems: list[FileProblemAnswer]


class RequestsAnswer(PageModel):
    """Requests in selection order, then the files that cannot be used."""

    requests: list[RequestRowAnswer]
    invalid: list[InvalidFileAnswer]


class HiddenAnswer(AnswerModel):
    """Hidden text of a request, which no agent gets."""

    field: str
    kind: str
    line: int
    amount: int
    shown: str


class ShownRequestAnswer(RequestAnswer):
    """A request with its text and its runs, newest first."""

    runs: list[RunAnswer]
    body: str
    hidden: list[HiddenAnswer]


class BrokenRequestAnswer(AnswerModel):
    """A request whose file cannot be used."""

    request_id: RequestName
    invalid: list[InvalidFileAnswer]


class CreatedAnswer(AnswerModel):
    """A new request."""

    request_id: RequestName
    path: str
    status: RequestStatus
    priority: Priority


class BarrierAnswer(AnswerModel):
    """What keeps a request from running, or what to know before it runs."""

    reason_code: Code
    detail: str


class StationAnswer(AnswerModel):
    """One request on the way down to the roots."""

    request_id: RequestName
    depth: int
    waited_for_by: RequestName | None
    title: str | None
    status: RequestStatus | None
    barriers: list[BarrierAnswer]
    waits_for: list[RequestName]
    latest_run: RunAnswer | None
    commands: list[str]
    at_github: list[str] = Field(description="What a person does on the issue itself, with its address.")


class WhyRequestAnswer(AnswerModel):
    """Everything that keeps a request from running."""

    request_id: RequestName
    status: RequestStatus | None
    is_runnable: bool
    stations: list[StationAnswer]
    warnings: list[BarrierAnswer]


class CreateBody(BodyModel):
    """A new request."""

    model_config = body_config(title="Bootstrap: aiflow-local v1", body="What is to be done.", status="ready")

    title: Title
    body: str = Field(default="", max_length=MOST_BODY, description="Markdown, without a heading.")
    request_id: str | None = Field(default=None, min_length=1, max_length=180, examples=["RQ-20251214-008"])
    priority: Literal["P0", "P1", "P2", "P3"] = "P2"
    status: Literal["draft", "ready"] = "draft"
    depends_on: list[str] = Field(default=[], max_length=200)
    labels: list[Label] = Field(default=[], max_length=200)


class PatchBody(BodyModel):
    """What to change in a request; keys that are not given stay."""

    model_config = body_config(priority="P0", status="ready")

    title: Title | None = None
    body: str | None = Field(default=None, max_length=MOST_BODY, description="The text without its metadata.")
    priority: Literal["P0", "P1", "P2", "P3"] | None = None
    status: PersonStatus | None = None
    depends_on: list[str] | None = Field(default=None, max_length=200)
    labels: list[Label] | None = Field(default=None, max_length=200)
    created_at: str | None = Field(default=None, max_length=64, examples=["2026-11-18"])
    updated_at: str | None = Field(default=None, max_length=64, examples=["2026-11-18T07:00:00+09:00"])


NO_BASELINE = "Leave out the tests of the base before the first agent call."


class ResumeBody(BodyModel):
    """How a run continues (D34 §4.2), with an answer to its question and what else a person may want."""

    model_config = body_config(mode="retry_step", target_step_id="S03", force=False)

    mode: Literal["resume", "retry_step", "replan"] = "resume"
    target_step_id: str | None = Field(default=None, min_length=1, max_length=20, examples=["S03"])
    force: bool = False
    answer: str | None = Field(default=None, max_length=20_000)
    keep_changes: bool = Field(default=False, description="Continue with a person's own edits of the worktree.")
    update: bool = Field(default=False, description="Merge the base branch in first.")
    no_baseline: bool = Field(default=False, description=NO_BASELINE)


class LineBody(BodyModel):
    """A comment on one line of the change."""

    path: str = Field(min_length=1, max_length=1000)
    line: int = Field(ge=1, le=10_000_000)
    text: str = Field(min_length=1, max_length=20_000)
    quote: str = Field(
        default="",
        max_length=20_000,
        description="The text of that line; without it, the comment names the commit.",
    )


class SendBackBody(BodyModel):
    """Why a run is sent back; comments on lines are added as ``path:line: text (at `quote`)``."""

    model_config = body_config(
        comment="Please keep the old name.",
        lines=[{"path": "app.py", "line": 12, "text": "this one", "quote": "old = 1"}],
    )

    comment: str = Field(default="", max_length=100_000)
    lines: list[LineBody] = Field(default=[], max_length=500)
    fresh: bool = Field(default=False, description="Whether the next run starts from the base (REQ-6a).")


class BeginBody(BodyModel):
    """What a run leaves out."""

    model_config = body_config(quick=True)

    quick: bool = Field(default=False, description="Call neither a planner nor a reviewer.")
    no_baseline: bool = Field(default=False, description=NO_BASELINE)


class StartBody(BeginBody):
    """Which request is to run."""

    model_config = body_config(request_id="RQ-20251214-008")

    request_id: str = Field(min_length=1, max_length=180, examples=["RQ-20251214-008"])
