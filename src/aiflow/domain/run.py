"""A run (RUN-1, RUN-2): everything it knows of itself.

What it does next is decided by `next_action`, what happened to it is recorded by `run_events`; all is pure, so a run
read back after a crash goes on by the same rules as one that was never interrupted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aiflow.domain.answers import Role
from aiflow.domain.lifecycle import ACTIVE_RUN_STATES, RunOutcome, RunState, outcome_of
from aiflow.domain.reasons import WayOn, way_on
from aiflow.domain.resume import StoppedRun
from aiflow.domain.retry import NOT_THE_WORK, replan_signal
from aiflow.domain.usage import Ceilings, Usage

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from aiflow.domain.place import Place
    from aiflow.domain.plan import PlanStep
    from aiflow.domain.quota import QuotaWait
    from aiflow.domain.retry import StepStop
    from aiflow.domain.run_summary import TaskRef

STAGE_VERSION = "1.0"


@dataclass(frozen=True, slots=True)
class RunLimits:
    """The limits of RUN-4 and the ceilings on what agents use, from the settings."""

    role_attempts: int = 2
    step_retries: int = 3
    step_files: int = 20
    step_lines: int = 400
    # Of this run, and of the auto-run it belongs to, which has used up `spent` in earlier runs.
    ceilings: Ceilings = field(default_factory=Ceilings)
    session_ceilings: Ceilings = field(default_factory=Ceilings)
    spent: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class Brief:
    """The request as it was when the run began (REQ-8)."""

    id: str
    title: str
    body: str
    priority: str
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Feedback:
    """A failure as the next call of the role is told it."""

    reason_code: str
    summary: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where a failure was seen (RUN-1's errors.json)."""

    failed_at_state: str = ""
    step_id: str | None = None
    command: str | None = None
    exit_code: int | None = None
    stderr_snippet: str = ""
    log_paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunError:
    """Why a run stopped."""

    reason_code: str
    summary: str
    cause: str | None = None
    question: str | None = None
    evidence: Evidence = field(default_factory=Evidence)
    facts: tuple[tuple[str, str], ...] = ()
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StepWork:
    """What became of one step: the commit before it, its own, how often each role was called, where it stopped."""

    base: str | None = None
    commit: str | None = None
    is_done: bool = False
    summary: str = ""
    retries: int = 0
    calls: Mapping[str, int] = field(default_factory=dict)
    stops: tuple[StepStop, ...] = ()
    kept: str | None = None
    sessions: Mapping[str, str] = field(default_factory=dict)
    # Only in a step that merges the base branch in (GIT-3): the base's commit, the files that conflict, and which of
    # them no marker shows.
    merges: str | None = None
    conflicts: tuple[str, ...] = ()
    unmarked: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Visit:
    """One stay in a step (or in PLANNING): what the limits of RUN-4 count."""

    calls: Mapping[str, int] = field(default_factory=dict)
    failures: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    feedback: tuple[Feedback, ...] = ()
    calling: Role | None = None
    crashes: int = 0
    is_tested: bool = False
    is_reviewed: bool = False
    changed_files: int = 0
    changed_lines: int = 0
    areas: frozenset[str] = frozenset()
    summary: str = ""


