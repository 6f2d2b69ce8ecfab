"""Reading one request file fast (PRF-1): a line scanner for the plain cases, YAML for everything else.

The scanner accepts a line only if YAML would read it to the same value; at the first doubt the whole file goes to the
exact reader in `block.py`. A property test holds the two together.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from aiflow.domain.backlog.metadata import NULLS, READERS, ROW_KEYS, MistakeError, assemble, check_id
from aiflow.domain.request import (
    DATE_KEYS,
    PLAIN_ID,
    InvalidRequest,
    Problem,
    ProblemKind,
    Request,
    Value,
    is_valid_id,
    normalize_id,
    parse_instant,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


MAX_FILE_BYTES = 5_000_000
MAX_BLOCK_BYTES = 65_536  # a longer block goes to the exact reader, which refuses it

_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_ID_LIST = re.compile(rf"\[{PLAIN_ID}(?:, {PLAIN_ID})*\]".encode())
_PLAIN_ITEM = r"[A-Za-z0-9_.+/][A-Za-z0-9_.+/-]*"
_ITEM = rf"(?:{_PLAIN_ITEM}|\"{_PLAIN_ITEM}\"|'{_PLAIN_ITEM}')"
_FLOW_LIST = rf"\[(?: *{_ITEM} *(?:, *{_ITEM} *)*| *)\]"
# The end of a key's line and a list below it: an item a line, all of them equally far in.
_BLOCK_LIST = re.compile(rf":\n( *- )({_ITEM}(?:\n\1{_ITEM})*)$".encode(), re.MULTILINE)
# A text that YAML can only read as it stands, or one in quotes without another quote.
_SIGNS = r"\w !$-&(-9;-\[\]-~\u3000-\u303f\uff01-\uff65"
_PLAIN_TEXT = re.compile(rf"(\w[{_SIGNS}\"'\\]*)|([\"'])([{_SIGNS}:#]+)\2 *")
# What makes a printable value mean something else: an indicator in front, `: `, ` #`, a colon at the end; and what YAML
# calls a line break or not printable.
_NOT_PLAIN = r"^[-?:,\[\]{}#&*!|>'\"%@`~=<]|: |:$| #"
_BREAKS = r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]"

_PLACES: Mapping[str, int] = {key: place for place, key in enumerate(ROW_KEYS)}
_ID, _TITLE, _DEPENDS_ON = _PLACES["id"], _PLACES["title"], _PLACES["depends_on"]
_LONG_KEYS: Mapping[bytes, int] = {f"{key}: ".encode(): _PLACES[key] for key in ("depends_on", *DATE_KEYS)}
_LONG_KEY = len("depends_on: ")  # as long as the others
_EMPTY_ROW: list[Any] = [None] * len(ROW_KEYS)
_NOTHING = (_PLACES[""], None)  # what a comment says, or another's key
_NUL, _CR = 0, 13  # as numbers: Python looks for a byte much faster than for a bytes of one
_REMEMBERED, _LONGEST = 4096, 200  # a process that stays must not fill up with long lines


class _NotPlainError(Exception):
    """A line that YAML has to look at."""


# What a line that comes again and again says, such as `status: done`: a place in a row, and the value there.
_seen: dict[bytes, tuple[int, Any]] = {}


def read_request(stem: str, path: str, data: bytes) -> Request | InvalidRequest:
    """Read one request file's bytes: a request, or everything that is wrong with it."""
    if not data.isascii():
        try:
            data.decode("utf-8")
        except UnicodeDecodeError as error:
            return invalid(stem, path, ProblemKind.NOT_TEXT, data.count(b"\n", 0, error.start) + 1)
    plain = data.replace(b"\r\n", b"\n") if _CR in data else data
    scanned = _scan(plain) if _NUL not in data and is_valid_id(stem) else None
    if scanned is None or scanned[0][_ID] not in (None, stem):
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
    if end < start or end > MAX_BLOCK_BYTES or (start == 0 and data.startswith((b"#", b"\n"))):
        return None  # a heading is no comment
    block = data[start:end]
    row = _read_lines(_BLOCK_LIST.sub(_as_flow_list, block) if b":\n" in block else block)
    return (row, body) if row and (start or row != _EMPTY_ROW) else None


def _as_flow_list(found: re.Match[bytes]) -> bytes:
    """Write a list in brackets; what stands below a comment is none. Whether the line has a key is seen later."""
    block, end = found.string, found.start()
    if block.find(b"#", block.rfind(b"\n", 0, end) + 1, end) >= 0:
        return found[0]
    return b": [%b]" % found[2].replace(b"\n" + found[1], b", ")


