"""Text in columns: widths as a terminal counts them, lines broken as Japanese and English want them."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# What may not end a line, and what may not begin one; after a wide character, the half-width marks neither.
_OPENING = "「『（【〈《"
_CLOSING = "、。，．・：；？！」』）】〉》ー々ぁぃぅぇぉっゃゅょゎァィゥェォッャュョヮ"
_NARROW = r"[!-~\x1b\u00a0-\u2e7f]"
# Pieces that stay together, with their marks and blanks: a command (in backticks, or after an arrow to the end), a
# word, a number with its counter, or one wide character.
_PIECES = re.compile(
    r"→ [!-~…][ -~…]*$|"
    rf"[{_OPENING}]*(?:(?:`[^`]*`|{_NARROW})+(?:(?<=\d)[^ {_OPENING}])?[{_CLOSING}]*|[^ ][{_CLOSING}:;,.!?)]*)[ ]*|"
    r"[ ]+",
    re.DOTALL,
)
# The same without regard to backticks, for a command that is longer than a line.
_WORDS = re.compile(rf"{_NARROW}+[ ]*|[ ]+|.[{_CLOSING}]*", re.DOTALL)

# The blanks between columns.
GAP = 2

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def display_width(text: str) -> int:
    """Return how many columns a text takes; most Japanese characters take two."""
    if "\x1b" in text:
        text = _COLOURS.sub("", text)
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(ch) else 2 if unicodedata.east_asian_width(ch) in "WF" else 1 for ch in text)


def wrap(text: str, width: int) -> list[str]:
    """Break a text into lines of at most `width` columns; a piece longer than a line is cut."""
    lines: list[str] = []
    for paragraph in text.splitlines() or [""]:
        line = ""
        for piece in _pieces(paragraph, width):
            if line and display_width(line) + display_width(piece.rstrip()) > width:
                lines.append(line.rstrip())
                line = ""
            line += piece if line or lines == [] or piece.strip() else ""
            while display_width(line.rstrip()) > width:
                head = cut(line, width, "")
                lines.append(head)
                line = line[len(head) :]
        lines.append(line.rstrip())
    return lines


def _pieces(paragraph: str, width: int) -> Iterator[str]:
    for piece in _PIECES.findall(paragraph):
        yield from _WORDS.findall(piece) if display_width(piece.rstrip()) > width else (piece,)


def cut(text: str, width: int, mark: str = "…") -> str:
    """Cut a text to a width, with a mark at the end if something is missing."""
    if display_width(text) <= width:
        return text
    room = width - display_width(mark)
    kept = ""
    for ch in text:
        room -= display_width(ch)
        if room < 0:
            break
        kept += ch
    return (kept + mark) if kept or width >= display_width(mark) else text[:1]


def pad(text: str, width: int) -> str:
    """Fill a text up with blanks to a width."""
    return text + " " * (width - display_width(text))


def share_out(natural: Sequence[int], total: int, least: dict[int, int], gap: int = GAP) -> list[int]:
    """Give columns their natural widths; where the room is short, take from those in `least`, down to their least.

    What is taken is shared: the widest of them gives first.
    """
    widths = [min(width, max(total, 1)) for width in natural]
    over = sum(widths) + gap * (len(widths) - 1) - total
    while over > 0:
        able = [index for index, floor in least.items() if widths[index] > floor]
        if not able:
            able = [index for index, width in enumerate(widths) if width > 1]
        if not able:
            break
        widest = max(able, key=lambda index: widths[index])
        widths[widest] -= 1
        over -= 1
    return widths
