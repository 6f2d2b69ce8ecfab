"""Definitions that nothing refers to (SEC): `[//]: # (…)` and unused footnotes, which a page leaves out."""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.untrusted.code import PREFIX, Span
from aiflow.domain.untrusted.kinds import Cut, HiddenKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from aiflow.domain.untrusted.markup import Unshown

_LABEL = r"\[(?P<label>(?:\\.|[^\[\]\\]){1,999})\]:"
_HEAD = re.compile(rf"^{PREFIX}(?P<begin>{_LABEL})", re.MULTILINE)
_TARGET = re.compile(r"[ \t]*(?:\r?\n[ \t>]*)?(?:<(?:\\.|[^<>\\\n])*>|[^\s<]\S*)")
_QUOTED = r"""(?:"(?:\\.|[^"\\])*+"|'(?:\\.|[^'\\])*+'|\((?:\\.|[^()\\])*+\))"""
_TITLE = re.compile(rf"(?:[ \t]+|[ \t]*\r?\n[ \t>]*){_QUOTED}[ \t]*(?=\r?\n|\Z)", re.DOTALL)
_LINE_END = re.compile(r"[ \t]*(?=\r?\n|\Z)")
_GAP = re.compile(r"\n[ \t]*\r?\n")
# A footnote continues over everything that is indented, and to the end of its first paragraph in any case.
_NOTE = re.compile(r"[^\n]*(?:\n(?![ \t]*\r?(?:\n|\Z))[^\n]*)*+(?:(?:\n[ \t]*\r?)*\n(?: {4}| {0,3}\t)[^\n]*)*+")
_USE = re.compile(r"\[([^\[\]\\]{1,999})\]")


class _Definition(NamedTuple):
    start: int
    end: int
    label: str


def find_unused(text: str, unshown: Unshown) -> Iterator[Cut]:
    """Yield every definition outside code and comments whose label no plain text uses, and all after the first."""
    found = list(_definitions(text, unshown))
    # Text in a definition, or before one in its line, uses no label.
    lines = [(text.rfind("\n", 0, each.start) + 1, each.end) for each in found]
    plain = (chunk for start, chunk in unshown.plain if not _end_of(lines, start))
    used = {_normal(label) for chunk in plain for label in _uses(chunk)}
    for definition in found:
        if definition.label in used:
            used.remove(definition.label)
        else:
            yield Cut(definition.start, definition.end, HiddenKind.DEFINITION)


def _definitions(text: str, unshown: Unshown) -> Iterator[_Definition]:
    taken = sorted([*unshown.code, *((cut.start, cut.end) for cut in unshown.cuts)])
    at = 0
    while head := _HEAD.search(text, at):
        start = head.start("begin")
        at = max(head.end(), _end_of(taken, start))
        if at > head.end():
            continue
        end = _reach(text, head)
        if end is not None:
            at = max(at, end)
            yield _Definition(start, end, _normal(head["label"]))


def _end_of(spans: Sequence[Span], place: int) -> int:
    """Return where the span ends that a place is in, or 0."""
    index = bisect_left(spans, (place + 1, 0)) - 1
    return spans[index][1] if index >= 0 and place < spans[index][1] else 0


def _reach(text: str, head: re.Match[str]) -> int | None:
    """Return where a definition ends, or None if it is none."""
    if head["label"].startswith("^"):
        note = _NOTE.match(text, head.end())
        return note.end() if note else None
    target = _TARGET.match(text, head.end())
    if target is None:
        return None
    title = _TITLE.match(text, target.end())
    if title is not None and not _GAP.search(title[0]):
        return title.end()
    end = _LINE_END.match(text, target.end())
    return end.end() if end else None


def _uses(chunk: str) -> list[str]:
    return [] if "\\" in chunk else _USE.findall(chunk)


def _normal(label: str) -> str:
    return " ".join(label.split()).casefold()
