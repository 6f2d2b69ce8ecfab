"""What a run did (RUN-19): the one value that terminal, `report.md`, API, page and the comment on an issue show."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.usage import Usage
from aiflow.domain.runs.spending import rest_of
from aiflow.domain.runs.step_work import StepWork
from aiflow.domain.runs.stopped import way_out

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiflow.domain.agents.judging import Criterion
    from aiflow.domain.agents.plan import PlanStep
    from aiflow.domain.lifecycle import RunState
    from aiflow.domain.runs.follow_ups import FollowUps
    from aiflow.domain.runs.run import Run
    from aiflow.domain.runs.step_record import StepRecord
    from aiflow.domain.runs.stopped import WayOut

ROLES = tuple(Role)


class StepReport(NamedTuple):
    """What became of one step: how often it was tried and its tests ran, and its implementer's summary."""

    step_id: str
    title: str
    is_done: bool
    commit: str | None
    attempts: int
    test_runs: int
    summary: str
    record: StepRecord


class RoleUse(NamedTuple):
    """What one role used; None is no role: tests and set-up, and what older versions recorded without roles."""

    role: str | None
    usage: Usage


class RunReport(NamedTuple):
    """What a run did, what that used, and what to do next; without an `accepted_as` it is not in its base branch."""

    request_id: str
    run_id: str
    title: str
    state: RunState
    cause: str | None
    branch: str
    base_branch: str
    accepted_as: str | None
    steps: tuple[StepReport, ...]
    criteria: tuple[Criterion, ...]
    usage: Usage
    roles: tuple[RoleUse, ...]
    warnings: tuple[str, ...]
    follow_ups: FollowUps
    way_out: WayOut


def report_of(run: Run) -> RunReport:
    """Sum up what a run did so far."""
    return RunReport(
        run.request_id,
        run.run_id,
        run.title,
        run.state,
        run.error.cause if run.error else None,
        run.place.branch,
        run.place.base_branch,
        run.accepted_as,
        tuple(_step(run, step) for step in run.plan),
        criteria_of(run),
        run.usage,
        tuple(_roles(run)),
        run.warnings,
        run.follow_ups,
        way_out(run),
    )


def criteria_of(run: Run) -> tuple[Criterion, ...]:
    """Return the request's acceptance criteria as they were judged last (RUN-18); none if none was asked for."""
    works = (run.steps.get(step.id, StepWork()) for step in reversed(run.plan))
    judged = (review.criteria for work in works for review in reversed(work.record.reviews))
    return next(filter(None, judged), ())


def _step(run: Run, step: PlanStep) -> StepReport:
    work = run.steps.get(step.id, StepWork())
    is_open = step.id == run.current_step_id and not work.is_done
    summary = run.visit.summary if is_open else work.summary
    attempts, test_runs = (work.calls.get(name, 0) for name in (Role.IMPLEMENTER.value, "tests"))
    return StepReport(step.id, step.title, work.is_done, work.commit, attempts, test_runs, summary, work.record)


def _roles(run: Run) -> Iterator[RoleUse]:
    """Yield what each role used, in the order in which they are called, and what no role did."""
    for role in (*ROLES, *(name for name in run.roles if name not in ROLES)):
        if (used := run.roles.get(role, Usage())) != Usage():
            yield RoleUse(str(role), used)
    if (rest := rest_of(run.usage, run.roles)) != Usage():
        yield RoleUse(None, rest)
