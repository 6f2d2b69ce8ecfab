"""Changing single keys of a request file, byte for byte (REQ-3): everything but the value stays as it was."""

from __future__ import annotations

import difflib
import json
import re
from typing import TYPE_CHECKING

from aiflow.adapters.markdown_requests.block import UNREADABLE, KeyEntry, MetadataBlock, read_block
from aiflow.adapters.markdown_requests.scan import is_plain, is_plain_item
from aiflow.domain.request import Problem, ProblemKind, Value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_NOT_IN_QUOTES = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff'\"\\]")
_HIDDEN_COMMENT = re.compile(r"[ \t]#[^\n]*\n|^[ \t]*#", re.MULTILINE)
_COMPARED = 40_000
_REST_OF_LINE = re.compile(r"[^\r\n]*")
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


class PatchError(Exception):
    """The file's metadata cannot be changed without touching more than the value; `problem` says why."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.kind.value)
        self.problem = problem


def patch(text: str, changes: Mapping[str, Value]) -> str:
    """Return the text with these keys changed, and nothing else; proven by reading it again."""
    before = read_block(text)
    for key, value in changes.items():
        text = _patch_one(text, key, value)
    _verify(before, read_block(text), changes)
    return text


def current_value(text: str, key: str) -> Value:
    """Return what a key says now, as text; None if it is missing or empty."""
    entry = read_block(text).entries.get(key)
    return entry.value if entry is not None else None


def body_start(text: str) -> int:
    """Return where the body begins."""
    block = read_block(text)
    return block.span.body if block.span else 0


def _patch_one(text: str, key: str, value: Value) -> str:
    """Change or add one key."""
    block = read_block(text)
    for problem in block.problems:
        if problem.kind in UNREADABLE or dict(problem.facts).get("key") == key:
            raise PatchError(problem)
    entry = block.entries.get(key)
    if entry is None:
        return _add(text, block, f"{key}: {_write(value)}")
    if entry.style == "-":
        return _replace_block_list(text, entry, value)
    if entry.start == entry.end:  # a key without a value: `status:`
        return f"{text[: entry.colon + 1]} {_write(value)}{text[entry.colon + 1 :]}"
    if _HIDDEN_COMMENT.search(text, entry.start, entry.end) and entry.style not in ("'", '"'):
        raise PatchError(Problem(ProblemKind.CANNOT_EDIT, entry.line, (("key", key),)))
    return text[: entry.start] + _write(value, entry.style) + text[entry.end :]


def _replace_block_list(text: str, entry: KeyEntry, value: Value) -> str:
    """Write a list of one item per line back item by item: those that stay keep their lines and comments."""
    end_of_list = _line_end_at(text, entry.end)
    if not value or isinstance(value, str) or not isinstance(entry.value, tuple):
        header_end = _line_end_at(text, entry.colon + 1)
        header = text[entry.colon + 1 : header_end]
        return f"{text[: entry.colon + 1]} {_write(value)}{header}{text[end_of_list:]}"
    first_line = text.rfind("\n", 0, entry.start) + 1
    eol, indent = _line_end(text[:first_line]), text[first_line : entry.start]
    # An item's piece is the comments above it and its own line.
    ends = [_line_end_at(text, end) for _, end in entry.items]
    starts = [first_line, *(end + len(eol) for end in ends[:-1])]
    pieces = [text[start:end] for start, end in zip(starts, ends, strict=True)]
    written: list[str] = []
    for kind, i1, i2, j1, j2 in _differences(entry.value, value):
        written += pieces[i1:i2] if kind == "equal" else [f"{indent}- {_write_item(item)}" for item in value[j1:j2]]
    return text[:first_line] + eol.join(written) + text[end_of_list:]


def _differences(old: Sequence[str], new: Sequence[str]) -> list[tuple[str, int, int, int, int]]:
    """Return how one list becomes another; a very long one is written whole rather than compared."""
    if len(old) * len(new) > _COMPARED:
        return [("replace", 0, len(old), 0, len(new))]
    return list(difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes())


def _line_end_at(text: str, index: int) -> int:
    """Return where the line of a character ends, before its line break."""
    match = _REST_OF_LINE.match(text, index)
    return match.end() if match else index


def _add(text: str, block: MetadataBlock, line: str) -> str:
    """Add a key that is not there at the end of the block, or a block where there is none."""
    eol = _line_end(text if block.span is None else text[: block.span.end])
    if block.span is None:
        start = 1 if text.startswith("\ufeff") else 0
        gap = "" if text[start:].startswith(("\n", "\r")) or start == len(text) else eol
        return f"{text[:start]}---{eol}{line}{eol}---{eol}{gap}{text[start:]}"
    at = block.span.end
    if at > block.span.start and text[at - 1] not in "\r\n":  # the file ends with its last key
        return f"{text[:at]}{eol}{line}{text[at:]}"
    return f"{text[:at]}{line}{eol}{text[at:]}"


def _line_end(text: str) -> str:
    """Return the line ending that a text itself uses last."""
    return "\r\n" if text[: text.rfind("\n") + 1].endswith("\r\n") else "\n"


def _write(value: Value, style: str = "") -> str:
    """Write a value as YAML, in the quotes it had if it fits them."""
    if value is None:
        return ""
    if isinstance(value, tuple):
        return f"[{', '.join(map(_write_item, value))}]"
    if style in ("'", '"') and not _NOT_IN_QUOTES.search(value):
        return f"{style}{value}{style}"
    return value if is_plain(value) else _quote(value)


def _write_item(value: str) -> str:
    return value if is_plain_item(value) else _quote(value)


def _quote(value: str) -> str:
    """Write a YAML double-quoted scalar: JSON's, plus escapes for what YAML calls unprintable."""
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(value, ensure_ascii=False))


def _verify(before: MetadataBlock, after: MetadataBlock, changes: Mapping[str, Value]) -> None:
    """Refuse a patch after which any key says something it should not: rather no change than a wrong one."""
    for key in {*before.entries, *after.entries, *changes}:
        old, new = before.entries.get(key), after.entries.get(key)
        wanted = changes.get(key, old.value if old else None)
        found = new.value if new else None
        if (found or None) != (wanted or None):
            line = new.line if new else old.line if old else None
            raise PatchError(Problem(ProblemKind.CANNOT_EDIT, line, (("key", key),)))
