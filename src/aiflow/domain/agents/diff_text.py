"""A diff as a reviewer gets it (RUN-18): whole if it is small, else the beginning of each file, and what was cut.

Pure, and takes no longer than the text is long.
"""

from __future__ import annotations

import re
from typing import NamedTuple

# Less than that of a file says nothing.
LEAST = 1_000
MOST_NAMED = 200
_FILE = re.compile(r"^(?=diff --git )", re.MULTILINE)
_NAME = re.compile(r"diff --git \"?a/.*? \"?b/(.*?)\"?$", re.MULTILINE)


class _Part(NamedTuple):
    name: str
    text: str


def capped_diff(diff: str, most: int) -> str:
    """Return a diff of at most about so many characters.

    Small files stay whole, large ones share what is left evenly and lose their ends; a note says what was cut.
    """
    if len(diff) <= most:
        return diff
    parts = [_Part(_name(text), text) for text in _FILE.split(diff) if text]
    shares = _shares([len(part.text) for part in parts], most)
    shown = [_head(part.text, share) for part, share in zip(parts, shares, strict=True)]
    cut = [
        f"{part.name} ({len(text):,} of {len(part.text):,} characters)"
        for part, text in zip(parts, shown, strict=True)
        if len(text) < len(part.text)
    ]
    more = [f"and {len(cut) - MOST_NAMED} more files"] if len(cut) > MOST_NAMED else []
    listed = "\n".join(f"  {name}" for name in (*cut[:MOST_NAMED], *more))
    return "".join(text for text in shown if text).rstrip("\n") + f"\n[aiflow] cut here; read these files:\n{listed}"


def _shares(sizes: list[int], most: int) -> list[int]:
    """Share room out: the smallest get all they need, the others the same; where that is too little, the last none."""
    shares = [0] * len(sizes)
    room, left = most, len(sizes)
    for number in sorted(range(len(sizes)), key=lambda number: sizes[number]):
        share = min(sizes[number], max(room // left, LEAST), room)
        shares[number] = share if share == sizes[number] or share >= LEAST else 0
        room, left = room - shares[number], left - 1
    return shares


def _head(text: str, size: int) -> str:
    """Return a text's first whole lines."""
    return text if size >= len(text) else text[: text.rfind("\n", 0, size) + 1]


def _name(text: str) -> str:
    found = _NAME.match(text)
    return found[1] if found else "(unknown)"
