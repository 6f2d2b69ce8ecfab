"""Marks in comments (ISS-3, ISS-6): what a comment of aiflow's says to machines, in one invisible line.

`<!-- aiflow:run-header v1 {"key": …} -->`. A mark is believed only if a runner account wrote the comment, but a comment
with any mark is never read as a person's.
"""

from __future__ import annotations

import json
import re
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

VERSION = 1
_MARK = re.compile(r"^<!-- aiflow:([a-z-]+) v(\d+) (\{.*\}) -->[ \t\r]*$", re.MULTILINE)
# Nothing of these may end the comment, or begin another one.
_ESCAPES = {"--": "-\\u002d", "<": "\\u003c", ">": "\\u003e"}
# A mark is small; what is larger is somebody's.
MOST_CHARACTERS = 60_000


class MarkKind(StrEnum):
    """What a comment of aiflow's is about."""

    RUN_HEADER = "run-header"
    PROGRESS = "progress"
    BLOCKED = "blocked"
    RESULT = "result"
    REFUSAL = "refusal"
    REMINDER = "reminder"
    NOTE = "note"


class CommentMark(NamedTuple):
    """A comment's kind, the key under which it is posted at most once, and its facts."""

    kind: MarkKind
    key: str
    facts: Mapping[str, Any]

    def text(self, name: str) -> str | None:
        """Return a fact that is a text; None if there is none, or something else."""
        fact = self.facts.get(name)
        return fact if isinstance(fact, str) and fact else None

    def number(self, name: str) -> int:
        """Return a fact that is a count; 0 if there is none, or something else."""
        fact = self.facts.get(name)
        return fact if isinstance(fact, int) and not isinstance(fact, bool) and 0 < fact < 10**6 else 0


def write_mark(mark: CommentMark) -> str:
    """Write a mark as the one line that ends a comment."""
    written = json.dumps({**mark.facts, "key": mark.key}, sort_keys=True, separators=(", ", ": "))
    for sign, instead in _ESCAPES.items():
        written = written.replace(sign, instead)
    return f"<!-- aiflow:{mark.kind} v{VERSION} {written} -->"


def find_mark(body: str) -> CommentMark | None:
    """Read the last mark of a comment; None if it has none that can be understood."""
    found = _MARK.findall(body) if "<!-- aiflow:" in body else []
    if not found:
        return None
    kind, version, written = found[-1]
    if kind not in tuple(MarkKind) or int(version[:4]) != VERSION or len(written) > MOST_CHARACTERS:
        return None
    try:
        facts = json.loads(written)
    except (ValueError, RecursionError):
        return None
    key = facts.pop("key", None)
    return CommentMark(MarkKind(kind), key, facts) if isinstance(key, str) and key else None


def is_marked(body: str) -> bool:
    """Return whether a comment has a mark of any kind, version and writer: then it is no person's comment."""
    return "<!-- aiflow:" in body and re.search(r"^<!-- aiflow:", body, re.MULTILINE) is not None


def without_marks(text: str) -> str:
    """Keep words that a person types here from being taken for aiflow's own (ISS-6)."""
    return re.sub(r"^(?=<!-- aiflow:)", r"\\", text, flags=re.MULTILINE)
