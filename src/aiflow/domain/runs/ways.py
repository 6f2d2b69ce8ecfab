"""What a person can do with a run in its state (D34 §6.2; RUN-8, WEB-1): the recommended way first.

What cannot work is not offered; what works only by force is offered as that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.issue_ways import answer, is_issue
from aiflow.domain.lifecycle import RunState
from aiflow.domain.next_action import OPEN, ActionKind, NextAction, set_status
from aiflow.domain.reasons import BY_HAND, WAYS, WayOn
from aiflow.domain.request import RequestStatus
from aiflow.domain.run_summary import FROM_NEWER
from aiflow.domain.runs.retry import BASE_RED
from aiflow.domain.runs.stopped import may_repeat, recommended

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiflow.domain.runs.run import Run


class Way(NamedTuple):
    """One way to continue: what it does, and whether it is the recommended one."""

    action: NextAction
    is_recommended: bool = False

    @property
    def kind(self) -> ActionKind:
        """What is done."""
        return self.action.kind

    @property
    def is_forced(self) -> bool:
        """Whether it overrides the advice against it."""
        return self.action.has("force")

    @property
    def keeps_changes(self) -> bool:
        """Whether it takes what a person fixed by hand."""
        return self.action.has("keep_changes")

    @property
    def has_no_baseline(self) -> bool:
        """Whether it leaves out the tests of the base (RUN-17)."""
        return self.action.has("no_baseline")


class RunSurroundings(NamedTuple):
    """What a run does not know of itself: is it worked on, what came after it, its request's status.

    `is_continued` if the next auto-run continues it: nothing is asked of a person.
    """

    is_worked_on: bool = False
    newer_run_id: str | None = None
    status: RequestStatus | None = None
    is_continued: bool = False


_REPEATS = (WayOn.RETRY_STEP, WayOn.REPLAN, WayOn.RESUME)


def ways_on(run: Run, around: RunSurroundings) -> tuple[Way, ...]:
    """Return what can be done with a run, in the order of the page's buttons."""
    newer = run.replaced_by or around.newer_run_id
    if newer:
        return (Way(NextAction(ActionKind.SHOW, run.request_id, newer), is_recommended=True),)
    if run.accepted_as or (recommended(run) is WayOn.ISSUE_RETRY and not is_issue(run.request_id)):
        return ()
    if run.state is RunState.DONE:
        return () if around.is_worked_on else tuple(_of_done(run))
    if run.is_active and around.is_worked_on:
        return (Way(NextAction(ActionKind.CANCEL, run.request_id)),)
    if is_issue(run.request_id) and not run.is_active:
        return tuple(_of_issue(run, around))
    ways = _of_failed(run, around) if run.state is RunState.FAILED else _of_stopped(run)
    return tuple(Way(way.action, way.is_recommended and not around.is_continued) for way in ways)


def _of_done(run: Run) -> Iterator[Way]:
    """What is done can be accepted or sent back; first brought in line with its base where it conflicts.

    After an undo it is more likely sent back.
    """
    way = recommended(run)
    back = Way(NextAction(ActionKind.SEND_BACK, run.request_id).having(message=OPEN), way is WayOn.SEND_BACK)
    if back.is_recommended:
        yield back
    if way is WayOn.UPDATE and not is_issue(run.request_id):
        yield Way(NextAction(ActionKind.UPDATE, run.request_id), is_recommended=True)
    yield Way(NextAction(ActionKind.ACCEPT, run.request_id), way not in (WayOn.UPDATE, WayOn.SEND_BACK))
    if not back.is_recommended:
        yield back


def _of_issue(run: Run, around: RunSurroundings) -> Iterator[Way]:
    """An issue's run that has stopped is tried again with a new one, with a person's words (ISS-6)."""
    if around.status is RequestStatus.READY:
        yield Way(NextAction(ActionKind.RUN, run.request_id), is_recommended=True)
    elif around.status in (None, RequestStatus.BLOCKED):
        yield Way(answer(run.request_id), is_recommended=True)


def _of_failed(run: Run, around: RunSurroundings) -> Iterator[Way]:
    """A closed run is followed by a new one; only by force does it continue itself."""
    if around.status is RequestStatus.READY:
        yield Way(NextAction(ActionKind.RUN, run.request_id), is_recommended=True)
    else:
        yield Way(set_status(run.request_id, RequestStatus.READY.value), is_recommended=True)
    if not _has_stopped_for(run, "SENT_BACK", FROM_NEWER):
        yield Way(NextAction(ActionKind.RESUME, run.request_id).having(force=""))


def _of_stopped(run: Run) -> Iterator[Way]:
    if _has_stopped_for(run, FROM_NEWER):
        yield Way(NextAction(ActionKind.REPLAN, run.request_id), is_recommended=True)
        return
    is_asked = run.error is not None and (run.error.question is not None or recommended(run) is WayOn.ANSWER)
    first = ActionKind.ANSWER if is_asked else _first(run)
    others = [ActionKind.RETRY_STEP, ActionKind.REPLAN]
    others = others if is_asked else [ActionKind.RESUME, *others]
    for kind in dict.fromkeys((first, *others) if first else others):
        if kind is not ActionKind.RETRY_STEP or run.current_step is not None:
            yield Way(_repeating(run, kind), is_recommended=kind is first)
        if kind is ActionKind.RESUME and _has_stopped_for(run, BASE_RED):
            yield Way(NextAction(kind, run.request_id).having(no_baseline=""))


def _first(run: Run) -> ActionKind | None:
    """Return the recommended way; none if something has to be fixed first."""
    if run.is_active:  # its process crashed: it continues where it was
        return ActionKind.RESUME
    way = recommended(run)
    kind = WAYS[way].kind if way in _REPEATS else None
    return ActionKind.RESUME if kind is ActionKind.RETRY_STEP and run.current_step is None else kind


def _repeating(run: Run, kind: ActionKind) -> NextAction:
    """Return the action that continues a run: with what was fixed by hand, or by force, if it needs that."""
    action = NextAction(kind, run.request_id)
    if kind is ActionKind.ANSWER:
        return action.having(answer=OPEN)
    if kind is ActionKind.REPLAN:
        return action
    if kind is ActionKind.RESUME and run.error is not None and (run.error.cause or run.error.reason_code) in BY_HAND:
        return action.having(keep_changes="")
    return action if run.is_active or may_repeat(run) else action.having(force="")


def _has_stopped_for(run: Run, *codes: str) -> bool:
    return run.error is not None and run.error.reason_code in codes
