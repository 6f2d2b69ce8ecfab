"""Tasks, runners and namespaces, as they are answered and taken."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from aiflow.api.models.base import AnswerModel, BodyModel, Code, Instant, RequestName, RunName, body_config
from aiflow.api.models.doctor import CheckAnswer
from aiflow.api.models.errors import ErrorModel
from aiflow.domain.lifecycle import TaskStatus
from aiflow.domain.queue.task import TaskAction
from aiflow.domain.request import Priority


class CheckoutAnswer(AnswerModel):
    """A checkout: its machine and its folder."""

    host: str
    root: str


class TaskStandingAnswer(AnswerModel):
    """Why a live task is not taken, or who works on it."""

    code: str
    detail: str
    facts: dict[str, Any]


class TaskAnswer(AnswerModel):
    """One task."""

    namespace: str
    task_id: str
    status: TaskStatus
    action: TaskAction
    request_id: RequestName | None
    run_id: RunName | None
    priority: Priority
    checkout: CheckoutAnswer | None
    prompt: str | None
    prompt_bytes: int | None
    options: dict[str, str]
    claimed_by: str | None
    fence: int | None
    reason_code: Code | None
    error_message: str | None
    predecessor: str | None
    successor: str | None
    created_at: Instant
    updated_at: Instant
    next_command: str | None
    standing: TaskStandingAnswer | None


class TasksAnswer(AnswerModel):
    """A page of tasks, newest first; `next_start` is where the next begins."""

    namespace: str | None
    tasks: list[TaskAnswer]
    next_start: str | None


class AddedTaskAnswer(TaskAnswer):
    """A task that is in the queue now."""

    is_new: bool


class AddedAnswer(AnswerModel):
    """What is queued, and what will keep runners from taking it."""

    tasks: list[AddedTaskAnswer]
    refused: list[ErrorModel]
    warnings: list[CheckAnswer]


class CancelledTaskAnswer(TaskAnswer):
    """A cancelled task; `is_released` says whether its runner has released it."""

    is_released: bool


class CancelledAnswer(AnswerModel):
    """What was cancelled."""

    tasks: list[CancelledTaskAnswer]
    refused: list[ErrorModel]


class RunnerAnswer(AnswerModel):
    """One runner."""

    namespace: str
    runner_id: str
    is_alive: bool
    state: Literal["working", "idle", "held_up", "stopping", "stopped", "dead", "silent"]
    held_up: str | None
    status: str
    task_id: str | None
    checkout: CheckoutAnswer
    pid: int | None
    version: str | None
    started_at: Instant
    last_heartbeat: Instant


class RunnersAnswer(AnswerModel):
    """Runners: running ones first."""

    runners: list[RunnerAnswer]
    total: int
    next_after: int | None


class NamespaceAnswer(AnswerModel):
    """One namespace, with its tasks counted."""

    namespace: str
    counts: dict[TaskStatus, int]
    total: int
    runners_alive: int
    is_current: bool


class NamespacesAnswer(AnswerModel):
    """The namespaces of the store."""

    namespaces: list[NamespaceAnswer]


class TaskBody(BodyModel):
    """Work for a runner: a request, a run to continue, a bare prompt, or an auto-run."""

    model_config = body_config(request_id="RQ-20251214-008")

    request_id: str | None = Field(default=None, min_length=1, max_length=180)
    run_id: str | None = Field(default=None, min_length=1, max_length=180)
    prompt: str | None = Field(default=None, max_length=500_000)
    auto: bool = False
    watch: bool = False
    mode: Literal["resume", "retry_step", "replan"] | None = Field(
        default=None, description="How to continue the run, or the request's latest run; without it, a run is started."
    )
    target_step_id: str | None = Field(default=None, min_length=1, max_length=20)
    answer: str | None = Field(default=None, max_length=100_000)
    keep_changes: bool = False
    update: bool = False
    force: bool = False
    quick: bool = Field(default=False, description="Call neither a planner nor a reviewer.")
    no_baseline: bool = Field(default=False, description="Leave out the tests of the base.")
    priority: Literal["P0", "P1", "P2", "P3"] | None = None
    task_id: str | None = Field(default=None, min_length=1, max_length=200)
    namespace: str | None = Field(default=None, min_length=1, max_length=200)
