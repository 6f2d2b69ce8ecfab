"""Reading one request file fast (PRF-1): a line scanner for the plain cases, YAML for everything else.

The scanner accepts a line only if YAML would read it to the same value; at the first doubt the whole file goes to the
exact reader in `block.py`. A property test holds the two together.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal

from aiflow.domain.backlog.metadata import KNOWN_KEYS, NULLS, READERS, ROW_KEYS, MistakeError, assemble, check_id
from aiflow.domain.request import (
    DATE_KEYS,
    LIST_KEYS,
    PLAIN_ID,
    InvalidRequest,
    Problem,
    ProblemKind,
    Request,
    is_valid_id,
    normalize_id,
    parse_instant,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


MAX_FILE_BYTES = 5_000_000
MAX_BLOCK_BYTES = 65_536  # a longer block goes to the exact reader, which refuses it

_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_ID_LIST = re.compile(rf"depends_on: \[{PLAIN_ID}(?:, {PLAIN_ID})*\]".encode())
_ITEM = re.compile(r"[A-Za-z0-9_.+/][A-Za-z0-9_.+/-]*")
# What makes a one-line plain value mean something else to YAML: an indicator in front, `: `, ` #`, a colon at the end,
# a character that YAML calls a line break or not printable.
_NOT_PLAIN = re.compile(
    r"^[-?:,\[\]{}#&*!|>'\"%@`~=<]|: |:$| #|[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]"
)
_BREAKS = r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]"
_NO_COMMENT = re.compile(_BREAKS)
_QUOTED = rf"([\"'])((?:(?!{_BREAKS})[^\"'\\])+)\1"  # rare: compiled when it is met

# A line that comes again and again, such as `status: done`, is taken apart and interpreted once: as (the key's place
# in a row, the value), () for a line that says nothing to us, False for a line that is not for this scanner.
_Parsed = tuple[int, Any] | tuple[()] | Literal[False]
_PLACES: Mapping[str, int] = {key: place for place, key in enumerate(ROW_KEYS)}
_EMPTY_ROW: list[Any] = [None] * len(ROW_KEYS)
_ID, _DEPENDS_ON = _PLACES["id"], _PLACES["depends_on"]
_NUL, _CR = 0, 13  # as numbers: Python looks for a byte much faster than for a bytes of one
_seen: dict[bytes, _Parsed] = {}
_SEEN_LIMIT = 4096


def read_request(stem: str, path: str, data: bytes) -> Request | InvalidRequest:
    """Read one request file's bytes: a request, or everything that is wrong with it."""
    if not data.isascii():
        try:
            data.decode("utf-8")
        except UnicodeDecodeError as error:
            return invalid(stem, path, ProblemKind.NOT_TEXT, data.count(b"\n", 0, error.start) + 1)
    plain = data.replace(b"\r\n", b"\n") if _CR in data else data
    scanned = _scan(plain)
    if scanned is None or scanned[0][_ID] not in (None, stem) or _NUL in data or not is_valid_id(stem):
        return read_exactly(stem, path, data)
    row, body = scanned
    return assemble(stem, path, row, find_heading(plain, body) if row[0] is None else None)


def read_exactly(stem: str, path: str, data: bytes) -> Request | InvalidRequest:
    """Read a file with YAML, with a line for every problem."""
    from aiflow.adapters.markdown_requests.block import read_block

    if not data or data.isspace():
        return invalid(stem, path, ProblemKind.EMPTY)
    if _NUL in data:
        return invalid(stem, path, ProblemKind.NOT_TEXT, data.count(b"\n", 0, data.index(b"\0")) + 1)
    text = data.decode("utf-8")
    block = read_block(text)
    problems = list(block.problems)
    row = _EMPTY_ROW[:]
    for key, entry in block.entries.items():
        if entry.problem is None and entry.value not in (None, ""):
            try:
                row[_PLACES[key]] = READERS[key](entry.value)
            except MistakeError as mistake:
                problems.append(Problem(mistake.kind, entry.line, (("key", key), *mistake.facts)))
    try:
        check_id(stem, row[_ID])
    except MistakeError as mistake:
        line = block.entries["id"].line if "id" in block.entries else None
        problems.append(Problem(mistake.kind, line, (("key", "id"), *mistake.facts)))
    if problems:
        ordered = sorted(problems, key=lambda problem: problem.line or 0)
        return InvalidRequest(normalize_id(stem), path, tuple(ordered), row[_ID])
    body = len(text[: block.span.body].encode()) if block.span else len(data) - len(data.removeprefix(b"\xef\xbb\xbf"))
    return assemble(stem, path, row, find_heading(data[body:], 0))


