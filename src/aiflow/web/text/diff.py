"""What a run changed as its page draws it (WEB-1): files, hunks, lines with numbers, and the words that differ.

Whatever is not shown is counted: a file's lines, whole files, the end of a long line.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

from markupsafe import Markup

from aiflow.web.text.diff_parse import ADDED, DELETED, RawFile, RawHunk, RawLine, parse_diff
from aiflow.web.text.diff_words import Spans, differing_words
from aiflow.web.text.unseen import show_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiflow.domain.runs.worktree import FileDiff, RunDiff

MOST_LINES = 5_000
MOST_OF_A_FILE = 2_000
OPEN_LINES = 400
MOST_CHARACTERS = 1_000
# Marks of words take several times as long as all else.
MOST_MARKED = 2_000


class DiffLine(NamedTuple):
    """A line as a row of its table: `kind` is the row's class (`p`, `m`, or none), `sign` what stands before it.

    `at` is the line of the new file that a comment on this one is about. `is_unended` says that the file ends here
    without a line end, `left_out` counts the characters of a long line that are not shown.
    """

    kind: str
    sign: str
    old: int | None
    new: int | None
    html: Markup
    at: int
    is_unended: bool = False
    left_out: int = 0


class DiffHunk(NamedTuple):
    """Lines that belong together, below git's own line about them."""

    head: Markup
    lines: tuple[DiffLine, ...]


class DiffFile(NamedTuple):
    """A changed file. `change` is added, deleted, renamed, copied or changed; the modes are given where they differ.

    `path` is for links and comments, `name` and `old_name` for eyes. `left_out` counts lines that are not shown.
    """

    anchor: str
    path: str
    name: Markup
    old_name: Markup | None
    change: str
    added: int
    deleted: int
    hunks: tuple[DiffHunk, ...] = ()
    is_binary: bool = False
    is_unfinished: bool = False
    is_closed: bool = False
    old_mode: str | None = None
    new_mode: str | None = None
    left_out: int = 0

    def place(self, line: DiffLine) -> str:
        """Return what a comment on a line is about: `path:line`."""
        return f"{self.path}:{line.at}"

    def line_anchor(self, line: DiffLine) -> str:
        """Return a name for a line that stays the same as long as its number does."""
        return f"{self.anchor}-o{line.old}" if line.new is None else f"{self.anchor}-n{line.new}"


class DiffView(NamedTuple):
    """A whole diff; `left_out_lines` and `left_out_files` say what is not shown of it."""

    files: tuple[DiffFile, ...]
    added: int
    deleted: int
    left_out_lines: int = 0
    left_out_files: int = 0


def view_diff(diff: RunDiff, *, most: int = MOST_LINES, has_marks: bool = True) -> DiffView:
    """Draw what a run changed; files of which the text is cut off are there without lines."""
    told = {file.path: file for file in diff.files}
    drawing = _Drawing(most, MOST_MARKED if has_marks else 0)
    files = [drawing.file(raw, told.pop(raw.path or "", None), diff.unfinished_paths) for raw in parse_diff(diff.text)]
    files += [_without_lines(file, diff.unfinished_paths) for file in told.values()]
    return DiffView(
        tuple(files),
        sum(file.added for file in files),
        sum(file.deleted for file in files),
        sum(file.left_out for file in files),
        sum(bool(file.left_out and not file.hunks) for file in files),
    )


def file_anchor(path: str) -> str:
    """Name a file for the address of the page: stable, and safe whatever its path is."""
    return f"f-{hashlib.sha256(path.encode('utf-8', 'backslashreplace')).hexdigest()[:12]}"


def _without_lines(file: FileDiff, unfinished: frozenset[str]) -> DiffFile:
    old = file.old_path
    return DiffFile(
        file_anchor(file.path),
        file.path,
        show_text(file.path),
        show_text(old) if old else None,
        "renamed" if old else "changed",
        file.added,
        file.deleted,
        is_binary=file.is_binary,
        is_unfinished=file.path in unfinished,
        is_closed=True,
        left_out=file.added + file.deleted,
    )


