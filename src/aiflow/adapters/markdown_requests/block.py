"""The metadata block of a request file (REQ-1): where it is, and what each key says at which characters.

This is the exact reader, on PyYAML's events: it knows every key's line and span, so that a write can replace just the
value. `scan.py` is the fast reader for the plain cases; both must read a file alike.
"""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass, field
from typing import Any

from aiflow.domain.backlog.metadata import KNOWN_KEYS, NULLS
from aiflow.domain.request import Problem, ProblemKind, Value

_FENCE = re.compile(r"---[ \t]*(?:\r?\n|\Z)")
_CLOSING = re.compile(r"^---[ \t]*(?:\r?\n|\Z)", re.MULTILINE)
_LINE_END = re.compile(r"\r\n|\n|\r")
_BLANK_LINE = re.compile(r"^[ \t]*(?:\r?\n|\Z)", re.MULTILINE)
_KEY = r"([^\W\d][\w-]{0,99})[ \t]{0,20}:(?:[ \t\r]|$)"
_FIRST_KEY = re.compile(_KEY, re.MULTILINE)
_KEY_LINE = re.compile("^" + _KEY, re.MULTILINE)


# With one of these, nothing else that was read of the block can be trusted.
UNREADABLE = frozenset(
    {
        ProblemKind.NOT_CLOSED,
        ProblemKind.BAD_YAML,
        ProblemKind.NOT_A_MAPPING,
        ProblemKind.METADATA_TOO_LARGE,
        ProblemKind.TOO_DEEP,
    }
)
# Far beyond anything a person writes, and where YAML's own cost begins to grow with the square.
MAX_BLOCK_CHARACTERS = 65_536
MAX_DEPTH = 20


@dataclass(frozen=True, slots=True)
class Span:
    """Where a block lies: [start, end) are its lines, [body, …) is what follows."""

    start: int
    end: int
    body: int
    is_fenced: bool


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """One key: its value as text, its line, and where key, value and a list's items stand in the file."""

    value: Value
    line: int
    colon: int
    start: int
    end: int
    style: str = ""
    problem: Problem | None = None
    items: tuple[tuple[int, int], ...] = ()