def _scan(data: bytes) -> tuple[list[Any], int] | None:
    """Read and interpret a plain block line by line, or return None if any line is not plain or not right."""
    if data.startswith(b"---\n"):
        start, end = 4, data.find(b"\n---\n", 3)
        body = end + 5
    else:
        start, end = 0, data.find(b"\n\n")
        body = end + 2
    if (
        end < start or end > MAX_BLOCK_BYTES or (start == 0 and data.startswith((b"#", b"\n")))
    ):  # a heading, not a comment
        return None
    row = _EMPTY_ROW[:]
    has_any = start > 0
    remembered = _seen.get
    for line in data[start:end].split(b"\n"):
        parsed = remembered(line)
        if parsed is None:
            parsed = _take_apart(line)
        if parsed:
            place, value = parsed
            if row[place] is not None:
                return None
            row[place] = value
            has_any = True
        elif parsed is False:
            return None
    return (row, body) if has_any else None


def _take_apart(line: bytes) -> _Parsed:
    """Read one line, and remember the answer, except of lists of ids: they hardly ever come again."""
    if _ID_LIST.fullmatch(line):
        return _DEPENDS_ON, tuple(line[13:-1].decode().split(", "))
    parsed = _read_line(line.decode())
    if len(_seen) < _SEEN_LIMIT:
        _seen[line] = parsed
    return parsed


def _read_line(line: str) -> _Parsed:
    """Split one line into key and interpreted value; () if it says nothing to us, False if YAML has to look at it."""
    key, colon, rest = line.partition(":")
    if not colon or key not in KNOWN_KEYS:
        return _read_other(line, key, rest) if colon else _read_comment(line)
    if key in DATE_KEYS and rest[:1] == " " and (moment := parse_instant(rest[1:])):
        return _PLACES[key], moment
    value = _plain_value(rest)
    if value is None:
        return False
    try:
        return _interpret(key, value)
    except MistakeError:
        return False


def _interpret(key: str, value: str) -> _Parsed:
    """Interpret one of our keys' values."""
    if key in LIST_KEYS and value[:1] == "[" and value[-1:] == "]":
        items = [item.strip(" ") for item in value[1:-1].split(",")] if value[1:-1].strip(" ") else []
        return (_PLACES[key], READERS[key](tuple(items))) if all(map(_ITEM.fullmatch, items)) else False
    if value[:1] in ("'", '"') and (quoted := re.fullmatch(_QUOTED, value)):
        return _PLACES[key], READERS[key](quoted[2])
    # A key without a value counts as missing, but it may still stand twice: YAML tells.
    return False if value in NULLS or _NOT_PLAIN.search(value) else (_PLACES[key], READERS[key](value))


def _plain_value(rest: str) -> str | None:
    """Return what stands between `key:` and a comment, or None if it is not set off by a space."""
    if rest and rest[0] != " ":
        return None
    before, hash_sign, comment = rest.partition(" #")
    if hash_sign and _NO_COMMENT.search(comment):
        return None
    return before.strip(" ")


def _read_other(line: str, key: str, rest: str) -> _Parsed:
    """Pass a key that is not ours, if it surely is one line of its own."""
    if not _KEY.fullmatch(key):
        return _read_comment(line)
    value = _plain_value(rest)
    return False if value is None or _NOT_PLAIN.search(value) else ()


def _read_comment(line: str) -> _Parsed:
    """Pass a comment or an empty line."""
    return () if (not line or line[0] == "#") and not _NO_COMMENT.search(line) else False


def is_plain(value: str) -> bool:
    """Tell whether a value can stand as it is after `key: `."""
    return value not in NULLS and value == value.strip() and value[0] != "[" and not _NOT_PLAIN.search(value)


def is_plain_item(value: str) -> bool:
    """Tell whether a value can stand as it is in a list."""
    return value not in NULLS and _ITEM.fullmatch(value) is not None


def invalid(stem: str, path: str, kind: ProblemKind, line: int | None = None, **facts: str) -> InvalidRequest:
    """Make an invalid request of a file that could not even be read as text."""
    return InvalidRequest(normalize_id(stem), path, (Problem(kind, line, tuple(facts.items())),))


# A heading, or a line that opens or closes a code block; one pass finds them all.
_LINES = re.compile(rb"^(?:# ([^\n]*)| {0,3}(`{3,})[^`\n]*| {0,3}(~{3,})[^\n]*)$", re.MULTILINE)
_CLOSING_HASHES = re.compile(r"(?:^|\s)#+$")


def find_heading(data: bytes, start: int) -> str | None:
    """Return the text of the first `# ` heading in UTF-8 text; a `#` line inside a code block is not one."""
    if data.startswith(b"\n# ", start):  # nearly always: an empty line, then the heading
        end = data.find(b"\n", start + 3)
        heading = data[start + 3 : end].decode().strip() if end > 0 else ""
        if heading and heading[-1] != "#":
            return heading
    fence = b""
    for match in _LINES.finditer(data, start):
        mark = match[2] or match[3]
        if mark is None and not fence:
            return _CLOSING_HASHES.sub("", match[1].decode().strip()).strip() or None
        if mark and not fence:
            fence = mark
        elif mark and mark[:1] == fence[:1] and len(mark) >= len(fence) and match[0].strip() == mark:
            fence = b""
    return None
