"""What a task is told beside its action: a person's wish (D34 §4), written into its options and read back.

The answer is the task's prompt, which may be long; everything else is short.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.resume import Goal, ResumeMode
from aiflow.domain.task import TaskAction
from aiflow.usecases.resume_run import Wish

if TYPE_CHECKING:
    from aiflow.domain.task import Task

STEP, FORCE, KEEP_CHANGES, UPDATE = "step", "force", "keep_changes", "update"
YES = "yes"

ACTIONS = {
    ResumeMode.RESUME: TaskAction.RESUME,
    ResumeMode.RETRY_STEP: TaskAction.RETRY_STEP,
    ResumeMode.REPLAN: TaskAction.REPLAN,
}
_MODES = {action: mode for mode, action in ACTIONS.items()}


def options_of(wish: Wish, *, updates: bool = False) -> dict[str, str]:
    """Write a wish, all but its answer, as a task's options."""
    said = {FORCE: wish.goal.is_forced, KEEP_CHANGES: wish.keeps_changes, UPDATE: updates}
    step = {STEP: wish.goal.target_step_id} if wish.goal.target_step_id else {}
    return {**step, **{name: YES for name, is_said in said.items() if is_said}}


def wish_of(task: Task, answer: str = "") -> Wish:
    """Read the wish of a task that lets a run go on."""
    options = task.options
    goal = Goal(_MODES[task.action], options.get(STEP), is_forced=FORCE in options)
    return Wish(goal, answer or None, keeps_changes=KEEP_CHANGES in options)


def is_update(task: Task) -> bool:
    """Tell whether a finished run is to be brought in line with its base branch (`resume --update`)."""
    return UPDATE in task.options
