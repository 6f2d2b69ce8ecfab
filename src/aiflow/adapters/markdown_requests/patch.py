"""Changing single keys of a request file, byte for byte (REQ-3): everything but the value stays as it was."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from aiflow.adapters.markdown_requests.block import Block, Entry, read_block
from aiflow.adapters.markdown_requests.scan import is_plain, is_plain_item
from aiflow.domain.request import Problem, ProblemKind, Value

if TYPE_CHECKING:
    from collections.abc import Mapping

# Where one of these is found, no span can be trusted.
_UNREADABLE = frozenset({ProblemKind.NOT_CLOSED, ProblemKind.BAD_YAML, ProblemKind.NOT_A_MAPPING})
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]")


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
        if problem.kind in _UNREADABLE or dict(problem.facts).get("key") == key:
            raise PatchError(problem)
    entry = block.entries.get(key)
    if entry is None:
        return _add(text, block, f"{key}: {_write(value)}")
    if entry.style == "-":
        return _replace_block_list(text, entry, value)
    if entry.start == entry.end:  # a key without a value: `status:`
        return f"{text[: entry.colon + 1]} {_write(value)}{text[entry.colon + 1 :]}"
    return text[: entry.start] + _write(value, entry.style) + text[entry.end :]


def _replace_block_list(text: str, entry: Entry, value: Value) -> str:
    """Write a list of one item per line back in its own indentation."""
    if not value or isinstance(value, str):
        return f"{text[: entry.colon + 1]} {_write(value)}{text[entry.end :]}"
    line_start = text.rfind("\n", 0, entry.start) + 1
    separator = _line_end(text) + text[line_start : entry.start]
    return text[: entry.start] + separator.join(f"- {_write_item(item)}" for item in value) + text[entry.end :]


def _add(text: str, block: Block, line: str) -> str:
    """Add a key that is not there at the end of the block, or a block where there is none."""
    eol = _line_end(text)
    if block.span is None:
        start = 1 if text.startswith("\ufeff") else 0
        gap = "" if text[start:].startswith(("\n", "\r")) or start == len(text) else eol
        return f"{text[:start]}---{eol}{line}{eol}---{eol}{gap}{text[start:]}"
    at = block.span.end
    if at > block.span.start and text[at - 1] not in "\r\n":  # the file ends with its last key
        return f"{text[:at]}{eol}{line}{text[at:]}"
    return f"{text[:at]}{line}{eol}{text[at:]}"


def _line_end(text: str) -> str:
    """Return the file's own line ending."""
    at = text.find("\n")
    return "\r\n" if at > 0 and text[at - 1] == "\r" else "\n"


def _write(value: Value, style: str = "") -> str:
    """Write a value as YAML, in the quotes it had if it fits them."""
    if value is None:
        return ""
    if isinstance(value, tuple):
        return f"[{', '.join(map(_write_item, value))}]"
    if style in ("'", '"') and "'" not in value and '"' not in value and "\\" not in value:
        return f"{style}{value}{style}"
    return value if is_plain(value) else _quote(value)


def _write_item(value: str) -> str:
    return value if is_plain_item(value) else _quote(value)


def _quote(value: str) -> str:
    """Write a YAML double-quoted scalar: JSON's, plus escapes for what YAML calls unprintable."""
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(value, ensure_ascii=False))


def _verify(before: Block, after: Block, changes: Mapping[str, Value]) -> None:
    """Refuse a patch after which any key says something it should not: rather no change than a wrong one."""
    for key in {*before.entries, *after.entries, *changes}:
        old, new = before.entries.get(key), after.entries.get(key)
        wanted = changes.get(key, old.value if old else None)
        found = new.value if new else None
        if (found or None) != (wanted or None):
            line = new.line if new else old.line if old else None
            raise PatchError(Problem(ProblemKind.NOT_A_MAPPING, line, (("key", key),)))