@dataclass(frozen=True, slots=True)
class Happening:
    """One line of the history."""

    at: datetime
    event: str
    step_id: str | None = None
    reason_code: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """One attempt at a request."""

    request_id: str
    run_id: str
    place: Place
    created_at: datetime
    state: RunState = RunState.INIT
    title: str = ""
    agent: str = ""
    plan: tuple[PlanStep, ...] = ()
    current_step_id: str | None = None
    planning_calls: int = 0
    planning_session: str | None = None
    usage: Usage = field(default_factory=Usage)
    quota: QuotaWait | None = None
    steps: Mapping[str, StepWork] = field(default_factory=dict)
    visit: Visit = field(default_factory=Visit)
    error: RunError | None = None
    history: tuple[Happening, ...] = ()
    answers: tuple[tuple[str, str], ...] = ()
    feedback: tuple[Feedback, ...] = ()
    warnings: tuple[str, ...] = ()
    is_prepared: bool = False
    left_tree: str | None = None
    has_edits: bool = False
    stopped_in: RunState | None = None
    compare_url: str | None = None
    replaces: str | None = None
    replaced_by: str | None = None
    # The base branch's commit that brought it in; a DONE run with an `error` was not accepted for that reason.
    accepted_as: str | None = None
    lock: Mapping[str, object] = field(default_factory=dict)
    # None where its owner works, or worked last, for no task.
    task: TaskRef | None = None

    @property
    def is_active(self) -> bool:
        """Whether the run is still working, or was when its process died."""
        return self.state in ACTIVE_RUN_STATES

    @property
    def outcome(self) -> RunOutcome:
        """What it means to the request, task and issue it belongs to."""
        reason = self.error.reason_code if self.error else None
        return outcome_of(self.state, reason, is_accepted=self.accepted_as is not None)

    @property
    def current_step(self) -> PlanStep | None:
        """The step the run stands in."""
        return next((step for step in self.plan if step.id == self.current_step_id), None)

    @property
    def current_index(self) -> int | None:
        """The place of the current step in the plan, counted from 0 (D34 §3)."""
        return next((number for number, step in enumerate(self.plan) if step.id == self.current_step_id), None)

    @property
    def work(self) -> StepWork:
        """What became of the current step so far."""
        return self.steps.get(self.current_step_id or "", StepWork())

    @property
    def step_base(self) -> str:
        """The commit on which the current step works."""
        return self.work.base or self.place.base_commit

    @property
    def tip(self) -> str:
        """The commit at which the run's branch should stand."""
        return (self.work.commit if self.work.is_done else None) or self.step_base

    @property
    def changed_at(self) -> datetime:
        """When something last happened to it."""
        return self.history[-1].at if self.history else self.created_at

    @property
    def has_commits(self) -> bool:
        """Whether any finished step changed something."""
        return any(work.commit for work in self.steps.values())

    def calls_of(self, role: Role) -> int:
        """Return how often a role was called in this visit."""
        return self.visit.calls.get(role, 0)

    def session_of(self, role: Role) -> str | None:
        """Return the agent's session that a role's next call goes on with."""
        return self.planning_session if role is Role.PLANNER else self.work.sessions.get(role)

    def is_spent(self, role: Role, limits: RunLimits) -> bool:
        """Tell whether a role may not be called again in this visit (RUN-4)."""
        return self.calls_of(role) >= limits.role_attempts

    def may_call_again(self, limits: RunLimits) -> bool:
        """Tell whether the role whose call was cut off, if one was, has an attempt left in this visit."""
        role = self.visit.calling
        return role is None or not self.is_spent(role, limits)


def as_stopped(run: Run, newer_run_id: str | None) -> StoppedRun:
    """Sum a run up for the decision how it goes on."""
    step = run.current_step
    stops = run.work.stops if step else ()
    root = (run.error.cause or run.error.reason_code) if run.error else None
    return StoppedRun(
        run_id=run.run_id,
        state=run.state,
        step_ids=tuple(planned.id for planned in run.plan),
        done_step_ids=frozenset(step_id for step_id, work in run.steps.items() if work.is_done),
        current_step_id=run.current_step_id,
        retries={step_id: work.retries for step_id, work in run.steps.items() if work.retries},
        replan_signal=replan_signal(stops, step.target_paths) if step else None,
        replaced_by=run.replaced_by,
        newer_run_id=newer_run_id,
        is_work_done=run.stopped_in is RunState.TESTING and root in NOT_THE_WORK,
    )


def recommended(run: Run) -> WayOn | None:
    """Return the way on that is open: a new plan where the step's stops call for one, else what its reason says.

    What is done can only be accepted, or brought in line with its base first.
    """
    if run.error is None:
        return None
    if run.state is RunState.DONE:
        way = way_on(run.error.reason_code, run.error.cause)
        return way if way is WayOn.UPDATE else WayOn.ACCEPT
    step = run.current_step
    if step is not None and not run.work.is_done and replan_signal(run.work.stops, step.target_paths) is not None:
        return WayOn.REPLAN
    return way_on(run.error.reason_code, run.error.cause)
