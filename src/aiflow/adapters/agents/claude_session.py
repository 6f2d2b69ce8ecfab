"""A session of claude (AGT-4): its id, and what was paid for it, for claude's total is the whole session's.

Pure. `01a1e371-c68c-7fe2-8fc6-738f2ad90db4+540` is a session for which 540 millionths of a dollar are counted already.
A call that was ended from outside tells no cost; the next one in its session does, by a total that is more than that.
"""

from __future__ import annotations

import re
from typing import NamedTuple

# The id goes into an argument vector: nothing but an id may.
_ID = r"[0-9A-Za-z][0-9A-Za-z_-]{0,99}"
_NAME = re.compile(rf"({_ID})(?:\+(\d{{1,15}}))?")
_MILLIONTHS = 1_000_000


class Session(NamedTuple):
    """A session, and what all its calls have cost as far as it is counted."""

    id: str
    paid_usd: float = 0.0


def named(session: Session) -> str:
    """Write a session as the run keeps it."""
    return f"{session.id}+{round(session.paid_usd * _MILLIONTHS)}"


def session_of(name: str | None) -> Session | None:
    """Read what the run kept; None if it is no session of claude."""
    found = _NAME.fullmatch(name or "")
    return Session(found[1], int(found[2] or 0) / _MILLIONTHS) if found else None


def is_id(text: str) -> bool:
    """Tell whether a text can be a session's id."""
    return re.fullmatch(_ID, text) is not None
