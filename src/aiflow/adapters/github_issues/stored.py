"""Issues as they are kept on disk (ISS-2): a story as JSON and back; what cannot be read is as if it were not there."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

from aiflow.domain.issues.issue import Account, Blocker, HistoryEvent, Issue, IssueComment, Story

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

VERSION = 1


def write_story(story: Story) -> bytes:
    """Write a story as JSON."""
    plain = {
        "version": VERSION,
        "issue": _plain(story.issue),
        "comments": [_plain(each) for each in story.comments],
        "events": [_plain(each) for each in story.events],
        "blockers": None if story.blockers is None else [_plain(each) for each in story.blockers],
    }
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode()


def read_story(text: bytes) -> Story | None:
    """Read a story that was written here; None if it is another version's, or none at all."""
    try:
        plain = json.loads(text)
        if plain["version"] != VERSION:
            return None
        blockers = plain["blockers"]
        return Story(
            Issue(**_dated(plain["issue"])),
            tuple(IssueComment(**_dated(each)) for each in plain["comments"]),
            tuple(HistoryEvent(**_dated(each)) for each in plain["events"]),
            None if blockers is None else tuple(Blocker(**_dated(each)) for each in blockers),
        )
    except (ValueError, KeyError, TypeError):
        return None


def _plain(part: Issue | IssueComment | HistoryEvent | Blocker) -> dict[str, object]:
    return {name: _plain_value(value) for name, value in part._asdict().items()}


def _plain_value(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    return list(value) if isinstance(value, tuple) else value


def _moment(given: Any) -> datetime | None:
    return datetime.fromisoformat(given) if given else None


_MADE: dict[str, Callable[[Any], Any]] = {
    "author": lambda given: given and Account(*given),
    "actor": lambda given: given and Account(*given),
    "labels": tuple,
    **dict.fromkeys(("at", "created_at", "updated_at"), _moment),
}


def _dated(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Turn what JSON has no form for back into what it was."""
    return {name: _MADE[name](value) if name in _MADE else value for name, value in plain.items()}
