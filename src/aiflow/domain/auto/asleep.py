"""When the machine slept: the time of day continued, and the clock that stops in a sleep did not."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from datetime import datetime

# How the journal names it; a shorter one looks the same as a corrected clock.
SLEPT = "slept"
LEAST_SLEEP = timedelta(minutes=3)


class ClockReading(NamedTuple):
    """Both clocks at one moment."""

    now: datetime
    awake_seconds: float


def slept_between(before: ClockReading, after: ClockReading) -> float | None:
    """Return how many seconds the machine slept between two readings, None if it did not."""
    asleep = (after.now - before.now) - timedelta(seconds=after.awake_seconds - before.awake_seconds)
    return round(asleep.total_seconds(), 3) if asleep >= LEAST_SLEEP else None
