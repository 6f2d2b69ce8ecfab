"""The few lines of a failed test's output that say what is wrong, and which of them it is."""

from __future__ import annotations

import re
from typing import NamedTuple

from aiflow.domain.agents.plain_text import plain

MOST_LINES = 8
MOST_CHARACTERS = 400
_BEFORE, _BEHIND = 5, 2
# The most useful lines come first: the assertion itself, any other error, the name of what failed.
_TELLING = (
    re.compile(r"\bAssertion(?:Error|Failed)|^E\s{2,}\S|\bassertion .*failed|panicked at|^\s*[Ee]xpected\b"),
    re.compile(r"(?:\b[A-Z]\w*(?:Error|Exception)\b|\berror(?:\[\w+\])?|\bfatal|\bpanic)\s*:"),
    re.compile(r"^\s*(?:FAIL(?:ED|URE)?\b|not ok\b|--- FAIL|✗|✕|✖|×|●)"),
)
# A ruler, or how far the tests were.
_EMPTY = re.compile(r"[\s=\-_*#~.]*|[.FEsxX]{3,}")


class Excerpt(NamedTuple):
    """Lines of output, and which of them, counted from 0, is the failing one; None if it cannot be found."""

    lines: tuple[str, ...]
    failing: int | None = None


def take_excerpt(output: str) -> Excerpt | None:
    """Take at most eight lines around what failed; without such a line the last ones. None of an empty output."""
    lines = [line.rstrip()[:MOST_CHARACTERS] for line in plain(output).splitlines() if not _EMPTY.fullmatch(line)]
    if not lines:
        return None
    place = _failing(lines)
    if place is None:
        return Excerpt(tuple(lines[-MOST_LINES:]))
    first = max(0, place - _BEFORE)
    return Excerpt(tuple(lines[first : place + _BEHIND + 1]), place - first)


def _failing(lines: list[str]) -> int | None:
    for telling in _TELLING:
        for place, line in enumerate(lines):
            if telling.search(line):
                return place
    return None
