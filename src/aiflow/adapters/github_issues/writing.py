"""Writing to issues (ISS-4, ISS-10): each comment once, a label tried twice, a lost answer looked for before again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.activity import Activity, ActivityKind, Actor
from aiflow.domain.issue_ways import request_id_of
from aiflow.domain.issues.marks import CommentMark, find_mark
from aiflow.errors import AiflowError

if TYPE_CHECKING:
    from aiflow.adapters.github_issues.book import IssueBook
    from aiflow.domain.issues.issue import IssueComment, Story
    from aiflow.domain.issues.labels import LabelChange
    from aiflow.ports import Journal
    from aiflow.ports.issues import IssueHost

LOST_ANSWER = "GITHUB_UNKNOWN"


def post_once(host: IssueHost, number: int, body: str) -> IssueComment:
    """Post a marked comment; whose answer was lost is looked for, and posted again only if it is not there."""
    mark = find_mark(body)
    assert mark is not None, "every comment of aiflow's has a mark"
    try:
        return host.comment(number, body)
    except AiflowError as error:
        if error.reason_code != LOST_ANSWER:
            raise
        found = _find(host, number, mark)
        if found is not None:
            return found
        raise


def relabel(host: IssueHost, number: int, change: LabelChange) -> None:
    """Add or remove one label; tried once more if it fails (FR: 再試行1回)."""
    act = host.add_label if change.is_added else host.remove_label
    try:
        act(number, change.label.value)
    except AiflowError as error:
        if error.reason_code == "GITHUB_GONE":
            raise
        act(number, change.label.value)


class LabelWriter:
    """Changes the labels of one issue, and records each change with its run and the time (ISS-10)."""

    def __init__(self, book: IssueBook, host: IssueHost, journal: Journal, number: int) -> None:
        self._book, self._host, self._journal, self._number = book, host, journal, number

    def change(self, change: LabelChange, run_id: str | None) -> None:
        """Add or remove one label."""
        relabel(self._host, self._number, change)
        label = change.label.value
        data = {"key": "labels", "from": None if change.is_added else label, "to": label if change.is_added else None}
        if change.event is not None:
            data["event"] = change.event.value
        kind, about = ActivityKind.STATUS_CHANGED, request_id_of(self._number)
        self._journal.append(Activity(self._book.time.now(), kind, Actor.ENGINE, about, run_id, data=data))


def marked_comment(book: IssueBook, story: Story, key: str) -> IssueComment | None:
    """Return the comment with a key that a runner account wrote, if it is still there."""
    trust = book.view(story).trust
    return next((c for c, mark in trust.marks(story) if mark.key == key and not c.is_gone), None)


def _find(host: IssueHost, number: int, wanted: CommentMark) -> IssueComment | None:
    me = host.account()
    for comment in reversed(host.comments(number)):
        mark = find_mark(comment.body) if comment.author == me else None
        if mark is not None and mark.key == wanted.key:
            return comment
    return None
