"""Who is signed in, as plain data (SPEC §11, §17): never a secret, nor the hash of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aiflow.domain.server.sessions import Session


def sessions_shape(sessions: Iterable[Session], current: str | None = None) -> dict[str, Any]:
    """`sessions --json`: every session; `current` is that of who asks."""
    return {"sessions": [session_shape(each, current) for each in sessions]}


def session_shape(session: Session, current: str | None = None) -> dict[str, Any]:
    """One session."""
    return {
        "session_id": session.session_id,
        "name": session.name,
        "agent": session.agent,
        "created_at": session.created_at.isoformat(),
        "expires_at": session.expires_at.isoformat(),
        "seen_at": session.seen_at.isoformat(),
        "is_current": session.session_id == current,
    }
