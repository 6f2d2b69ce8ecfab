"""Read issues into the mirror (ISS-1): one conditional call while nothing happens, a full pass now and then."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.issues.issue import Story
from aiflow.domain.issues.labels import ASKING, agent_labels
from aiflow.domain.issues.repository import Synced
from aiflow.domain.issues.trust import last_event
from aiflow.errors import AiflowError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from aiflow.adapters.github_issues.mirror import IssueMirror
    from aiflow.domain.issues.issue import Blocker, Issue, IssueComment
    from aiflow.domain.issues.repository import Listed
    from aiflow.ports.issues import IssueReading
    from aiflow.ports.time import Time

FULL_PASS = timedelta(minutes=10)
# GitHub's own clocks differ a little, and what is written while a list is made may be missing in it.
OVERLAP = timedelta(minutes=2)
# What blocks issues is asked for so many of them in one pass.
HELD_AT_ONCE = 20
_CURSOR, _HELD = "cursor", "held"


class SyncCursor(NamedTuple):
    """How far the mirror is: all that was updated before `since` is in it, as the list with this tag said."""

    since: datetime | None = None
    etag: str = ""
    full_at: datetime | None = None


def sync_issues(host: IssueReading, mirror: IssueMirror, time: Time, *, is_full: bool = False) -> Synced:
    """Read what changed since the last sync; everything if that is long ago, or wanted."""
    cursor, now = _read_cursor(mirror), time.now()
    is_full = is_full or cursor.full_at is None or not timedelta() <= now - cursor.full_at < FULL_PASS
    since = None if is_full else cursor.since
    listed = host.issues(since, "" if is_full else cursor.etag)
    late = [story for story in mirror.stories() if not is_whole(story) and now - story.issue.updated_at < FULL_PASS]
    if listed.is_unchanged and not late:
        return Synced()
    changed = [issue.number for issue in listed.issues if _refresh_listed(host, mirror, issue)]
    changed += [number for number in _read_again(host, mirror, late) if number not in changed]
    gone = _forget_missing(host, mirror, listed) if is_full else ()
    if not listed.is_unchanged:
        _write_cursor(mirror, _moved(cursor, listed, since), now if is_full else cursor.full_at)
    # Last: where that is not answered, all else has been read, and the next pass asks again.
    changed += _read_held(host, mirror, changed) if is_full else ()
    return Synced(tuple(changed), tuple(gone), is_full)


def refresh_issue(host: IssueReading, mirror: IssueMirror, number: int) -> Story | None:
    """Read one issue again, with all that is said about it; None if it is no more."""
    try:
        issue = host.issue(number)
        story = _read_story(host, issue, mirror.story(number))
    except AiflowError as error:
        if error.reason_code != "GITHUB_GONE":
            raise
        mirror.forget(number)
        return None
    mirror.keep(story)
    return story


def is_whole(story: Story) -> bool:
    """Return whether all came that an issue names: its comments, and who set its labels; a list may lag behind it."""
    labels = agent_labels(story.issue.labels)
    if not labels and not story.comments and not story.events:
        return True  # no work on it was ever asked for: it was not read
    return story.has_all_comments and all(last_event(story, "labeled", label) is not None for label in labels)


def _read_again(host: IssueReading, mirror: IssueMirror, late: Iterable[Story]) -> Iterator[int]:
    """Read again what lagged behind the list, though the list has nothing new; yields what is news."""
    for story in late:
        if mirror.story(story.issue.number) == story and refresh_issue(host, mirror, story.issue.number) != story:
            yield story.issue.number


def _refresh_listed(host: IssueReading, mirror: IssueMirror, issue: Issue) -> bool:
    """Read what belongs to an issue of the list, if it is not as it was; returns whether that is news."""
    known = mirror.story(issue.number)
    if known is not None and known.issue == issue and is_whole(known):
        return False
    if not agent_labels(issue.labels) and not (known and (known.comments or known.events)):
        # No work on it was ever asked for: its words are of no use yet, and cost calls.
        return mirror.keep(Story(issue, blockers=() if not issue.blocker_count else None))
    try:
        if known is not None and _uncounted(known.issue) == _uncounted(issue) and is_whole(known):
            return mirror.keep(known._replace(issue=issue, blockers=_read_blockers(host, issue)))
        return mirror.keep(_read_story(host, issue, known))
    except AiflowError as error:
        if error.reason_code != "GITHUB_GONE":
            raise
        mirror.forget(issue.number)
        return True


def _uncounted(issue: Issue) -> Issue:
    """Return an issue without what others change of it: how many block it, and how many of those are open."""
    return issue._replace(blocker_count=0, open_blocker_count=0)


def _read_held(host: IssueReading, mirror: IssueMirror, changed: Sequence[int]) -> list[int]:
    """Read again what blocks issues that would be ready otherwise; returns the numbers of those that it is news of.

    One blocker in the place of another shows in no count, and in no issue of this repository. So many at once, and
    where there are more, the next ones in the next pass.
    """
    held = [story for story in mirror.stories() if _is_held(story) and story.issue.number not in changed]
    last = mirror.note(_HELD).get("last")
    after = [story for story in held if isinstance(last, int) and story.issue.number > last]
    turn = [*after, *(story for story in held if story not in after)][:HELD_AT_ONCE]
    if len(turn) < len(held):
        mirror.put_note(_HELD, {"last": turn[-1].issue.number})
    fresh = (story._replace(blockers=_read_blockers(host, story.issue)) for story in turn)
    return [story.issue.number for story in fresh if mirror.keep(story)]


def _is_held(story: Story) -> bool:
    """Return whether somebody asked for a run of an issue, and something blocks it, or may."""
    is_asked = story.issue.is_open and not agent_labels(story.issue.labels).isdisjoint(ASKING)
    return is_asked and (story.blockers is None or any(blocker.is_open for blocker in story.blockers))


def _read_blockers(host: IssueReading, issue: Issue) -> tuple[Blocker, ...] | None:
    return host.blockers(issue.number) if issue.blocker_count else ()


def _read_story(host: IssueReading, issue: Issue, known: Story | None) -> Story:
    blockers = _read_blockers(host, issue)
    comments = host.comments(issue.number)
    return Story(issue, merged(known.comments if known else (), comments), host.events(issue.number), blockers)


def merged(known: Sequence[IssueComment], read: Iterable[IssueComment]) -> tuple[IssueComment, ...]:
    """Return all comments in the order of their ids; one that was read before and is no more stays as gone (ISS-7)."""
    there = {comment.id: comment for comment in read}
    gone = {comment.id: comment._replace(is_gone=True) for comment in known if comment.id not in there}
    return tuple(comment for _, comment in sorted({**gone, **there}.items()))


def _forget_missing(host: IssueReading, mirror: IssueMirror, listed: Listed) -> list[int]:
    """Forget what a whole list does not have; one that it only passed over is asked for."""
    there = {issue.number for issue in listed.issues}
    missing = [number for number in mirror.numbers() if number not in there]
    return [number for number in missing if refresh_issue(host, mirror, number) is None]


def _moved(cursor: SyncCursor, listed: Listed, since: datetime | None) -> SyncCursor:
    newest = max((issue.updated_at for issue in listed.issues), default=None)
    target = newest - OVERLAP if newest is not None else cursor.since
    moved = max(filter(None, (target, cursor.since)), default=None)
    # A tag belongs to the call it answered: another moment is another call.
    return SyncCursor(moved, listed.etag if moved == since else "")


def _read_cursor(mirror: IssueMirror) -> SyncCursor:
    noted = mirror.note(_CURSOR)
    try:
        since, full_at = (
            datetime.fromisoformat(str(noted[key])) if noted.get(key) else None for key in ("since", "full_at")
        )
        return SyncCursor(since, str(noted.get("etag") or ""), full_at)
    except ValueError:
        return SyncCursor()


def _write_cursor(mirror: IssueMirror, cursor: SyncCursor, full_at: datetime | None) -> None:
    facts = {"since": cursor.since, "full_at": full_at}
    mirror.put_note(_CURSOR, {"etag": cursor.etag, **{key: at and at.isoformat() for key, at in facts.items()}})
