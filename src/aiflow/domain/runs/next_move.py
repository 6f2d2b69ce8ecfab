"""What a run does next (RUN-2): the one decision that starting, resuming and recovering share."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.ceilings import left, reached, tighter
from aiflow.domain.lifecycle import RunState

if TYPE_CHECKING:
    from aiflow.domain.agents.ceilings import Budget
    from aiflow.domain.runs.run import Run
    from aiflow.domain.runs.run_limits import RunLimits


@dataclass(frozen=True, slots=True)
class CallRole:
    """An agent is called."""

    role: Role


class Action(Enum):
    """What a run does besides calling agents."""

    PREPARE = "the worktree is made and set up"
    BASELINE = "the tests run on the base, before any agent is called"
    CONTINUE = "the work that the run continues comes into its branch, in line with the base"
    PLAN = "the request itself becomes the only step: no planner is called"
    TEST = "the implementer's work is tested"
    COMMIT = "the step is committed"
    REPORT = "the last step is done: the report is written"
    WAIT = "the agent's quota is waited for"
    LIMIT = "a ceiling is reached: the run stops"
    # A role's last call of this visit was lost in a crash: there is none left (RUN-4, RUN-14).
    GIVE_UP = "the run stops"


def next_action(run: Run, limits: RunLimits) -> CallRole | Action | None:
    """Say what a run does next, or None if it has ended."""
    if not run.is_active:
        return None
    return _without_a_call(run) or _before_a_call(run, limits) or CallRole(_ROLES[run.state])


def _without_a_call(run: Run) -> Action | None:
    """Return what a run does in its state without an agent, before any agent has a turn."""
    if run.has_to_continue and not run.needs_baseline:
        return Action.CONTINUE
    if run.state is RunState.INIT or not run.is_prepared:
        return Action.PREPARE
    if run.state is RunState.PLANNING:
        return Action.BASELINE if run.needs_baseline else None if run.course.has_plan else Action.PLAN
    if run.state is RunState.TESTING:
        return _of_tests(run)
    return Action.REPORT if run.state is RunState.REPORTING else None


def _of_tests(run: Run) -> Action | None:
    """Return what is due to the work of a step; None is its review."""
    if not run.visit.is_tested:
        return Action.TEST
    return Action.COMMIT if run.visit.is_reviewed or not run.course.has_review else None


def _before_a_call(run: Run, limits: RunLimits) -> Action | None:
    """Return what comes before an agent may be called, or in place of it."""
    if run.quota is not None and not run.quota.is_over:
        return Action.WAIT
    if run.is_spent(_ROLES[run.state], limits):
        return Action.GIVE_UP
    return Action.LIMIT if ceiling_reached(run, limits) else None


def ceiling_reached(run: Run, limits: RunLimits) -> str | None:
    """Return the setting whose ceiling is reached: the run's own, or that of the auto-run it belongs to."""
    own = reached(run.usage, limits.ceilings)
    if own is not None:
        return f"limits.run_{own}"
    of_session = reached(limits.spent + run.usage, limits.session_ceilings)
    return None if of_session is None else f"limits.session_{of_session}"


def budget_of(run: Run, limits: RunLimits) -> Budget:
    """Return what the next call may still use."""
    return tighter(left(run.usage, limits.ceilings), left(limits.spent + run.usage, limits.session_ceilings))


_ROLES = {
    RunState.PLANNING: Role.PLANNER,
    RunState.IMPLEMENTING: Role.IMPLEMENTER,
    RunState.TESTING: Role.QA,
}
