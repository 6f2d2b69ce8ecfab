"""What in a line of Markdown is code for certain (SEC): a person sees it as it is, whatever it looks like.

In doubt it is not code: somebody who hides a text would make us take it for code.
"""

from __future__ import annotations

import re
from typing import NamedTuple

Span = tuple[int, int]

# What may stand in front of a block in quotes and lists.
PREFIX = r"[ \t>*+\-0-9.)]*"
FENCE_LIKE = re.compile(PREFIX + r"(?:`{3}|~{3})")
_FENCE = re.compile(r"( {0,3})(`{3,}(?=[^`]*$)|~{3,})(.*)")
_RUN = re.compile(r"`+")
# Complete and simple: a tag or address in angle brackets, a link's target, a label, an address up to the next blank.
_SIMPLE = re.compile(
    r"""<[^<>"'`\\]*>|\]\([^()<>"'`\\\s]*\)|\]\[[^\[\]`\\]*\]|(?:://|www\.)[^\s<]*+(?P<open>\Z)?""", re.IGNORECASE
)
# What swallows a backtick after it: an open construct of the kinds above, a formula, an escape.
_SWALLOWS = re.compile(r"<(?=[A-Za-z/!?])|\]\(|\]\[|://|\$|\\\Z")
OPEN = "://"


class CodeFence(NamedTuple):
    """A fenced block that has begun: its mark, and how far it is indented."""

    indent: int
    mark: str
    info: Span


class Inline(NamedTuple):
    """A line's code, and the plain text around it, without what only looks like text there."""

    code: tuple[Span, ...]
    plain: tuple[str, ...]


def opening_fence(line: str) -> CodeFence | None:
    """Return the fenced block that a line begins, if it does."""
    match = _FENCE.fullmatch(line)
    return CodeFence(len(match[1]), match[2], match.span(3)) if match else None


def closes(fence: CodeFence, line: str) -> bool | None:
    """Return whether a line ends a fenced block; None if it is indented less, so that this is unknown."""
    text = line.strip(" \t")
    indent = len(line) - len(line.lstrip(" \t"))
    if text and indent < fence.indent:
        return None
    if not text.startswith(fence.mark) or text.strip(fence.mark[0]):
        return False
    if indent > 3 or "\t" in line[:indent]:  # no end, unless a list that we did not see is indented as well
        return None if fence.indent else False
    return True


def inline(line: str) -> Inline | None:
    """Find the code within a line of text; None if one cannot be sure which of its backticks belong together."""
    code: list[Span] = []
    plain: list[str] = []
    at = 0
    runs = [match.span() for match in _RUN.finditer(line)]
    first = 0
    while first < len(runs):
        start, end = runs[first]
        mate = next((i for i in range(first + 1, len(runs)) if runs[i][1] - runs[i][0] == end - start), None)
        if mate is None or "|" in line[end : runs[mate][0]]:  # a table cell ends there
            return None
        plain.append(line[at:start])
        at = runs[mate][1]
        code.append((start, at))
        first = mate + 1
    plain = [_SIMPLE.sub(_reduce, chunk) for chunk in (*plain, line[at:] + "\n")]
    return None if any(map(_SWALLOWS.search, plain)) else Inline(tuple(code), tuple(plain))


def _reduce(match: re.Match[str]) -> str:
    """Leave of what is complete only a label that is used."""
    if match["open"] is not None:
        return OPEN
    if not match[0].startswith("]["):
        return " "
    return f" {match[0][1:]}" if match[0][2:-1].strip() else "]"
