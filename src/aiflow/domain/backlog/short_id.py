"""Short ids for requests without a given id (REQ-9, REQ-10): easy to type, and the same for any process."""

from __future__ import annotations

import hashlib

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def short_id(seed: str, date: str | None) -> str:
    """Return `RQ-<date>-<four letters>` for a seed; without a date, eight letters replace it."""
    number = int.from_bytes(hashlib.sha256(seed.encode()).digest())
    return f"RQ-{date or _letters(number, 8)}-{_letters(number >> 64, 4)}"


def _letters(number: int, count: int) -> str:
    """Write a number's last digits as small letters."""
    return "".join(_LETTERS[number // len(_LETTERS) ** place % len(_LETTERS)] for place in range(count))
