"""Waiting for an agent's quota (RUN-13): how long, and when it is no longer worth waiting."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple

# Without a time from the agent: soon at first, for a rate limit is short, then ever more rarely.
FIRST_SECONDS = 30.0
MOST_SECONDS = 1800.0
# A limit that is lifted at noon is lifted a little after noon by another clock.
MARGIN = timedelta(seconds=2)


@dataclass(frozen=True, slots=True)
class QuotaWait:
    """A run waits for its agent's quota: since when, when it tries again, how often it did, and the agent's message.

    After the wait (`is_over`) it stays until a call succeeds, so that repeated waiting has an end too.
    """

    since: datetime
    until: datetime
    tries: int = 1
    detail: str = ""
    is_over: bool = False


class QuotaPatience(NamedTuple):
    """How long a quota may be waited for: so many hours since it was first met, and so many minutes from now."""

    hours: float
    minutes_left: float | None = None

    def last(self, since: datetime, now: datetime) -> datetime:
        """Return when waiting ends at the latest."""
        last = since + timedelta(hours=self.hours)
        return last if self.minutes_left is None else min(last, now + timedelta(minutes=self.minutes_left))


def next_wait(
    before: QuotaWait | None, retry_at: datetime | None, now: datetime, patience: QuotaPatience, detail: str = ""
) -> QuotaWait | None:
    """Say until when to wait, or None if that would be longer than is allowed in all."""
    since = before.since if before else now
    tries = before.tries + 1 if before else 1
    pause = min(FIRST_SECONDS * 2 ** min(tries - 1, 30), MOST_SECONDS)
    if retry_at is not None and retry_at > now:
        # The time the agent gave; where it proved wrong before, not at once again.
        until = max(retry_at + MARGIN, now + timedelta(seconds=pause if tries > 2 else 0))
    else:
        until = now + timedelta(seconds=pause)
    last = patience.last(since, now)
    if now >= last or (retry_at is not None and retry_at > last):
        return None
    return QuotaWait(since, min(until, last), tries, detail)


def over(wait: QuotaWait) -> QuotaWait:
    """The time has come to try again."""
    return replace(wait, is_over=True)
