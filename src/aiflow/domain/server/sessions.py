"""Who is signed in (SEC): sessions with a name, kept by their secret's hash, and the one-time codes they begin with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

CODE_SECONDS = 60
# After this many wrong codes, all codes become invalid, so that guessing does not help.
MOST_TRIES = 100
MAX_NAME = 80
MAX_SESSIONS = 200
# A session's last use is written down at most this often: every call would be a write.
SEEN_SECONDS = 300


@dataclass(frozen=True, slots=True)
class Session:
    """One browser that signed in: `key` is the hash of its secret, which is not stored."""

    session_id: str
    key: str
    name: str
    created_at: datetime
    expires_at: datetime
    seen_at: datetime
    agent: str = ""

    def is_valid(self, now: datetime) -> bool:
        """Return whether it still counts."""
        return now < self.expires_at

    def is_to_note(self, now: datetime) -> bool:
        """Return whether its use is worth writing down again."""
        return now - self.seen_at >= timedelta(seconds=SEEN_SECONDS)

    def seen(self, now: datetime) -> Session:
        """Return it as used just now."""
        return replace(self, seen_at=now)


@dataclass(frozen=True, slots=True)
class Code:
    """A one-time code that was given out, by its hash; `until` is its end by a clock that cannot be set."""

    key: str
    expires_at: datetime
    until: float


def clean_name(name: str, default: str) -> str:
    """Return the name a person gave themselves, in one line; the default where they gave none."""
    told = "".join(each for each in " ".join(name.split()) if each.isprintable())
    return told[:MAX_NAME] or default


def remaining(sessions: tuple[Session, ...], now: datetime) -> tuple[Session, ...]:
    """Return the sessions that still count, the newest if there are too many."""
    return tuple(sorted((each for each in sessions if each.is_valid(now)), key=lambda each: each.seen_at))[
        -MAX_SESSIONS:
    ]
