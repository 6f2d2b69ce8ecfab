"""Where an issue stands (ISS-2, ISS-6, ISS-7, ISS-9, ISS-10): one answer for selection, for the labels and for people.

Three cases: a run has the issue, nothing has it, or it is closed. The label that it should have, what is to be said,
and what keeps it from running come from the same decision, so what is shown and what is done agree.
"""

from __future__ import annotations

from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.claims import Refusal
from aiflow.domain.issues.causes import cause_facts, no_run_key
from aiflow.domain.issues.headers import RunTrail, Stop, attempts, holder, is_live, last_stop, read_trails
from aiflow.domain.issues.labels import ASKING, STATUSES, agent_labels, closed_status
from aiflow.domain.issues.marks import MarkKind
from aiflow.domain.issues.trust import Approval, SeenText, is_text_changed, last_event, seen_text
from aiflow.domain.issues.view import CancelRun, IssueView, OwnRun, Post, TakeUp
from aiflow.domain.issues.wishes import LabelWish, Window, Wishes, find_wishes, refusal_key
from aiflow.domain.lifecycle import PROJECTIONS, IssueLabel, RunOutcome
from aiflow.domain.request import RequestStatus

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

_L, _O, _S = IssueLabel, RunOutcome, RequestStatus
_DONE = (_O.AWAITING_ACCEPTANCE, _O.ACCEPTED)
# A label is there a moment before the event that shows who set it, or is gone before.
LAG = timedelta(minutes=2)


class IssueStanding(NamedTuple):
    """What an issue is to selection, and what it should look like.

    `label` is None where the labels are left as they are. `is_elsewhere` of a run that another checkout works on: all
    that is to be done about the issue is done there.
    """

    status: RequestStatus
    label: IssueLabel | None = None
    kept: Refusal | None = None
    posts: tuple[Post, ...] = ()
    run_deeds: tuple[CancelRun | TakeUp, ...] = ()
    run_id: str | None = None
    wish: LabelWish | None = None
    stop: Stop | None = None
    seen: SeenText | None = None
    is_elsewhere: bool = False


class _Fields(NamedTuple):
    view: IssueView


class Reading(_Fields):
    """What a view says once it is read."""

    @cached_property
    def trails(self) -> tuple[RunTrail, ...]:
        """The runs that its marks record."""
        return read_trails(self.view.story, self.view.trust)

    @cached_property
    def keys(self) -> frozenset[str]:
        """What was said already, by key."""
        return frozenset(mark.key for _, mark in self.view.trust.marks(self.view.story))

    @cached_property
    def labels(self) -> frozenset[IssueLabel]:
        """The agent labels that are there."""
        return agent_labels(self.view.story.issue.labels)

    @cached_property
    def attempts(self) -> int:
        """How many runs the issue has had."""
        here = [run.attempt for run in self.view.runs]
        return attempts(self.trails, max([self.view.memory.attempts, *here]))

    def told(self, since: datetime | None, expected: IssueLabel, *, is_running: bool = False) -> Wishes:
        """Read what people want since a moment."""
        window = Window(since, expected, is_running, self.view.memory.since)
        return find_wishes(self.view.story, self.view.trust, window, self.keys)


def stand(view: IssueView) -> IssueStanding:
    """Decide where an issue stands."""
    read = Reading(view)
    has_it = holder(read.trails)
    standing = _held(read, has_it) if has_it is not None else _free(read)
    standing = standing._replace(run_deeds=(*standing.run_deeds, *_lost_runs(read, has_it)))
    if view.story.issue.is_open:
        return standing
    status = closed_status(view.story.issue.state_reason)
    is_free = has_it is None or standing.label is not None
    return standing._replace(status=status, label=_L.NONE if is_free else None, kept=None)


