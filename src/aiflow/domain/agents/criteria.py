"""A request's acceptance criteria (RUN-18): what its author wrote down to hold the work against.

Pure, takes any Markdown, never raises. Criteria are the items of a list below a heading that says so, and check boxes
anywhere; a request without either is its own criterion.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_CRITERIA, MOST_CHARACTERS = 50, 500
# What such a heading says, in either language.
_NAMES = re.compile(
    r"accept(?:ance|ed when)|definition of done|done when|must show|"
    r"受け?入れ?(?:条件|基準|要件|テスト)|完了(?:の?条件|の?定義|基準)|達成(?:条件|基準)",
    re.IGNORECASE,
)
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*)")
# A line that stands for a heading: bold, or with a colon at its end.
_LABEL = re.compile(r"(?:\*\*|__)(.+?)(?:\*\*|__)[:：]?|([^-*+・\s].{0,80})[:：]")
_ITEM = re.compile(r"([ \t]*)(?:[-*+][ \t]+|\d{1,3}[.)][ \t]+|・[ \t]*)(\[[ xX]\][ \t]+)?(.*)")
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
_LABEL_LEVEL = 7


def criteria_in(body: str) -> tuple[str, ...]:
    """Return a request's acceptance criteria in its order; none where the whole body is the criterion."""
    told = (_squeezed(text)[:MOST_CHARACTERS] for text in _items(body))
    return tuple(dict.fromkeys(filter(None, told)))[:MOST_CRITERIA]


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def _items(body: str) -> Iterator[str]:
    """Yield each item that counts, with the lines that continue it."""
    inside: int | None = None  # the level of the heading whose section we are in
    item: str | None = None
    for line in _prose(body):
        level, title = _title(line)
        if level is not None:
            yield item or ""
            item = None
            if _NAMES.search(title):
                inside = level
            elif inside is not None and level <= inside:
                inside = None
        elif found := _ITEM.fullmatch(line):
            yield item or ""
            item = found[3] if inside is not None or found[2] else None
        elif line[:1] not in (" ", "\t") or not line.strip():
            yield item or ""
            item = None
        elif item is not None and len(item) <= MOST_CHARACTERS:  # the rest of a very long one is cut off anyway
            item = f"{_squeezed(item)} {_squeezed(line)}"
    yield item or ""


def _title(line: str) -> tuple[int | None, str]:
    """Return a heading's level and words; a label ranks below all headings."""
    if heading := _HEADING.fullmatch(line):
        return len(heading[1]), heading[2]
    label = _LABEL.fullmatch(line.strip())
    if label and not _ITEM.fullmatch(line):
        return _LABEL_LEVEL, label[1] or label[2]
    return None, ""


def _prose(body: str) -> Iterator[str]:
    """Yield the lines that are no code."""
    fence = ""
    for line in body.splitlines():
        mark = _FENCE.match(line)
        if fence:
            fence = "" if mark and mark[1].startswith(fence) and not line.strip(" \t`~") else fence
        elif mark:
            fence = mark[1]
        else:
            yield line
