"""The ways on of what waits for a person (D34 §6.2, WEB-1): the recommended one, and those that are open besides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.lifecycle import RunState
from aiflow.domain.next_action import OPEN, ActionKind, NextAction
from aiflow.domain.reasons import BY_HAND, WayOn
from aiflow.domain.runs.resume import Goal, Refused, ResumeMode, decide_resume
from aiflow.domain.runs.stopped import as_stopped, recommended

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiflow.domain.runs.run import Run

_MODES = {
    ResumeMode.RESUME: ActionKind.RESUME,
    ResumeMode.RETRY_STEP: ActionKind.RETRY_STEP,
    ResumeMode.REPLAN: ActionKind.REPLAN,
}
# To answer is to resume, and those take the same way.
_SAME = {ActionKind.ANSWER: ActionKind.RESUME}


def other_ways(run: Run, first: NextAction | None) -> tuple[NextAction, ...]:
    """Return the ways on besides the recommended one; what would be refused whatever a person says is none."""
    if run.is_active or recommended(run) is WayOn.ISSUE_RETRY:
        return ()
    ways = _of_done(run) if run.state is RunState.DONE else _of_stopped(run)
    taken = _SAME.get(first.kind, first.kind) if first else None
    return tuple(way for way in ways if way.kind is not taken or way.options)


def _of_done(run: Run) -> Iterator[NextAction]:
    yield NextAction(ActionKind.ACCEPT, run.request_id)
    yield NextAction(ActionKind.SEND_BACK, run.request_id).having(message=OPEN)


def _of_stopped(run: Run) -> Iterator[NextAction]:
    stopped = as_stopped(run, None)
    order = [ResumeMode.RESUME, ResumeMode.RETRY_STEP, ResumeMode.REPLAN]
    for mode in order:
        action = NextAction(_MODES[mode], run.request_id)
        if not isinstance(decide_resume(stopped, Goal(mode), run.step_retries), Refused):
            yield action
        elif not isinstance(decide_resume(stopped, Goal(mode, is_forced=True), run.step_retries), Refused):
            yield action.having(force="")
    why = run.error
    if why is not None and run.state is RunState.NEEDS_INPUT and (why.cause or why.reason_code) in BY_HAND:
        yield NextAction(ActionKind.RESUME, run.request_id).having(keep_changes="")