def _lost_runs(read: Reading, has_it: RunTrail | None) -> Iterator[CancelRun]:
    """Yield the runs still at work here whose end the issue shows, or that never had it."""
    over = {trail.run_id for trail in read.trails if trail is not has_it}
    stop = last_stop(read.view.story, read.view.trust, read.trails) if has_it is None else None
    for run in read.view.runs:
        is_over = run.run_id in over and not run.is_stopping and not _is_updated(run, stop)
        if run.outcome is _O.ACTIVE and run.is_made and is_over:
            yield CancelRun(run.run_id, "LOCK_LOST")


def _is_updated(run: OwnRun, stop: Stop | None) -> bool:
    """Return whether a finished run continues only to be accepted: its base is merged into it (`accept --update`)."""
    is_last = stop is not None and stop.run_id == run.run_id and stop.outcome is _O.AWAITING_ACCEPTANCE
    return is_last and run.outcome is _O.ACTIVE


# --- a run has the issue ---------------------------------------------------------------------------------------------


def _held(read: Reading, trail: RunTrail) -> IssueStanding:
    view, own = read.view, read.view.own(trail.run_id)
    told = read.told(trail.first.created_at, _L.RUNNING, is_running=True)
    is_open = view.story.issue.is_open
    wish = told.wish if is_open else LabelWish(_L.NONE, view.now, "closed")
    if own is None and is_live(trail, view.signs):
        holds = (("holder", ", ".join(filter(None, (trail.run_id, trail.runner)))),)
        return IssueStanding(_S.RUNNING, kept=Refusal("REQUEST_LOCKED", holds), run_id=trail.run_id, is_elsewhere=True)
    refused = tuple(_refused(told, trail.run_id)) if is_open else ()
    if own is None:
        return _ended(read, trail, OwnRun(trail.run_id, _O.NEEDS_INPUT, "RUN_LOST"), wish, refused)
    if own.outcome is not _O.ACTIVE:
        return _ended(read, trail, own, wish, refused)
    posts = (*refused, *_not_permitted(read, _L.RUNNING))
    if wish is not None:
        cancel = () if own.is_stopping else (CancelRun(own.run_id, "CANCELLED"),)
        return IssueStanding(_S.RUNNING, posts=posts, run_deeds=cancel, run_id=own.run_id, wish=wish)
    take_up = () if own.is_working else (TakeUp(own.run_id),)
    label = None if _may_lag(read, _L.RUNNING) else _L.RUNNING
    return IssueStanding(_S.RUNNING, label, posts=posts, run_deeds=take_up, run_id=own.run_id)


def _ended(
    read: Reading, trail: RunTrail, own: OwnRun, wish: LabelWish | None, refused: tuple[Post, ...]
) -> IssueStanding:
    """Show a run's end that the issue does not show yet; who took its label away wants none."""
    is_done = own.outcome in _DONE
    label = wish.label if wish is not None else PROJECTIONS[own.outcome].label
    label = _L.RUNNING if is_done and (wish is None or label) else label
    kind = MarkKind.RESULT if is_done else MarkKind.BLOCKED if label is _L.BLOCKED else MarkKind.NOTE
    facts = {**cause_facts(own.reason_code), "run_id": own.run_id, "attempt": max(trail.attempt, own.attempt, 1)}
    facts |= {"of": read.view.rules.of, "ended": own.outcome.value, "label": label.value}
    is_for_review = own.outcome is _O.AWAITING_ACCEPTANCE and label is _L.RUNNING and read.view.story.issue.is_open
    has_pulls = is_done and read.view.rules.opens_pulls
    pulls = {"opens_pull": has_pulls and is_for_review, "finds_pull": has_pulls and not is_for_review}
    post = Post(kind, f"end:{own.run_id}", facts, **pulls)
    stop = Stop(read.view.now, own.outcome, label, own.reason_code, run_id=own.run_id)
    posts = (post, *refused, *(_not_permitted(read, label) if read.view.story.issue.is_open else ()))
    # Until the process that works on it releases it, it has the run: it may still be merged without a person.
    status = _S.RUNNING if own.is_working and label is _L.RUNNING else _shown(label)
    return IssueStanding(status, label, _kept(read, label, stop), posts, run_id=own.run_id, stop=stop)


