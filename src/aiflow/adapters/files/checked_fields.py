"""Fields of our own JSON files, checked when they are read back: each returns the value, or raises what it is not."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from aiflow.domain.request import parse_instant

if TYPE_CHECKING:
    from datetime import datetime


def text(value: object) -> str:
    """Return a text that says something."""
    if not value:
        raise TypeError(value)
    return words(value)


def words(value: object) -> str:
    """Return a text, also an empty one."""
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def maybe(value: object) -> str | None:
    """Return a text or nothing."""
    return None if value is None else words(value)


def flag(value: object) -> bool:
    """Return a yes or no."""
    if not isinstance(value, bool):
        raise TypeError(value)
    return value


def number(value: object) -> int | None:
    """Return a whole number or nothing."""
    if value is not None and type(value) is not int:
        raise TypeError(value)
    return value


def count(value: object) -> int:
    """Return how often something happened."""
    counted = number(value)
    if counted is None or counted < 0:  # a count below zero would be a limit without an end
        raise ValueError(value)
    return counted


def amount(value: object) -> float:
    """Return how much of something there was."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(value)
    if not 0 <= value < math.inf:
        raise ValueError(value)
    return float(value)


def counts(value: object) -> dict[str, int]:
    """Return counts by name."""
    return {name: count(counted) for name, counted in mapping(value).items()}


def entries(value: object) -> list[Any]:
    """Return a list."""
    if not isinstance(value, list):
        raise TypeError(value)
    return value


def mapping(value: object) -> dict[str, Any]:
    """Return values by name."""
    if not isinstance(value, dict):
        raise TypeError(value)
    return value


def instant(value: object) -> datetime:
    """Return a moment."""
    moment = parse_instant(words(value))
    if moment is None:
        raise ValueError(value)
    return moment
