"""Spans of time and the local clock: where a moment lies, and on which day."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date, time, tzinfo


class ClockSpan(NamedTuple):
    """A time from one moment to another."""

    begin: datetime
    end: datetime

    def place(self, moment: datetime) -> float:
        """Return where a moment lies, from 0 to 1."""
        whole = (self.end - self.begin).total_seconds()
        share = (moment - self.begin).total_seconds() / whole if whole > 0 else 0.0
        return round(min(max(share, 0.0), 1.0), 6)

    def share(self, begin: datetime, end: datetime) -> float:
        """Return how much of it a part takes, from 0 to 1."""
        return round(max(0.0, self.place(end) - self.place(begin)), 6)


def at_local(day: date, clock: time, zone: tzinfo | None = None) -> datetime:
    """Return a moment by the local clock; without a zone it is the machine's."""
    if zone is not None:
        return datetime.combine(day, clock, zone)
    return datetime.combine(day, clock).astimezone()


def last_days(today: date, count: int) -> Iterator[date]:
    """Yield so many days up to today, oldest first."""
    return (today - timedelta(days=back) for back in reversed(range(count)))
