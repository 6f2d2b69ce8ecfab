"""What a run did, and what runs cost, as they are answered."""

from __future__ import annotations

from datetime import date

from pydantic import Field

from aiflow.api.models.base import AnswerModel, Code, RequestName, RunName, StepName
from aiflow.api.models.runs import FollowUpAnswer, SuggestionAnswer, UsageAnswer
from aiflow.domain.lifecycle import RunState


class ChangedFileAnswer(AnswerModel):
    """A file that a step changed; a binary file has no lines."""

    path: str
    added: int
    deleted: int


class ChangesAnswer(AnswerModel):
    """What a step changed: its first files, how many more there are, the lines of all of them."""

    files: list[ChangedFileAnswer]
    more: int
    added: int
    deleted: int


class EndedTestAnswer(AnswerModel):
    """How one kind of test ended last."""

    kind: str
    seconds: float
    reason_code: Code | None
    exit_code: int | None
    has_passed: bool


class ReviewAnswer(AnswerModel):
    """What a reviewer said."""

    is_passed: bool
    findings: list[str]


class CriterionAnswer(AnswerModel):
    """An acceptance criterion of the request, as the last review judged it."""

    number: int
    text: str
    is_met: bool | None = Field(description="`null`: the reviewer did not judge it.")
    note: str


class StepReportAnswer(AnswerModel):
    """What became of a step."""

    step_id: StepName
    title: str
    is_done: bool
    commit: str | None
    attempts: int
    test_runs: int
    summary: str
    changes: ChangesAnswer
    tests: list[EndedTestAnswer]
    reviews: list[ReviewAnswer]


class RoleUseAnswer(UsageAnswer):
    """What a role used."""

    role: str | None = Field(
        description="`null` is what no role used: tests and set-up, and what older versions noted."
    )


class ReportAnswer(AnswerModel):
    """What a run did so far, and its report as it was written."""

    request_id: RequestName
    run_id: RunName
    report: str | None = Field(description="The run's `report.md`.")
    title: str
    state: RunState
    reason_code: Code | None
    cause: Code | None
    branch: str
    base_branch: str
    accepted_as: str | None
    steps: list[StepReportAnswer]
    criteria: list[CriterionAnswer] = Field(
        description="The request's acceptance criteria; none before the last review, without one, or if it names none."
    )
    usage: UsageAnswer
    roles: list[RoleUseAnswer]
    warnings: list[Code]
    follow_ups: list[FollowUpAnswer]
    follow_ups_left_out: int
    suggested_next: SuggestionAnswer


class CostAnswer(AnswerModel):
    """What some runs used; a run counts where it began."""

    runs: int
    agent_calls: int
    tokens: int
    cost_usd: float
    seconds: float


class RoleCostAnswer(CostAnswer):
    """What a role used."""

    role: str | None = Field(
        description="`null` is what no role used: tests and set-up, and what older versions noted."
    )


class RequestCostAnswer(CostAnswer):
    """What the runs of a request used."""

    request_id: RequestName


class NightCostAnswer(CostAnswer):
    """What the runs of a night used; it lasts from 18:00 of its evening to the next, by the server's clock."""

    evening: date


class MonthCostAnswer(CostAnswer):
    """What the runs of a month used."""

    month: str = Field(examples=["2025-12"])


class CostsAnswer(AnswerModel):
    """What runs cost: in the last days by role and request, most expensive first; by night and month, newest first."""

    days: int
    total: CostAnswer
    roles: list[RoleCostAnswer]
    requests: list[RequestCostAnswer]
    nights: list[NightCostAnswer]
    months: list[MonthCostAnswer]
