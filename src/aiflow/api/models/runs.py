"""Runs, as they are answered."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from aiflow.api.models.base import AnswerModel, Code, Instant, PageModel, RequestName, RunName, StepName
from aiflow.domain.lifecycle import RunState
from aiflow.domain.reasons import WayOn


class TaskRefAnswer(AnswerModel):
    """The task of the queue that a run is worked on for."""

    namespace: str
    task_id: str


class RunAnswer(AnswerModel):
    """A run, summed up."""

    run_id: RunName
    state: RunState
    reason_code: Code | None
    cause: Code | None
    changed_at: Instant | None
    task: TaskRefAnswer | None


class RunRowAnswer(RunAnswer):
    """A run in a list, with its request and what it used."""

    request_id: RequestName
    branch: str
    created_at: Instant | None
    worked_seconds: float | None
    cost_usd: float | None
    tokens: int | None
    agent_calls: int | None


class RunsAnswer(PageModel):
    """Runs, newest first."""

    runs: list[RunRowAnswer]


class StepAnswer(AnswerModel):
    """One step of a run's plan, and whether it is done."""

    step_id: StepName
    title: str
    is_done: bool
    commit: str | None


class UsageAnswer(AnswerModel):
    """What agents used."""

    calls: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    cost_usd: float
    seconds: float
    tokens: int


class SuggestionAnswer(AnswerModel):
    """The recommended next step, and the command for it."""

    way_on: WayOn | None
    command: str | None


class FollowUpAnswer(AnswerModel):
    """Further work that an agent proposed, and the request that it is."""

    number: int
    title: str
    body: str
    role: str
    step_id: StepName | None
    request_id: RequestName | None = Field(description="`null` as long as no draft could be written.")
    is_known: bool = Field(description="There was a request for it already.")


class RunResultAnswer(AnswerModel):
    """Where a run stands, why, and what to do next: what `aiflow run --json` prints."""

    request_id: RequestName
    run_id: RunName
    state: RunState
    reason_code: Code | None
    cause: Code | None
    summary: str | None
    question: str | None
    choices: list[str]
    current_step_id: StepName | None
    branch: str
    base_branch: str
    worktree: str
    compare_url: str | None
    is_pushed: bool
    pull_url: str | None
    usage: UsageAnswer
    waits_until: Instant | None
    warnings: list[Code]
    follow_ups: list[FollowUpAnswer]
    follow_ups_left_out: int
    replaces: RunName | None
    replaced_by: RunName | None
    continues: RunName | None
    continued_by: RunName | None
    accepted_as: str | None
    task: TaskRefAnswer | None
    created_at: Instant
    changed_at: Instant
    steps: list[StepAnswer]
    suggested_next: SuggestionAnswer


class LinksAnswer(AnswerModel):
    """Where a run is: its page, its place in the API, and what belongs to it."""

    url: str
    api_url: str
    report: str
    diff: str
    logs: list[str]


class CallsAnswer(AnswerModel):
    """How often each role was called in a step."""

    implementer: int
    qa: int
    tests: int


class AttemptsAnswer(AnswerModel):
    """How often each role was called (D34 §3)."""

    planning: int
    steps: dict[str, CallsAnswer]


class HistoryLineAnswer(AnswerModel):
    """One thing that happened to a run."""

    at: Instant
    event: str
    step_id: StepName | None
    reason_code: Code | None
    note: str | None


class GivenAnswer(AnswerModel):
    """A question, and what a person answered."""

    question: str
    answer: str


class TargetsAnswer(AnswerModel):
    """What a step is to change."""

    paths: list[str]


class PlanStepAnswer(AnswerModel):
    """One step as the planner wrote it."""

    step_id: StepName
    title: str
    instructions: str
    targets: TargetsAnswer
    tests: list[str] | None


class RunPageAnswer(RunResultAnswer):
    """A run with its history, its plan, its `errors.json` and its links."""

    title: str
    agent: str
    current_step_index: int | None
    attempts: AttemptsAnswer
    history: list[HistoryLineAnswer]
    answers: list[GivenAnswer]
    plan: list[PlanStepAnswer]
    errors: dict[str, Any] | None = Field(description="The content of the run's `errors.json`.")
    logs: list[int] = Field(
        description="The numbers of its logs: 0 is the planner's, 3 that of S03, -1 the baseline's."
    )
    links: LinksAnswer


class StartedAnswer(AnswerModel):
    """What began, and where it is; `result` is what came of it if it has ended already."""

    request_id: RequestName | None
    run_id: RunName | None
    url: str | None
    api_url: str | None


class AcceptingAnswer(StartedAnswer):
    """An acceptance in progress: its merge is being tested."""


class UndoingAnswer(StartedAnswer):
    """An undo in progress: the base branch is being tested without the run's work."""


class BuiltOnAnswer(AnswerModel):
    """The requests that depend on a run's work, by what they are."""

    done: list[RequestName]
    running: list[RequestName]
    waits: list[RequestName]


class UndoneAnswer(RunResultAnswer):
    """A run whose acceptance was undone, the commit that took its work out, and what had been built on that."""

    undone_as: str | None
    built_on: BuiltOnAnswer


class LogPartAnswer(AnswerModel):
    """A part of a log, and the byte from which it continues."""

    request_id: RequestName
    run_id: RunName
    step: int
    path: str
    offset: int
    text: str
    next_offset: int
    size: int
    may_grow: bool
    was_cut: bool


class DiffFileAnswer(AnswerModel):
    """One changed file."""

    path: str
    old_path: str | None
    added: int
    deleted: int
    is_binary: bool
    is_unfinished: bool


class DiffAnswer(AnswerModel):
    """What a run, or one step of it, changed."""

    request_id: RequestName
    run_id: RunName
    step_id: StepName | None
    old: str
    new: str
    unfinished_step_id: StepName | None
    is_gone: bool
    is_cut: bool
    added: int
    deleted: int
    files: list[DiffFileAnswer]
    diff: str
