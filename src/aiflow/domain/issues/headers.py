"""Who has an issue (ISS-3, ISS-7): the runs that its marks record, which of them continues, and how many there were.

A run is known by any of its marks, so that deleting one comment hides none. It has begun only if no other one was
open: of two headers the lower wins, and the other is withdrawn, whether it says so already or not. So is one whose
number an earlier run has: it was asked for before that one, which began and ended meanwhile.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.issues.marks import CommentMark, MarkKind, find_mark
from aiflow.domain.lifecycle import PROJECTIONS, IssueLabel, RunOutcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime, timedelta

    from aiflow.domain.issues.issue import Account, IssueComment, Story
    from aiflow.domain.issues.trust import Trust

_LABEL_OF_KIND = {MarkKind.BLOCKED: IssueLabel.BLOCKED, MarkKind.RESULT: IssueLabel.RUNNING}
_SIGNS = (MarkKind.RUN_HEADER, MarkKind.PROGRESS)


class Stop(NamedTuple):
    """An end that the issue shows: since when, what came of it, the label it leaves; `id` is of its comment."""

    at: datetime
    outcome: RunOutcome
    label: IssueLabel
    reason_code: str | None = None
    id: int = 0
    run_id: str | None = None


class RunTrail(NamedTuple):
    """One run as the marks record it; `sign_at` is when it last gave a sign of life.

    `shown_attempt` is what those of its comments say that are still there: everybody who looks sees the same.
    """

    run_id: str
    first: IssueComment
    header: IssueComment | None = None
    runner: str | None = None
    attempt: int = 0
    shown_attempt: int = 0
    is_withdrawn: bool = False
    sign_at: datetime | None = None
    stop: Stop | None = None

    @property
    def is_open(self) -> bool:
        """Whether the issue shows no end of it."""
        return not self.is_withdrawn and self.stop is None


class LifeSigns(NamedTuple):
    """What else shows that a run is live: the runs active here, those of RUNNING tasks, and what time it is."""

    now: datetime
    lock_ttl: timedelta
    active: frozenset[str] = frozenset()
    running_tasks: frozenset[str] = frozenset()


class RunHeader(NamedTuple):
    """What a Run Header says (FR-101): the run, its machine, "attempt 3 of 6", what asked for it, the body's hash."""

    run_id: str
    runner: str
    attempt: int
    of: int
    trigger: str
    text_hash: str
    withdrawn: bool = False
    ended: str | None = None

    @property
    def mark(self) -> CommentMark:
        """The mark of its comment; the comment is edited when the run is withdrawn or has ended."""
        return CommentMark(MarkKind.RUN_HEADER, header_key(self.run_id), self._asdict())


def header_key(run_id: str) -> str:
    """Return the key of a run's header."""
    return f"run-header:{run_id}"


def read_header(body: str) -> RunHeader | None:
    """Read a Run Header back; None if a comment is none."""
    mark = find_mark(body)
    known = {name: mark.facts[name] for name in RunHeader._fields if name in mark.facts} if mark else {}
    is_header = mark is not None and mark.kind is MarkKind.RUN_HEADER
    return RunHeader(**known) if is_header and {*RunHeader._fields[:6]} <= {*known} else None


class StartVerdict(StrEnum):
    """What the comments say about a header that was posted; UNSURE if not all of them could be read."""

    WON = "won"
    LOST = "lost"
    UNSURE = "unsure"


def judge_start(story: Story, trust: Trust, run_id: str) -> tuple[StartVerdict, RunTrail | None]:
    """Return whether a run whose header was posted may begin, and which run has the issue."""
    trails = read_trails(story, trust)
    has_it = holder(trails)
    if not story.has_all_comments or all(trail.run_id != run_id for trail in trails):
        return StartVerdict.UNSURE, has_it
    return StartVerdict.WON if has_it and has_it.run_id == run_id else StartVerdict.LOST, has_it


def holder(trails: Iterable[RunTrail]) -> RunTrail | None:
    """Return the run that has the issue: the lowest one that is neither withdrawn nor ended."""
    return next((trail for trail in trails if trail.is_open), None)


def is_live(trail: RunTrail, signs: LifeSigns) -> bool:
    """Return whether somebody works on a run: here, for a task, or wherever it gave a sign within the locks' TTL."""
    if not trail.is_open:
        return False
    is_fresh = trail.sign_at is not None and signs.now - trail.sign_at <= signs.lock_ttl
    return is_fresh or trail.run_id in signs.active or trail.run_id in signs.running_tasks


