"""Fields of a file that an older or a newer version may have written (RUN-16): each is read, or has its default."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from aiflow.domain.request import parse_instant

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

# A count that is there but is none must not lift a limit (RUN-14): it counts as used up.
USED_UP = 1_000_000
_MOST = 1e15
# No path, branch or commit is longer.
_MOST_IN_A_NAME = 4096


class GivenFields:
    """An object of a JSON file, by its fields."""

    def __init__(self, raw: object) -> None:
        self.raw: dict[str, Any] = raw if isinstance(raw, dict) else {}

    def text(self, name: str, default: str = "") -> str:
        """Return a text."""
        value = self.raw.get(name)
        return value if isinstance(value, str) else default

    def maybe(self, name: str) -> str | None:
        """Return a text or nothing."""
        value = self.raw.get(name)
        return value if isinstance(value, str) else None

    def named(self, name: str) -> str | None:
        """Return a name that a path, a branch or a run can have, or nothing."""
        value = self.raw.get(name)
        return value if isinstance(value, str) and _can_be_passed(value) else None

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Return a yes or no."""
        value = self.raw.get(name)
        return value if isinstance(value, bool) else default

    def number(self, name: str) -> int | None:
        """Return a whole number or nothing."""
        value = self.raw.get(name)
        return value if type(value) is int else None

    def count(self, name: str) -> int:
        """Return how often something happened."""
        return _count(self.raw[name]) if name in self.raw else 0

    def counts(self, name: str) -> dict[str, int]:
        """Return counts by name."""
        return {each: _count(value) for each, value in self.object(name).raw.items()}

    def amount(self, name: str) -> float:
        """Return how much of something there was."""
        value = self.raw.get(name)
        if value is None:
            return 0.0
        is_one = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= _MOST
        return float(value) if is_one else float(USED_UP)

    def instant(self, name: str, default: datetime) -> datetime:
        """Return a moment."""
        value = self.raw.get(name)
        return (parse_instant(value) if isinstance(value, str) else None) or default

    def object(self, name: str) -> GivenFields:
        """Return an object, empty if there is none."""
        return GivenFields(self.raw.get(name))

    def entries(self, name: str) -> list[Any]:
        """Return a list."""
        value = self.raw.get(name)
        return value if isinstance(value, list) else []

    def objects(self, name: str) -> list[GivenFields]:
        """Return the objects of a list."""
        return [GivenFields(entry) for entry in self.entries(name) if isinstance(entry, dict)]

    def texts(self, name: str) -> tuple[str, ...]:
        """Return the texts of a list."""
        return tuple(entry for entry in self.entries(name) if isinstance(entry, str))

    def texts_by_name(self, name: str) -> Mapping[str, str]:
        """Return texts by name."""
        return {each: value for each, value in self.object(name).raw.items() if isinstance(value, str)}


def _can_be_passed(text: str) -> bool:
    """Tell whether a program can be called with a text: not with half a character, nor with NUL."""
    try:
        return len(os.fsencode(text)) <= _MOST_IN_A_NAME and "\0" not in text
    except UnicodeEncodeError:
        return False


def _count(value: object) -> int:
    return value if type(value) is int and value >= 0 else USED_UP
