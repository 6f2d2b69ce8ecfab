"""What a new run takes over from the one before it (REQ-6a, RUN-6): its work if it was sent back, and what is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.agents.call import Feedback
from aiflow.domain.agents.former import Continued, Former, FormerStep
from aiflow.domain.issue_ways import is_issue
from aiflow.domain.lifecycle import RunState
from aiflow.domain.request import RequestId
from aiflow.domain.run_summary import LOST
from aiflow.domain.runs.resume_events import feedback_of
from aiflow.domain.runs.step_work import StepWork
from aiflow.domain.runs.undoing import undone_of
from aiflow.usecases.runs.diff import ends_of

if TYPE_CHECKING:
    from aiflow.domain.runs.run import Run
    from aiflow.usecases.engine import Engine

SENT_BACK = "SENT_BACK"


class Before(NamedTuple):
    """What a new run takes over: which run it replaces, what went wrong there, what was answered, what it continues.

    `wants_plan` if a person asked for a new plan: then it has one, also where its request is to have none (RUN-18).
    `gone` is a run whose work was to be continued, and is not in git any more.
    """

    replaces: str | None = None
    feedback: tuple[Feedback, ...] = ()
    answers: tuple[tuple[str, str], ...] = ()
    wants_plan: bool = False
    former: Former | None = None
    continues: Continued | None = None
    gone: str | None = None


class _Work(NamedTuple):
    """The work of a run that the next one continues, as far as there is any."""

    continues: Continued | None = None
    gone: str | None = None


def what_came_before(engine: Engine, request_id: RequestId, base_branch: str) -> Before:
    """Look at the run before: one that was sent back is continued (REQ-6a), one that failed speaks no more.

    What people said to the source since it ended is included.
    """
    latest = engine.runs.latest([request_id]).get(request_id)
    said = engine.source.feedback(request_id, latest.changed_at if latest else None)
    old = engine.runs.load(request_id, latest.run_id) if latest and latest.state is RunState.FAILED else None
    if old is None or old.error is None or old.replaced_by is not None:
        return Before(feedback=said)
    if old.error.reason_code == SENT_BACK:
        return _of_sent_back(engine, old, said, base_branch)
    if old.error.reason_code == LOST and (earlier := _sent_back_before(engine, old)):
        return _of_sent_back(engine, earlier, said, base_branch)._replace(replaces=old.run_id)
    work = _inherited(engine, old)
    if work.continues is None:
        return Before(replaces=old.run_id, feedback=said, gone=work.gone)
    words = tuple(told for told in old.feedback if told.reason_code == SENT_BACK)
    return Before(old.run_id, (*words, *said), old.answers, former=old.former, **work._asdict())


def what_was_learned(engine: Engine, old: Run, answers: tuple[tuple[str, str], ...]) -> Before:
    """Say what a new plan goes by (RUN-6): the old one, what was tried and why it stopped, and all that people said.

    It begins where the old run began: on the base, or on the work that this one continued.
    """
    told = tuple(dict.fromkeys((*old.feedback, *old.visit.feedback, *feedback_of(old))))
    work = _inherited(engine, old)
    former = _former(engine, old) if old.is_planned else old.former
    return Before(old.run_id, told, answers, wants_plan=True, former=former, **work._asdict())


def _of_sent_back(engine: Engine, old: Run, said: tuple[Feedback, ...], base_branch: str) -> Before:
    assert old.error is not None, old.run_id
    of_issue = is_issue(old.request_id)
    # What was posted on an issue is among what people said there.
    comment = () if of_issue and said else (Feedback(SENT_BACK, old.error.summary),)
    told = (*old.feedback, *comment, *said)
    if not old.is_continued_next:
        return Before(None, told, old.answers)
    work = _work_of(engine, old, base_branch)
    former = _former(engine, old) if old.is_planned else old.former
    return Before(None, told, old.answers, former=former, **work._asdict())


def _sent_back_before(engine: Engine, lost: Run) -> Run | None:
    """Find the run that was sent back before one of which nothing is left: its comment still counts."""
    request_id = RequestId(lost.request_id)
    earlier = (each for each in engine.runs.all_of(request_id) if each.run_id < lost.run_id)
    newest = next((each for each in earlier if each.reason_code != LOST), None)
    is_sent_back = newest is not None and newest.reason_code == SENT_BACK
    return engine.runs.load(request_id, newest.run_id) if newest and is_sent_back else None


def _work_of(engine: Engine, old: Run, base_branch: str) -> _Work:
    """Find the branch of a run that was sent back; one that the base has already needs no continuing."""
    if old.has_to_continue:  # it stopped before it had begun with what it was to continue itself
        return _inherited(engine, old)
    git = engine.workspaces(None)
    tip = git.tip(old.place)
    if tip is None or git.compare(ends_of(old)[0], tip) is None:
        return _Work(gone=old.run_id if old.has_commits else None)
    # What was accepted and undone is not in the base, though git takes its commits for merged.
    is_in_base = undone_of(old) is None and git.is_ancestor(old.place, tip, f"refs/heads/{base_branch}")
    if not is_in_base:
        return _Work(Continued(old.run_id, tip))
    # The branch was moved elsewhere: what it had is neither there nor in the base.
    is_moved = old.has_commits and not git.is_ancestor(old.place, old.tip, tip)
    return _Work(gone=old.run_id if is_moved else None)


def _inherited(engine: Engine, old: Run) -> _Work:
    """Begin where a run began that continued another: with its conflicts resolved, if it came that far."""
    if old.continues is None:
        return _Work()
    commit = old.begun_at or old.continues.commit
    is_there = engine.workspaces(None).compare(commit, commit) is not None
    return _Work(Continued(old.continues.run_id, commit)) if is_there else _Work(gone=old.continues.run_id)


def _former(engine: Engine, old: Run) -> Former:
    """Sum up the run before: its plan, and the commits between which everything it changed lies."""
    git = engine.workspaces(None)
    base, tip = ends_of(old)
    kept = None if old.work.is_done else old.work.kept
    has_kept = kept is not None and git.compare(base, kept) is not None
    end = kept if has_kept and kept else git.tip(old.place) or tip
    reason = (old.error.cause or old.error.reason_code) if old.error else ""
    reason = SENT_BACK if old.error and old.error.reason_code == SENT_BACK else reason
    works = [(step, old.steps.get(step.id, StepWork())) for step in old.plan]
    steps = (FormerStep(step.id, step.title, work.is_done, work.summary, work.commit) for step, work in works)
    return Former(old.run_id, reason, base, end, tuple(steps))
