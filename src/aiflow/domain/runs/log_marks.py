"""What a step's log does not say itself (WEB-1): when its lines were written, and in which colours.

The log is plain text for everybody who reads it. These marks lie beside it, by byte; only the page lays them over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable


class LogMark(NamedTuple):
    """From a byte of a log on: the second it was written in (since 1970), or a terminal's codes for how it looks."""

    offset: int
    second: int | None = None
    look: str | None = None


def with_looks(data: bytes, start: int, marks: Iterable[LogMark]) -> bytes:
    """Lay looks over a part of a log that begins at a byte, as a terminal gets them."""
    pieces, at = [], 0
    for mark in marks:
        if mark.look is not None and at <= mark.offset - start < len(data):
            pieces += [data[at : mark.offset - start], b"\x1b[%bm" % mark.look.encode("ascii")]
            at = mark.offset - start
    return b"".join((*pieces, data[at:]))


def line_times(data: bytes, start: int, marks: Iterable[LogMark]) -> list[tuple[int, int]]:
    """Return from which line of a part on (0 is its first) which second holds; a line has the one it began in."""
    found, line, at = list[tuple[int, int]](), 0, 0
    for mark in marks:
        here = mark.offset - start
        if mark.second is not None and at <= here < len(data):
            line, at = line + data.count(b"\n", at, here), here
            begins = here == 0 or data[here - 1 : here] == b"\n"
            found.append((line if begins else line + 1, mark.second))
    return found
