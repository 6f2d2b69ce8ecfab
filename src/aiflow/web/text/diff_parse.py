"""A unified diff of git as files, hunks and lines: renames, modes, binary files, quoted names, combined diffs.

Pure. A hunk is read by the counts in its head, so no line of a file can be taken for a part of the diff.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

_HUNK = re.compile(r"(@@+) (-\d{1,9}(?:,\d{1,9})?(?: -\d{1,9}(?:,\d{1,9})?){0,7}) \+(\d{1,9})(?:,(\d{1,9}))? @@+ ?(.*)")
_FILE = re.compile(r"diff --(git|cc|combined) (.*)")
_QUOTED = re.compile(rb'\\([abfnrtv"\\]|[0-7]{1,3})')
_LETTERS = {b"a": 7, b"b": 8, b"t": 9, b"n": 10, b"v": 11, b"f": 12, b"r": 13, b'"': 34, b"\\": 92}
_NOWHERE = "/dev/null"
ADDED, DELETED, SAME = "p", "m", ""


class RawLine(NamedTuple):
    """One line of a hunk: its kind (`p` added, `m` deleted), its numbers, its text without the sign."""

    kind: str
    old: int | None
    new: int | None
    text: str


@dataclass(slots=True)
class RawHunk:
    """A hunk; `unended` are the places of lines after which the file has no line end."""

    head: str
    lines: list[RawLine] = field(default_factory=list)
    unended: set[int] = field(default_factory=set)


@dataclass(slots=True)
class RawFile:
    """A file of a diff, as far as the diff describes it."""

    old_path: str | None = None
    path: str | None = None
    named: str = ""
    is_new: bool = False
    is_deleted: bool = False
    is_binary: bool = False
    is_copied: bool = False
    old_mode: str | None = None
    new_mode: str | None = None
    hunks: list[RawHunk] = field(default_factory=list)


def parse_diff(text: str) -> list[RawFile]:
    """Read a diff; what stands before its first file, and lines that mean nothing, are passed over."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    files: list[RawFile] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if match := _FILE.match(line):
            files.append(RawFile(named=_named(match[2], is_combined=match[1] != "git")))
        elif not files:
            continue
        elif match := _HUNK.match(line):
            hunk = RawHunk(line)
            files[-1].hunks.append(hunk)
            at = _read_hunk(lines, at, match, hunk)
        elif not files[-1].hunks:
            _read_head(files[-1], line)
    for file in files:
        _settle(file)
    return files


def _read_hunk(lines: list[str], at: int, match: re.Match[str], hunk: RawHunk) -> int:
    """Read as many lines as the head says; return where it ended."""
    parents = [_range(each) for each in match[2].split(" ")]
    width, old, new = len(parents), parents[0][0], int(match[3])
    left = [int(match[4] or 1), *(count for _, count in parents)]
    while at < len(lines):
        line = lines[at]
        if line[:1] == "\\":
            hunk.unended.add(len(hunk.lines) - 1)
            at += 1
            continue
        kind, takes = _effect(line[:width], width)
        if max(left) <= 0 or not takes:
            break
        left = [count - taken for count, taken in zip(left, takes, strict=True)]
        hunk.lines.append(
            RawLine(kind, old if takes[1] and kind != ADDED else None, new if takes[0] else None, line[width:])
        )
        new += takes[0]
        old += takes[1]
        at += 1
    return at


@lru_cache(maxsize=1000)
def _effect(signs: str, width: int) -> tuple[str, tuple[bool, ...]]:
    """Return a line's kind, and whether the new file and each old one have it; nothing if it is no line of a hunk.

    A line that one parent lacks is added; one that a parent has and the new file has not is deleted.
    """
    if signs.strip(" +-"):
        return SAME, ()
    if "-" in signs:
        return DELETED, (False, *(sign == "-" for sign in signs.ljust(width)))
    return ADDED if "+" in signs else SAME, (True, *(sign != "+" for sign in signs.ljust(width)))


def _range(told: str) -> tuple[int, int]:
    start, _, count = told[1:].partition(",")
    return int(start), int(count or 1)


def _read_head(file: RawFile, line: str) -> None:
    """Read one line of what stands before the hunks of a file."""
    if line.startswith("--- "):
        file.old_path, file.is_new = _side(line[4:], "a/"), file.is_new or line[4:] == _NOWHERE
    elif line.startswith("+++ "):
        file.path, file.is_deleted = _side(line[4:], "b/"), file.is_deleted or line[4:] == _NOWHERE
    elif line.startswith(("rename from ", "copy from ")):
        file.old_path, file.is_copied = unquoted(line.split(" from ", 1)[1]), line.startswith("copy")
    elif line.startswith(("rename to ", "copy to ")):
        file.path = unquoted(line.split(" to ", 1)[1])
    elif line.startswith(("Binary files ", "GIT binary patch")):
        file.is_binary = True
    elif line.startswith(("new file mode ", "new mode ")):
        file.is_new, file.new_mode = file.is_new or line.startswith("new file"), line.rsplit(" ", 1)[1]
    elif line.startswith(("deleted file mode ", "old mode ")):
        file.is_deleted, file.old_mode = file.is_deleted or line.startswith("deleted"), line.rsplit(" ", 1)[1]


def _settle(file: RawFile) -> None:
    """Give a file the names that its head did not give, as for a binary file or a changed mode."""
    file.path = file.path or (file.old_path if file.is_deleted else None) or file.named
    file.old_path = None if file.is_new else file.old_path or file.path


def _side(told: str, prefix: str) -> str | None:
    told = told.removesuffix("\t")  # git's own mark after a name with a space
    return None if told == _NOWHERE else unquoted(told).removeprefix(prefix)


def _named(told: str, *, is_combined: bool) -> str:
    """Read the name after `diff --git`: there twice, the same, as nothing else gives it."""
    if is_combined:
        return unquoted(told)
    half = told[len(told) // 2 + 1 :]
    return unquoted(half).removeprefix("b/")


def unquoted(name: str) -> str:
    r"""Read a name as git writes it: with quotes around it and `\346` for bytes if it has odd characters."""
    if not (len(name) > 1 and name[0] == name[-1] == '"'):
        return name
    data = _QUOTED.sub(_byte, name[1:-1].encode("utf-8", "surrogatepass"))
    return data.decode("utf-8", "backslashreplace")


def _byte(match: re.Match[bytes]) -> bytes:
    told = match[1]
    return bytes([_LETTERS[told] if told in _LETTERS else int(told, 8) & 0xFF])