def _read_lines(block: bytes) -> list[Any] | None:
    """Read and interpret a block line by line, or return None if a line is not plain or a key appears twice."""
    row, remembered = _EMPTY_ROW[:], _seen.get
    try:
        for line in block.split(b"\n"):
            said = remembered(line)
            if said is None:
                said = _take_apart(line)
            place, value = said
            if row[place] is not None:
                return None
            row[place] = value
    except _NotPlainError:
        return None
    return row


def _take_apart(line: bytes) -> tuple[int, Any]:
    """Read one line, first as one of those that are hardly ever the same: a stamp, a list of ids, a title."""
    place = _LONG_KEYS.get(line[:_LONG_KEY])
    if place is None:
        if line[:7] == b"title: " and (title := _read_text(line[7:].decode())):
            return _TITLE, title
        said = _read_line(line.decode())
    elif place != _DEPENDS_ON:
        # Python takes any sign between date and time, also one that ends a line for YAML.
        text = line[_LONG_KEY:].decode()
        moment = parse_instant(text) if text.isprintable() else None
        said = (place, moment) if moment else _read_line(line.decode())
    elif _ID_LIST.fullmatch(line, _LONG_KEY):
        return place, tuple(line[_LONG_KEY + 1 : -1].decode().split(", "))
    else:
        said = _read_line(line.decode())
    if len(_seen) < _REMEMBERED and len(line) <= _LONGEST:
        _seen[line] = said
    return said


def _read_text(text: str) -> str | None:
    """Return a text that YAML can only read as it stands, or None."""
    found = _PLAIN_TEXT.fullmatch(text)
    if found is None:
        return None
    value = found[3] or found[1].rstrip(" ")
    return value if value not in NULLS else None


def _read_line(line: str) -> tuple[int, Any]:
    """Split one line into key and interpreted value; whatever YAML might read in another way is refused."""
    if (not line or line[0] == "#") and line.isprintable():
        return _NOTHING
    key, colon, rest = line.partition(":")
    if not colon or rest[:1] not in ("", " ") or not _KEY.fullmatch(key):
        raise _NotPlainError
    value = _read_text(rest[1:]) or _look_closer(rest)
    place = _PLACES.get(key)
    if place is None:
        return _NOTHING
    # A key without a value counts as missing, but it may still stand twice: YAML tells.
    if value in NULLS:
        raise _NotPlainError
    try:
        return place, READERS[key](value)
    except MistakeError:
        raise _NotPlainError from None


def _look_closer(rest: str) -> Value:
    """Read what has a list, a comment or signs in it."""
    if not rest.isprintable():
        raise _NotPlainError
    text = rest.partition(" #")[0].strip(" ")
    if re.fullmatch(_FLOW_LIST, text):
        return tuple(re.findall(_PLAIN_ITEM, text))
    if re.search(_NOT_PLAIN, text):
        raise _NotPlainError
    return text


def is_plain(value: str) -> bool:
    """Return whether a value can stand as it is after `key: `."""
    if value in NULLS or value != value.strip() or value[0] == "[":
        return False
    return not re.search(rf"{_NOT_PLAIN}|{_BREAKS}", value)


def is_plain_item(value: str) -> bool:
    """Return whether a value can stand as it is in a list."""
    return value not in NULLS and re.fullmatch(_PLAIN_ITEM, value) is not None


def invalid(stem: str, path: str, kind: ProblemKind, line: int | None = None, **facts: str) -> InvalidRequest:
    """Make an invalid request of a file that could not even be read as text."""
    return InvalidRequest(normalize_id(stem), path, (Problem(kind, line, tuple(facts.items())),))


# A heading, or a line that opens or closes a code block; one pass finds them all.
_LINES = rb"(?m)^(?:# ([^\n]*)| {0,3}(`{3,})[^`\n]*| {0,3}(~{3,})[^\n]*)$"
_CLOSING_HASHES = r"(?:^|\s)#+$"


def find_heading(data: bytes, start: int) -> str | None:
    """Return the text of the first `# ` heading in UTF-8 text; a `#` line inside a code block is not one."""
    if data.startswith(b"\n# ", start):  # nearly always: an empty line, then the heading
        end = data.find(b"\n", start + 3)
        heading = data[start + 3 : end].decode().strip() if end > 0 else ""
        if heading and heading[-1] != "#":
            return heading
    fence = b""
    for match in re.compile(_LINES).finditer(data, start):
        mark = match[2] or match[3]
        if mark is None and not fence:
            return re.sub(_CLOSING_HASHES, "", match[1].decode().strip()).strip() or None
        if mark and not fence:
            fence = mark
        elif mark and mark[:1] == fence[:1] and len(mark) >= len(fence) and match[0].strip() == mark:
            fence = b""
    return None
