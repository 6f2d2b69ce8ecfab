"""What a person can do with a run where it stands (D34 §6.2; RUN-8, WEB-1): the recommended way first.

What cannot work is not offered; what works only by force is offered as that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.lifecycle import RunState
from aiflow.domain.next_action import ActionKind
from aiflow.domain.reasons import BY_HAND, WayOn
from aiflow.domain.request import RequestStatus
from aiflow.domain.run_summary import FROM_NEWER
from aiflow.domain.runs.stopped import may_repeat, recommended

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiflow.domain.runs.run import Run


class Way(NamedTuple):
    """One way on; `keeps_changes` takes what a person mended by hand, `is_forced` overrides the advice against it."""

    kind: ActionKind
    is_recommended: bool = False
    is_forced: bool = False
    keeps_changes: bool = False


class RunSurroundings(NamedTuple):
    """What a run does not know of itself: is it worked on, what came after it, and its request's status."""

    is_worked_on: bool = False
    newer_run_id: str | None = None
    status: RequestStatus | None = None


_REPEATS = {WayOn.RETRY_STEP: ActionKind.RETRY_STEP, WayOn.REPLAN: ActionKind.REPLAN, WayOn.RESUME: ActionKind.RESUME}


def ways_on(run: Run, around: RunSurroundings) -> tuple[Way, ...]:
    """Return what can be done with a run, in the order of the page's buttons."""
    if run.replaced_by or around.newer_run_id:
        return (Way(ActionKind.SHOW, is_recommended=True),)
    if run.accepted_as:
        return ()
    if run.state is RunState.DONE:
        return () if around.is_worked_on else tuple(_of_done(run))
    if run.is_active and around.is_worked_on:
        return (Way(ActionKind.CANCEL),)
    return tuple(_of_failed(run, around) if run.state is RunState.FAILED else _of_stopped(run))


def _of_done(run: Run) -> Iterator[Way]:
    """What is done can be accepted or sent back; first brought in line with its base where it conflicts."""
    is_behind = recommended(run) is WayOn.UPDATE
    if is_behind:
        yield Way(ActionKind.UPDATE, is_recommended=True)
    yield Way(ActionKind.ACCEPT, is_recommended=not is_behind)
    yield Way(ActionKind.SEND_BACK)


def _of_failed(run: Run, around: RunSurroundings) -> Iterator[Way]:
    """A closed run is followed by a new one; only by force does it go on itself."""
    if around.status is RequestStatus.READY:
        yield Way(ActionKind.RUN, is_recommended=True)
    else:
        yield Way(ActionKind.SET, is_recommended=True)
    if not _is_sent_back(run) and not _is_from_newer(run):
        yield Way(ActionKind.RESUME, is_forced=True)


def _of_stopped(run: Run) -> Iterator[Way]:
    if _is_from_newer(run):
        yield Way(ActionKind.REPLAN, is_recommended=True)
        return
    is_asked = run.error is not None and run.error.question is not None
    first = ActionKind.ANSWER if is_asked else _first(run)
    others = [ActionKind.RETRY_STEP, ActionKind.REPLAN]
    others = others if is_asked else [ActionKind.RESUME, *others]
    for kind in dict.fromkeys((first, *others) if first else others):
        if kind is not ActionKind.RETRY_STEP or run.current_step is not None:
            yield _way(run, kind, is_recommended=kind is first)


def _first(run: Run) -> ActionKind | None:
    """Return the recommended way; none where something has to be mended first."""
    if run.is_active:  # its process died: it goes on where it was
        return ActionKind.RESUME
    kind = _REPEATS.get(recommended(run) or WayOn.NONE)
    return ActionKind.RESUME if kind is ActionKind.RETRY_STEP and run.current_step is None else kind


def _way(run: Run, kind: ActionKind, *, is_recommended: bool) -> Way:
    root = (run.error.cause or run.error.reason_code) if run.error else None
    is_by_hand = kind is ActionKind.RESUME and root in BY_HAND
    repeats = kind in (ActionKind.RESUME, ActionKind.RETRY_STEP)
    is_forced = repeats and not is_by_hand and not run.is_active and not may_repeat(run)
    return Way(kind, is_recommended, is_forced, is_by_hand)


def _is_sent_back(run: Run) -> bool:
    return run.error is not None and run.error.reason_code == "SENT_BACK"


def _is_from_newer(run: Run) -> bool:
    return run.error is not None and run.error.reason_code == FROM_NEWER
