"""A run (RUN-1, RUN-2): everything it knows of itself.

What it does next is decided by `next_action`, what happened to it is recorded by `run_events`; all is pure, so a run
read back after a crash continues by the same rules as one that was never interrupted.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.usage import Usage
from aiflow.domain.issue_ways import is_issue
from aiflow.domain.lifecycle import ACTIVE_RUN_STATES, RunEvent, RunOutcome, RunState, outcome_of
from aiflow.domain.runs.course import Course
from aiflow.domain.runs.follow_ups import FollowUps
from aiflow.domain.runs.run_limits import STEP_RETRIES
from aiflow.domain.runs.step_work import StepWork

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from aiflow.domain.agents.call import Feedback
    from aiflow.domain.agents.former import Continued, Former
    from aiflow.domain.agents.plan import PlanStep
    from aiflow.domain.run_summary import TaskRef
    from aiflow.domain.runs.merge import Landing
    from aiflow.domain.runs.quota import QuotaWait
    from aiflow.domain.runs.run_limits import RunLimits
    from aiflow.domain.runs.worktree import Place


NOTHING_CHANGED = "NOTHING_CHANGED"
NOTHING_ADDED = "NOTHING_ADDED"


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
    """Why a run stopped; `output` is what a command put out that failed, its beginning and its end."""

    reason_code: str
    summary: str
    cause: str | None = None
    question: str | None = None
    evidence: Evidence = field(default_factory=Evidence)
    facts: tuple[tuple[str, str], ...] = ()
    choices: tuple[str, ...] = ()
    output: str = ""


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

    def told(self, feedback: Feedback) -> Visit:
        """Remember what the next agent call should know, once."""
        return self if feedback in self.feedback else replace(self, feedback=(*self.feedback, feedback))


# Lines of the history that change no state: whether its branch reached the remote.
PUSHED = "PUSHED"
PUSH_FAILED = "PUSH_FAILED"


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
    planning_retries: int = 0
    planning_session: str | None = None
    usage: Usage = field(default_factory=Usage)
    roles: Mapping[str, Usage] = field(default_factory=dict)  # what of it each role used
    quota: QuotaWait | None = None
    steps: Mapping[str, StepWork] = field(default_factory=dict)
    visit: Visit = field(default_factory=Visit)
    error: RunError | None = None
    history: tuple[Happening, ...] = ()
    answers: tuple[tuple[str, str], ...] = ()
    feedback: tuple[Feedback, ...] = ()
    warnings: tuple[str, ...] = ()
    course: Course = field(default_factory=Course)
    follow_ups: FollowUps = field(default_factory=FollowUps)
    # The commit on which the tests passed before any agent was called, where they had to (RUN-17).
    base_tested: str | None = None
    is_prepared: bool = False
    left_tree: str | None = None
    has_edits: bool = False
    stopped_in: RunState | None = None
    compare_url: str | None = None
    # The pull request that shows its work; where that is open, merged or closed is known to GitHub alone.
    pull_url: str | None = None
    replaces: str | None = None
    replaced_by: str | None = None
    # What it knows of the run before it; whose branch it continues, and which run continues its own (REQ-6a).
    former: Former | None = None
    continues: Continued | None = None
    continued_by: str | None = None
    is_dropped: bool = False  # sent back for a new start from the base
    # The commit its plan begins on, if that is not its base: the work it continues, in line with the base.
    begun_at: str | None = None
    # The base branch's commit that brought it in; a DONE run with an `error` was not accepted for that reason.
    accepted_as: str | None = None
    # The merge that was to become the base branch's: if the base has it, the work is in, recorded or not.
    merging_as: str | None = None
    landing: Landing | None = None  # how it came in, known once that is undone; by `accepted_as` whether that is over
    lock: Mapping[str, object] = field(default_factory=dict)
    step_retries: int = STEP_RETRIES  # how often its owner lets a step be done again after it failed
    task: TaskRef | None = None  # of the queue, for which its owner works or worked last

    @property
    def is_active(self) -> bool:
        """Whether the run is still working, or was when its process crashed."""
        return self.state in ACTIVE_RUN_STATES

    @property
    def waits_until(self) -> datetime | None:
        """Until when it waits for its agent's quota, None if it does not."""
        return self.quota.until if self.is_active and self.quota is not None and not self.quota.is_over else None

    @property
    def outcome(self) -> RunOutcome:
        """What it means to the request, task and issue it belongs to."""
        reason = self.error.reason_code if self.error else None
        return outcome_of(self.state, reason, is_accepted=self.accepted_as is not None)

    @property
    def current_step(self) -> PlanStep | None:
        """The run's current step."""
        return next((step for step in self.plan if step.id == self.current_step_id), None)

    @property
    def current_index(self) -> int | None:
        """The place of the current step in the plan, counted from 0 (D34 §3)."""
        return next((number for number, step in enumerate(self.plan) if step.id == self.current_step_id), None)

    @property
    def has_work_before_it(self) -> bool:
        """Whether a working run knows what to work on: an old file may say that it is in a step, and not in which."""
        is_in_step = self.state in (RunState.IMPLEMENTING, RunState.TESTING)
        return self.current_step is not None if is_in_step else bool(self.plan) or self.state is not RunState.REPORTING

    @property
    def work(self) -> StepWork:
        """What became of the current step so far."""
        return self.steps.get(self.current_step_id or "", StepWork())

    @property
    def step_base(self) -> str:
        """The commit on which the current step works."""
        return self.work.base or self.start

    @property
    def start(self) -> str:
        """The commit on which its plan begins."""
        return self.begun_at or self.place.base_commit

    @property
    def is_continued_next(self) -> bool:
        """Whether the run after a send-back continues this one: an issue's retry is always a clean start (ISS-6)."""
        return not is_issue(self.request_id) and not self.is_dropped

    @property
    def has_to_continue(self) -> bool:
        """Whether the work that it continues is not in its branch yet."""
        return self.continues is not None and self.begun_at is None

    @property
    def is_planned(self) -> bool:
        """Whether it has a plan, beside the step that brings what it continues in line with its base."""
        return any(step.id not in self.steps or self.steps[step.id].merges is None for step in self.plan)

    @property
    def needs_baseline(self) -> bool:
        """Whether the tests of its base have to pass before its first agent is called (RUN-17)."""
        is_begun = self.usage.calls > 0 or self.has_edits
        return self.course.has_baseline and not is_begun and self.base_tested != self.place.base_commit

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
        """Whether its branch has work: what it continues, or what a finished step changed."""
        return self.begun_at is not None or any(work.commit for work in self.steps.values())

    @property
    def set_up_at(self) -> str:
        """The commit that its worktree was set up for last: where it began, or where its base was merged in."""
        merging = [work.base for work in self.steps.values() if work.merges and work.base]
        return merging[-1] if merging else self.start

    @property
    def is_idle(self) -> bool:
        """Whether a run that is done changed nothing, and says so: only a person accepts that (REQ-6)."""
        return self.error is not None and self.error.reason_code in (NOTHING_CHANGED, NOTHING_ADDED)

    @property
    def was_empty(self) -> bool:
        """Whether it was accepted without anything to merge."""
        return [at.reason_code for at in self.history if at.event == RunEvent.ACCEPTED][-1:] == [NOTHING_CHANGED]

    @property
    def push(self) -> Happening | None:
        """How the last push of its branch went; None if it was never tried."""
        return next((line for line in reversed(self.history) if line.event in (PUSHED, PUSH_FAILED)), None)

    @property
    def is_pushed(self) -> bool:
        """Whether its branch reached the remote as it is."""
        return self.push is not None and self.push.event == PUSHED

    def calls_of(self, role: Role) -> int:
        """Return how often a role was called in this visit."""
        return self.visit.calls.get(role, 0)

    def session_of(self, role: Role) -> str | None:
        """Return the agent's session that a role's next call continues."""
        return self.planning_session if role is Role.PLANNER else self.work.sessions.get(role)

    def is_spent(self, role: Role, limits: RunLimits) -> bool:
        """Return whether a role may not be called again in this visit (RUN-4)."""
        return self.calls_of(role) >= limits.role_attempts

    def may_call_again(self, limits: RunLimits) -> bool:
        """Return whether the role whose call was cut off, if one was, has an attempt left in this visit."""
        role = self.visit.calling
        return role is None or not self.is_spent(role, limits)