def attempts(trails: Iterable[RunTrail], known: int = 0) -> int:
    """Return how many runs an issue has had: the highest attempt that a mark or `runs/` records (ISS-7)."""
    return max([known, *(max(trail.attempt, 1) for trail in trails if not trail.is_withdrawn)])


def header_writers(stories: Iterable[Story], since: datetime) -> dict[Account, int]:
    """Return all who posted Run Headers since a moment, each with the number of an issue that has one."""
    found: dict[Account, int] = {}
    for story in stories:
        for comment in story.comments:
            is_new = comment.author is not None and comment.created_at >= since and not comment.is_gone
            if is_new and comment.author is not None and read_header(comment.body) is not None:
                found[comment.author] = story.issue.number
    return found


def last_stop(story: Story, trust: Trust, trails: Sequence[RunTrail]) -> Stop | None:
    """Return the newest end that the issue shows: of a run, or of something that never became one."""
    stops = [trail.stop for trail in trails if trail.stop is not None and not trail.is_withdrawn]
    for comment, mark in trust.marks(story):
        if mark.kind is MarkKind.BLOCKED and mark.text("run_id") is None:
            stops.append(_stop(comment, mark, mark.text("ended")))
    return max(stops, key=lambda stop: (stop.at, stop.id), default=None)


def read_trails(story: Story, trust: Trust) -> tuple[RunTrail, ...]:
    """Read all runs that the issue's marks record, in the order in which they came."""
    found: dict[str, RunTrail] = {}
    for comment, mark in trust.marks(story):
        run_id = mark.text("run_id")
        if run_id is not None:
            found[run_id] = _with(found.get(run_id, RunTrail(run_id, comment)), comment, mark)
    trails: list[RunTrail] = []
    for trail in sorted(found.values(), key=lambda each: each.header.id if each.header else each.first.id):
        is_late = any(_was_open(before, trail) or _was_unseen(before, trail) for before in trails)
        trails.append(trail._replace(is_withdrawn=trail.is_withdrawn or is_late))
    return tuple(trails)


def _with(trail: RunTrail, comment: IssueComment, mark: CommentMark) -> RunTrail:
    """Add what one more mark records about a run; the first end that is shown is its end."""
    attempt = mark.number("attempt")
    trail = trail._replace(attempt=max(trail.attempt, attempt), runner=trail.runner or mark.text("runner"))
    if not comment.is_gone:
        trail = trail._replace(shown_attempt=max(trail.shown_attempt, attempt))
    if mark.kind in _SIGNS:
        trail = trail._replace(sign_at=max(comment.updated_at, trail.sign_at or comment.updated_at))
    if mark.kind is MarkKind.RUN_HEADER and trail.header is None:
        trail = trail._replace(header=comment, is_withdrawn=mark.facts.get("withdrawn") is True)
    ended = mark.text("ended")
    if ended is None:
        return trail
    shown = _stop(comment, mark, ended)
    if trail.stop is None or (not trail.stop.id and shown.id):
        return trail._replace(stop=shown)
    is_accepted = shown.outcome is RunOutcome.ACCEPTED
    return trail._replace(stop=trail.stop._replace(outcome=shown.outcome)) if is_accepted else trail


def _stop(comment: IssueComment, mark: CommentMark, ended: str | None) -> Stop:
    """Read an end; a header that says it ended has no comment of that end, and may have been edited later."""
    outcome = RunOutcome(ended) if ended in tuple(RunOutcome) else RunOutcome.FAILED
    named = mark.facts.get("label")
    label = IssueLabel(named) if named in tuple(IssueLabel) else _LABEL_OF_KIND.get(mark.kind)
    is_comment = mark.kind not in _SIGNS
    return Stop(
        at=comment.created_at if is_comment else comment.updated_at,
        outcome=outcome,
        label=PROJECTIONS[outcome].label if label is None else label,
        reason_code=mark.text("reason_code"),
        id=comment.id if is_comment else 0,
        run_id=mark.text("run_id"),
    )


def _was_open(before: RunTrail, trail: RunTrail) -> bool:
    """Return whether an earlier run was not over when a header was posted: then that one has lost (ISS-3)."""
    if before.is_withdrawn or trail.header is None:
        return False
    return before.stop is None or before.stop.id > trail.header.id


def _was_unseen(before: RunTrail, trail: RunTrail) -> bool:
    """Return whether a header's writer did not know of an earlier run: it began and ended between look and header."""
    return not before.is_withdrawn and trail.header is not None and 0 < trail.shown_attempt <= before.shown_attempt
