"""A session with what was paid for it (AGT-4), for programs whose total is the whole session's: claude, and ACP's.

Pure. `01a1e371-c68c-7fe2-8fc6-738f2ad90db4+540` is a session for which 540 millionths of a dollar are counted already.
A call that was ended from outside reports no cost; the next one in its session does: its total includes that.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_NAME = re.compile(r"(.+?)(?:\+(\d{1,15}))?", re.DOTALL)
_MILLIONTHS = 1_000_000


class PaidSession(NamedTuple):
    """A session, and what all its calls have cost as far as it is counted."""

    id: str
    paid_usd: float = 0.0


def named(session: PaidSession) -> str:
    """Write a session as the run keeps it."""
    return f"{session.id}+{round(session.paid_usd * _MILLIONTHS)}"


def session_of(name: str | None) -> PaidSession | None:
    """Read what the run kept; None if it kept none."""
    found = _NAME.fullmatch(name or "")
    return PaidSession(found[1], int(found[2] or 0) / _MILLIONTHS) if found else None
