"""The server as programs see it: who is signed in (but not what would let another in), and its service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aiflow.domain.server.sessions import Session
    from aiflow.ports.services import ServiceState


def session_list(sessions: Iterable[Session]) -> dict[str, Any]:
    """Return who is signed in."""
    return {"sessions": [session_shape(each) for each in sessions]}


def session_shape(session: Session) -> dict[str, Any]:
    """Return one session."""
    return {
        "session_id": session.session_id,
        "name": session.name,
        "created_at": session.created_at.isoformat(),
        "seen_at": session.seen_at.isoformat(),
        "expires_at": session.expires_at.isoformat(),
        "agent": session.agent,
    }


def service_shape(state: ServiceState) -> dict[str, Any]:
    """Return the state of a checkout's service."""
    return state._asdict()