class _Drawing:
    """Draws files one after the other as long as there is room for lines and for marks."""

    def __init__(self, lines: int, marks: int) -> None:
        self._lines = lines
        self._marks = marks

    def file(self, raw: RawFile, told: FileDiff | None, unfinished: frozenset[str]) -> DiffFile:
        """Draw one file; git's own counts are right even where the text is cut off."""
        path, old_path = raw.path or "", raw.old_path
        own = [line.kind for hunk in raw.hunks for line in hunk.lines]
        added, deleted = (told.added, told.deleted) if told else (own.count(ADDED), own.count(DELETED))
        is_moved = old_path not in (None, path)
        room = min(self._lines, MOST_OF_A_FILE)
        hunks = tuple(self._hunks(raw, room))
        shown = sum(len(hunk.lines) for hunk in hunks)
        self._lines -= shown
        missing = max(0, added - own.count(ADDED)) + max(0, deleted - own.count(DELETED))
        return DiffFile(
            file_anchor(path),
            path,
            show_text(path),
            show_text(old_path or "") if is_moved else None,
            _change(raw, is_moved=is_moved),
            added,
            deleted,
            hunks,
            is_binary=raw.is_binary or bool(told and told.is_binary),
            is_unfinished=path in unfinished,
            is_closed=len(own) + missing > OPEN_LINES,
            old_mode=raw.old_mode if raw.new_mode else None,
            new_mode=raw.new_mode if raw.old_mode else None,
            left_out=len(own) - shown + missing,
        )

    def _hunks(self, raw: RawFile, room: int) -> Iterator[DiffHunk]:
        has_cr = all(line.text.endswith("\r") for hunk in raw.hunks for line in hunk.lines)
        for hunk in raw.hunks:
            if room <= 0:
                return
            yield DiffHunk(show_text(hunk.head), tuple(self._rows(hunk, room, cuts=has_cr)))
            room -= len(hunk.lines)

    def _rows(self, hunk: RawHunk, room: int, *, cuts: bool) -> Iterator[DiffLine]:
        """Draw a hunk's lines; a line end that all lines of the file have alike (`cuts`) is nothing to show."""
        lines = [line._replace(text=line.text[:-1]) for line in hunk.lines[:room]] if cuts else hunk.lines[:room]
        marks = self._marked(lines) if self._marks > 0 else {}
        below = next((line.new for line in lines if line.new is not None), None)
        at = below if below is not None else _new_start(hunk.head)
        for index, line in enumerate(lines):
            at = line.new if line.new is not None else at
            text = line.text
            left_out = max(0, len(text) - MOST_CHARACTERS)
            html = _with_marks(text, marks[index]) if index in marks else show_text(text[:MOST_CHARACTERS])
            sign = "+" if line.kind == ADDED else "−" if line.kind == DELETED else ""
            unended = index in hunk.unended
            yield DiffLine(line.kind, sign, line.old, line.new, html, max(1, at), unended, left_out)
            at += line.new is not None

    def _marked(self, lines: list[RawLine]) -> dict[int, Spans]:
        """Find the words that differ, in lines that took the place of others."""
        found: dict[int, Spans] = {}
        for old, new in _replaced(lines):
            self._marks -= 1
            if self._marks < 0:
                break
            before, behind = lines[old].text, lines[new].text
            if max(len(before), len(behind)) <= MOST_CHARACTERS:
                found[old], found[new] = differing_words(before, behind)
        return {index: spans for index, spans in found.items() if spans}


def _change(raw: RawFile, *, is_moved: bool) -> str:
    if raw.is_new or raw.is_deleted:
        return "added" if raw.is_new else "deleted"
    return ("copied" if raw.is_copied else "renamed") if is_moved else "changed"


def _new_start(head: str) -> int:
    """Return where a hunk that only removes lines is in the new file."""
    return int(head.split("+", 1)[1].split(" ", 1)[0].split(",", 1)[0])


def _replaced(lines: list[RawLine]) -> Iterator[tuple[int, int]]:
    """Yield pairs of a deleted line and the one that was added in its place, by their order."""
    index = 0
    while index < len(lines):
        start = index
        while index < len(lines) and lines[index].kind == DELETED:
            index += 1
        middle = index
        while index < len(lines) and lines[index].kind == ADDED:
            index += 1
        yield from zip(range(start, middle), range(middle, index), strict=False)
        index += index == start


def _with_marks(text: str, spans: Spans) -> Markup:
    parts, at = [], 0
    for start, end in spans:
        parts += [show_text(text[at:start]), Markup('<span class="w">'), show_text(text[start:end]), Markup("</span>")]
        at = end
    return Markup("").join((*parts, show_text(text[at:])))