# --- nothing has it --------------------------------------------------------------------------------------------------


def _free(read: Reading) -> IssueStanding:
    view = read.view
    stop = last_stop(view.story, view.trust, read.trails)
    told = read.told(stop.at if stop else None, stop.label if stop else _L.NONE)
    if told.wish is not None and told.wish.label in ASKING and view.story.issue.is_open:
        standing = _asked(read, told.wish, stop)
    elif told.wish is not None:
        standing = IssueStanding(_shown(told.wish.label), told.wish.label, wish=told.wish)
    elif stop is not None:
        label = None if _may_lag(read, stop.label) else stop.label
        is_on = any(_is_updated(run, stop) for run in view.runs)
        status, kept = (_S.RUNNING, None) if is_on else (_shown(stop.label), _kept(read, stop.label, stop))
        standing = IssueStanding(status, label, kept)
    else:
        standing = _untouched(read)
    said = (*_late(read), *_not_permitted(read, standing.label)) if view.story.issue.is_open else ()
    run_id = stop.run_id if stop else None
    return standing._replace(posts=(*standing.posts, *said), stop=stop, run_id=run_id)


def _asked(read: Reading, wish: LabelWish, stop: Stop | None) -> IssueStanding:
    """Answer a wish for a run: the limit, the decision that a label alone lacks, the text that was approved."""
    view, of = read.view, read.view.rules.of
    if no_run_key(wish) in read.keys and stop is not None:  # asked for in the very second in which it was blocked
        return IssueStanding(_S.BLOCKED, _L.BLOCKED, _kept(read, _L.BLOCKED, stop), wish=wish)
    if read.attempts >= of:
        facts = {**cause_facts("ISSUE_RETRY_LIMIT"), "attempts": read.attempts, "of": of, "ended": _O.NEEDS_INPUT.value}
        kept = _refusal("ISSUE_RETRY_LIMIT", attempts=read.attempts, of=of)
        post = Post(MarkKind.BLOCKED, f"limit:{wish.id}", {**facts, "label": _L.BLOCKED.value})
        return IssueStanding(_S.BLOCKED, _L.BLOCKED, kept, (post,), wish=wish)
    if stop is not None and stop.label and not any(view.trust.decisions(view.story, stop.at)):
        facts = {**cause_facts("ISSUE_DECISION_MISSING"), "run_id": stop.run_id or ""}
        post = Post(MarkKind.REFUSAL, f"decision:{stop.id or stop.at.isoformat()}", facts)
        return IssueStanding(_shown(stop.label), stop.label, _refusal("ISSUE_DECISION_MISSING"), (post,), wish=wish)
    approval = Approval(wish.id, wish.at)
    seen = seen_text(view.story, view.trust, approval, view.memory.seen_text)
    said = f"text:{wish.id}"
    # What one runner saw changed is changed for all: who looks later cannot see it any more.
    if said in read.keys or is_text_changed(view.story, view.trust, approval, seen):
        since = wish.at.isoformat()
        post = Post(MarkKind.REFUSAL, said, {**cause_facts("ISSUE_TEXT_CHANGED"), "approval": since})
        return IssueStanding(
            _S.READY, wish.label, _refusal("ISSUE_TEXT_CHANGED", approval=since), (post,), wish=wish, seen=seen
        )
    return IssueStanding(_S.READY, wish.label, wish=wish, seen=seen)


