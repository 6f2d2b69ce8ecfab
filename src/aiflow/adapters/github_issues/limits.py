"""GitHub's limits (ISS-11): no call while GitHub wants none, and at least a second between two writes."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiflow.adapters.github_issues.shared_pace import SharedPace
    from aiflow.adapters.github_issues.transport import Answer
    from aiflow.ports.time import Time

BETWEEN_WRITES_SECONDS = 1.0
# How long GitHub wants to be left alone where it names no time (its documentation says at least a minute).
UNNAMED_SECONDS = 60.0
# GitHub's own limits end within the hour; a proxy's nonsense is not believed for years.
LONGEST_SECONDS = 86_400.0
_LIMITED = (403, 429)


class CallPace:
    """When the next call may be made, by what GitHub answered; shared by all threads that use one token.

    With a `SharedPace`, all processes of this user that use the token keep it.
    """

    def __init__(self, time: Time, shared: SharedPace | None = None) -> None:
        self._time = time
        self._shared = shared
        self._writing = time.mutex()
        self._last_write: float | None = None
        self._closed_until = 0.0

    def closed_until(self) -> datetime | None:
        """Return until when GitHub takes no call; None if it takes them."""
        left = self._closed_until - self._time.monotonic()
        if self._shared is not None:
            left = max(left, self._shared.closed_seconds())
        return self._time.now() + timedelta(seconds=left) if left > 0 else None

    def heed(self, answer: Answer) -> bool:
        """Note what an answer says about limits; return whether it was refused because of one."""
        seconds = wait_after(answer, self._time.now())
        if seconds is not None:
            self._close(min(seconds, LONGEST_SECONDS))
        return seconds is not None and answer.status in _LIMITED

    @contextmanager
    def write_turn(self) -> Iterator[None]:
        """Let one write in at a time, a second after the last one's end; other processes' a second from its begin."""
        with self._writing:
            if self._last_write is not None:
                self._wait(self._last_write + BETWEEN_WRITES_SECONDS - self._time.monotonic())
            if self._shared is not None:
                self._wait(self._shared.take_turn(BETWEEN_WRITES_SECONDS))
            try:
                yield
            finally:
                self._last_write = self._time.monotonic()

    def _close(self, seconds: float) -> None:
        """Make no call for so long; a limit that ends later stays."""
        until = self._time.monotonic() + seconds
        if until > self._closed_until:
            self._closed_until = until
            if self._shared is not None and seconds > self._shared.closed_seconds():
                self._shared.close(seconds)

    def _wait(self, seconds: float) -> None:
        if seconds > 0:
            self._time.sleep(seconds)


def wait_after(answer: Answer, now: datetime) -> float | None:
    """Return how long GitHub wants no call after this answer; None if it says nothing of the kind.

    Every answer names when the count begins again, so only a count at zero is a limit. A 403 that is none of these is a
    missing right.
    """
    after = answer.headers.get("retry-after")
    if after is not None and answer.status >= 400:
        return max(float(after), 1.0) if after.isascii() and after.isdigit() else UNNAMED_SECONDS
    if answer.headers.get("x-ratelimit-remaining") == "0":
        reset = answer.headers.get("x-ratelimit-reset", "")
        seconds = float(reset) - server_time(answer, now).timestamp() if reset.isdigit() else UNNAMED_SECONDS
        return max(seconds, 1.0)
    is_said = answer.status == 403 and b"rate limit" in answer.body.lower()
    return UNNAMED_SECONDS if answer.status == 429 or is_said else None


def server_time(answer: Answer, now: datetime) -> datetime:
    """Return what time it is for GitHub, so that a wrong clock here waits neither too long nor too little."""
    try:
        return parsedate_to_datetime(answer.headers["date"]).astimezone(UTC)
    except (KeyError, ValueError):
        return now.astimezone(UTC)