@dataclass(slots=True)
class MetadataBlock:
    """A whole metadata block; `span` is None if the file has none, `others` are keys not ours, by line."""

    span: Span | None
    entries: dict[str, KeyEntry] = field(default_factory=dict)
    others: dict[str, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


def read_block(text: str) -> MetadataBlock:
    """Read the metadata block at the start of a file's text, whichever of the two forms it has."""
    start = 1 if text.startswith("\ufeff") else 0
    if opening := _FENCE.match(text, start):
        closing = _CLOSING.search(text, opening.end())
        if closing is None:
            return MetadataBlock(None, problems=[Problem(ProblemKind.NOT_CLOSED, 1)])
        span = Span(opening.end(), closing.start(), closing.end(), is_fenced=True)
    else:
        plain = _plain_span(text, start)
        if plain is None:
            return MetadataBlock(None)
        span = plain
    block = MetadataBlock(span)
    if span.end - span.start > MAX_BLOCK_CHARACTERS:
        facts = (("limit", str(MAX_BLOCK_CHARACTERS)),)
        block.problems.append(Problem(ProblemKind.METADATA_TOO_LARGE, line_at(text, span.start), facts))
    else:
        _read_events(text, block, span)
    if any(problem.kind in UNREADABLE for problem in block.problems):
        block.problems = [problem for problem in block.problems if problem.kind in UNREADABLE]
        block.entries = {}
    return block


def _plain_span(text: str, start: int) -> Span | None:
    """Find the older form: `key: value` lines up to the first empty line, at least one key of ours among them."""
    first = _FIRST_KEY.match(text, start)
    if first is None:
        return None
    blank = _BLANK_LINE.search(text, start)
    end = blank.start() if blank else len(text)
    looked_at = min(end, start + MAX_BLOCK_CHARACTERS)
    keys = {first[1], *(match[1] for match in _KEY_LINE.finditer(text, start, looked_at))}
    if not keys & KNOWN_KEYS:
        return None
    return Span(start, end, blank.end() if blank else len(text), is_fenced=False)


def line_at(text: str, index: int) -> int:
    """Return the line number, from 1, of a character."""
    return 1 + len(_LINE_END.findall(text, 0, index))


def _read_events(text: str, block: MetadataBlock, span: Span) -> None:
    """Let YAML read the block and note every top-level key; what is wrong becomes a problem with its line."""
    import yaml

    source = text[span.start : span.end]
    try:
        reader = _EventReader(text, block, span.start)
        for event in yaml.parse(source, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            reader.take(event)
            if reader.depth > MAX_DEPTH:
                at = span.start + event.start_mark.index
                block.problems.append(Problem(ProblemKind.TOO_DEEP, line_at(text, at)))
                break
    except yaml.MarkedYAMLError as error:
        mark = _telling_mark(error)
        line = line_at(text, span.start + mark.index) if mark else None
        facts = (("problem", ", ".join(part for part in (error.context, error.problem) if part)),)
        block.problems.append(Problem(ProblemKind.BAD_YAML, line, facts))
    except (yaml.YAMLError, ValueError) as error:
        facts = (("problem", str(error).splitlines()[0]),)
        block.problems.append(Problem(ProblemKind.BAD_YAML, line_at(text, span.start), facts))


_UNCLOSED = ("while scanning a simple key", "while scanning a quoted scalar", "while parsing a flow")


def _telling_mark(error: Any) -> Any:
    """Return where a person should look: YAML notices what is not closed only further down, often at the end."""
    is_unclosed = str(error.context).startswith(_UNCLOSED)
    return (error.context_mark if is_unclosed else error.problem_mark) or error.problem_mark or error.context_mark


class _EventReader:
    """Takes YAML events one by one and keeps the top-level keys and their values."""

    def __init__(self, text: str, block: MetadataBlock, offset: int) -> None:
        self._text = text
        self._line_ends = [match.end() for match in _LINE_END.finditer(text, 0, offset + MAX_BLOCK_CHARACTERS)]
        self._block = block
        self._offset = offset
        self.depth = 0
        self._key: Any = None
        self._opened: Any = None
        self._items: list[str] = []
        self._spans: list[tuple[int, int]] = []
        self._problem: ProblemKind | None = None

    def take(self, event: Any) -> None:
        """Take the next event."""
        name = type(event).__name__
        if name in ("MappingStartEvent", "SequenceStartEvent"):
            self._open(event, name)
        elif name in ("MappingEndEvent", "SequenceEndEvent"):
            self._close(event)
        elif name in ("ScalarEvent", "AliasEvent"):
            self._value(event, name)

    def _open(self, event: Any, name: str) -> None:
        self.depth += 1
        if self.depth == 1:
            if name != "MappingStartEvent":
                self._complain(ProblemKind.NOT_A_MAPPING, event.start_mark.index)
        elif self.depth == 2:
            self._opened, self._items, self._problem = event, [], None
            self._spans = []
            if self._key is None:
                self._key = event
            if name == "MappingStartEvent":
                self._problem = ProblemKind.NOT_A_VALUE
        else:
            self._problem = ProblemKind.NOT_A_VALUE

    def _close(self, event: Any) -> None:
        self.depth -= 1
        if self.depth == 1 and self._key is self._opened:
            return  # a key that is itself a list or mapping: never one of ours
        if self.depth == 1:
            # A block list ends, for YAML, where the next key begins; comments between the two are not its own.
            last = self._spans[-1][1] - self._offset if self._spans else self._opened.end_mark.index
            self._keep(tuple(self._items), self._opened, event.end_mark.index if self._opened.flow_style else last)

    def _value(self, event: Any, name: str) -> None:
        if self.depth == 0:
            self._complain(ProblemKind.NOT_A_MAPPING, event.start_mark.index)
        elif self.depth == 1 and self._key is None:
            self._key = event
        elif self.depth == 1:
            self._problem = ProblemKind.ALIASED if name == "AliasEvent" else None
            self._keep(self._scalar(event), event, event.end_mark.index)
        elif name == "AliasEvent":
            self._problem = ProblemKind.ALIASED
        elif self.depth == 2:
            if event.anchor or event.tag not in (None, "!"):  # another key may refer to it
                self._problem = ProblemKind.ALIASED
            self._items.append(event.value)
            self._spans.append((self._offset + event.start_mark.index, self._offset + event.end_mark.index))

    @staticmethod
    def _scalar(event: Any) -> str | None:
        """Return a scalar as text, never as YAML's idea of a number, date or truth value."""
        value = getattr(event, "value", "")
        is_plain = not getattr(event, "style", "")
        return None if is_plain and value in NULLS else value

    def _keep(self, value: Value, event: Any, end: int) -> None:
        key_event, self._key = self._key, None
        key = getattr(key_event, "value", None)
        if key not in KNOWN_KEYS:
            if isinstance(key, str):
                self._block.others[key] = self._line(self._offset + key_event.start_mark.index)
            return
        key_at, start = self._offset + key_event.start_mark.index, self._offset + event.start_mark.index
        line = self._line(key_at)
        if key in self._block.entries:
            facts = (("key", key), ("first_line", str(self._block.entries[key].line)))
            self._block.problems.append(Problem(ProblemKind.REPEATED_KEY, line, facts))
            return
        if getattr(event, "anchor", None) or getattr(event, "tag", None) not in (None, "!"):
            self._problem = ProblemKind.ALIASED
        problem = Problem(self._problem, line, (("key", key),)) if self._problem else None
        if problem is not None:
            self._block.problems.append(problem)
        colon = self._text.index(":", self._offset + key_event.end_mark.index)
        # What follows a block value, YAML counts to it: cut the white space at its end.
        end = start + len(self._text[start : self._offset + end].rstrip())
        style = getattr(event, "style", None) or ("-" if getattr(event, "flow_style", None) is False else "")
        items = tuple(self._spans) if style == "-" else ()
        self._block.entries[key] = KeyEntry(value, line, colon, start, end, style, problem, items)

    def _line(self, index: int) -> int:
        """Return a character's line; looked up, because a block may have thousands of keys."""
        return 1 + bisect.bisect_right(self._line_ends, index)

    def _complain(self, kind: ProblemKind, index: int) -> None:
        self._block.problems.append(Problem(kind, line_at(self._text, self._offset + index)))