def _untouched(read: Reading) -> IssueStanding:
    """An issue that shows neither a run nor a wish that counts: its labels are somebody's who may not, or by hand."""
    view = read.view
    asking = next((label for label in ASKING if label in read.labels), None)
    if asking is not None:
        return IssueStanding(
            _S.READY, kept=_refusal("LABEL_NOT_PERMITTED", label=asking.value, actor=_actor(read, asking))
        )
    event = last_event(view.story, "labeled", _L.RUNNING) if _L.RUNNING in read.labels else None
    if event is None or not view.trust.may_decide(event.actor):
        return IssueStanding(_S.DRAFT, _L.NONE if not read.labels else None)
    if view.now - event.at <= view.rules.lock_ttl:
        return IssueStanding(_S.RUNNING)
    facts = {**cause_facts("RUN_LOST"), "ended": _O.NEEDS_INPUT.value, "label": _L.BLOCKED.value}
    return IssueStanding(_S.BLOCKED, _L.BLOCKED, posts=(Post(MarkKind.BLOCKED, f"lost:label:{event.id}", facts),))


# --- what is said ----------------------------------------------------------------------------------------------------


def _refused(told: Wishes, run_id: str) -> Iterator[Post]:
    """Refuse every wish for a run while one is on, each once."""
    for ask in told.asks:
        yield Post(MarkKind.REFUSAL, refusal_key(ask.id), {**cause_facts("RUN_IN_PROGRESS"), "run_id": run_id})


def _late(read: Reading) -> Iterator[Post]:
    """Refuse what was asked while the last run was on, and seen only after its end."""
    last = next((trail for trail in reversed(read.trails) if not trail.is_withdrawn), None)
    if last is None or last.stop is None:
        return
    told = read.told(last.first.created_at, _L.RUNNING, is_running=True)
    early = Wishes(None, tuple(ask for ask in told.asks if ask.at < last.stop.at and ask.id.startswith("comment:")))
    yield from _refused(early, last.run_id)


def _not_permitted(read: Reading, target: IssueLabel | None) -> Iterator[Post]:
    """Report who set a label without the right to, once for each time; not if the issue should have it anyway."""
    view = read.view
    for label in IssueLabel:
        event = last_event(view.story, "labeled", label) if label in read.labels else None
        is_old = event is not None and view.memory.since is not None and event.at < view.memory.since
        if event is not None and label is not target and not is_old and not view.trust.may_decide(event.actor):
            facts = {**cause_facts("LABEL_NOT_PERMITTED"), "label": label.value, "actor": _actor(read, label)}
            yield Post(MarkKind.REFUSAL, refusal_key(f"label:{event.id}"), facts)


def _may_lag(read: Reading, label: IssueLabel) -> bool:
    """Return whether a label is gone and its event may not be there yet, which would name who took it away."""
    view = read.view
    added, removed = (last_event(view.story, kind, label) for kind in ("labeled", "unlabeled"))
    is_unexplained = label and label not in read.labels and added and (removed is None or removed.id < added.id)
    return bool(is_unexplained) and view.now - view.story.issue.updated_at < LAG


def _actor(read: Reading, label: IssueLabel) -> str:
    event = last_event(read.view.story, "labeled", label)
    return event.actor.login if event is not None and event.actor is not None else "?"


def _shown(label: IssueLabel) -> RequestStatus:
    """Return the status of an issue that no run works on: a finished run keeps its label until it is accepted."""
    return _S.BLOCKED if label is _L.RUNNING else STATUSES[label]


def _kept(read: Reading, label: IssueLabel, stop: Stop) -> Refusal | None:
    """Say what a stopped or finished run waits for."""
    run_id = stop.run_id or "-"
    if label is _L.BLOCKED:
        return _refusal("ISSUE_RETRY_ONLY", run_id=run_id, reason=stop.reason_code or "-")
    if label is not _L.RUNNING:
        return None
    own = read.view.own(stop.run_id)
    if _O.ACCEPTED in (stop.outcome, own.outcome if own else None):
        return _refusal("AWAITING_CLOSE", run_id=run_id)
    return None if own else _refusal("AWAITING_ACCEPTANCE", run_id=run_id)


def _refusal(code: str, **facts: object) -> Refusal:
    return Refusal(code, tuple((name, str(fact)) for name, fact in facts.items()))
