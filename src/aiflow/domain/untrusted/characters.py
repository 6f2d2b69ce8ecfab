"""Invisible characters (SEC): zero-width, direction marks, tags, fillers, controls, hidden selectors.

They are Unicode's default-ignorable characters, the control characters, and the letters that are drawn as nothing.
What a script or an emoji needs stays: a joiner between Persian or Indic letters or inside an emoji, one selector
directly after the ideograph or symbol whose form it chooses.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from aiflow.domain.untrusted.kinds import Cut, HiddenKind

if TYPE_CHECKING:
    from collections.abc import Iterator

# Runs of each kind's characters; an escape sequence is one, a CR that ends no line would overwrite one in a terminal.
_CLASSES = {
    HiddenKind.CONTROL: r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|(?:\r(?!\n))+"
    r"|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]",
    HiddenKind.ZERO_WIDTH: r"[\u034f\u17b4\u17b5\u180e\u200b-\u200d\u2060-\u2065\ufeff]+",
    HiddenKind.DIRECTION: r"[\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f]+",
    HiddenKind.TAG: r"[\U000e0000-\U000e00ff\U000e01f0-\U000e0fff]+",
    HiddenKind.VARIATION: r"[\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]+",
    HiddenKind.BLANK: r"[\u115f\u1160\u2800\u3164\uffa0\U00016fe4\U0001d159]+",
    HiddenKind.FORMAT: r"[\u00ad\ufff0-\ufffb\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a]+",
}
_SUSPECT = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _CLASSES.items()))
_KINDS: dict[str | None, HiddenKind] = {kind.value: kind for kind in HiddenKind}
# Characters that separated words or lines are replaced by a gap.
_INSTEAD = {"\r": "\n", **dict.fromkeys("\x0b\x0c\x85\u2028\u2029\u2800\u3164\uffa0\U0001d159", " ")}

_EMOJI = re.compile(
    r"[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u2460-\u24ff\u25a0-\u27bf\u2900-\u297f"
    r"\u2b00-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)
# Scripts whose letters take another form beside a joiner: Arabic to Mandaic, the Indic ones, Myanmar, Khmer, Mongolian.
_JOINED = re.compile(
    r"[\u0620-\u07ff\u0840-\u085f\u0860-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u17b3\u17b6-\u17ff\u1820-\u18af"
    r"\u1b00-\u1bff\ua840-\ua87f\ua8e0-\uabff\ufb50-\ufdcf\ufdf0-\ufdff\ufe70-\ufefc\U00011000-\U000115ff]"
)
_IDEOGRAPH = re.compile(r"[\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd]")
_MONGOLIAN = re.compile(r"[\u1820-\u18aa]")
_KEYCAP = re.compile(r"[0-9#*]")
ZWNJ, ZWJ = "\u200c", "\u200d"
TEXT_STYLE, EMOJI_STYLE = "\ufe0e", "\ufe0f"


def find_invisible(text: str) -> Iterator[Cut]:
    """Yield every run of characters of one kind, and every escape sequence, that is not for a reader's eyes."""
    if text.isascii() and text.isprintable():
        return
    at, last = 0, -1  # nothing leans on a character that was taken out just before it
    while match := _SUSPECT.search(text, at):
        start, at = match.span()
        if start != last and _is_needed(text, start):
            at = start + 1
            continue
        last = at
        instead = "".join(_INSTEAD.get(each, "") for each in match[0]) if match[0][0] != "\x1b" else ""
        yield Cut(start, at, _KINDS[match.lastgroup], instead)


def _is_needed(text: str, at: int) -> bool:
    """Return whether a suspect gives the characters beside it their form."""
    before, mark, behind = text[at - 1 : at] if at else "", text[at], text[at + 1 : at + 2]
    if mark in (ZWJ, ZWNJ) and _JOINED.match(before) and _JOINED.match(behind):
        return True
    if mark == ZWJ:
        return bool(_EMOJI.match(behind) and (_EMOJI.match(before) or before == EMOJI_STYLE))
    if mark in (TEXT_STYLE, EMOJI_STYLE):
        return bool(_EMOJI.match(before) or (behind == "\u20e3" and _KEYCAP.match(before)))
    return _chooses_form(before, mark)


def _chooses_form(before: str, mark: str) -> bool:
    """Return whether a variation selector has a meaning in its place.

    Of the 240 for ideographs, real text uses the first few; the rest would carry a letter of hidden text each.
    """
    if _IDEOGRAPH.match(before):
        return "\ufe00" <= mark <= "\ufe02" or "\U000e0100" <= mark <= "\U000e011f"
    if _MONGOLIAN.match(before):
        return mark in "\u180b\u180c\u180d\u180f"
    return mark == "\ufe00" and bool(before) and unicodedata.category(before) == "Sm"


def name_of(character: str) -> str:
    """Write a character as its number: U+200B."""
    return f"U+{ord(character):04X}"


def spell(text: str) -> str:
    """Write invisible characters as numbers; a run of one is counted, tags are read as the ASCII they stand for."""
    runs = [(first, len(more) + 1) for first, more in re.findall(r"((?s:.))(\1*)", text)]
    names = " ".join(name_of(first) + (f"×{count}" if count > 1 else "") for first, count in runs[:MAX_NAMES])
    letters = "".join(chr(ord(each) - 0xE0000) for each in text if "\U000e0020" <= each <= "\U000e007e")
    return names + (" …" if len(runs) > MAX_NAMES else "") + (f" “{letters}”" if letters else "")


MAX_NAMES = 12
