"""Find the server of a checkout (API-1): what it wrote down is believed only if it answers with the same id."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.errors import EnvironmentProblemError

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiflow.ports.server import ServerDoor, ServerRecord, ServerRecords


class Invitation(NamedTuple):
    """An address with which one browser can sign in, once, and until when."""

    server: ServerRecord
    link: str
    expires_at: str


def find_server(records: ServerRecords, answering: Callable[[str], str | None]) -> ServerRecord | None:
    """Return the server of this checkout if it is at work."""
    known = records.read()
    return known if known is not None and answering(known.url) == known.instance_id else None


def invite(records: ServerRecords, answering: Callable[[str], str | None], door: ServerDoor) -> Invitation:
    """Ask the server of this checkout for an address to sign in with, or refuse if none is at work."""
    server = find_server(records, answering)
    if server is None:
        raise EnvironmentProblemError(reason_code="SERVER_NOT_RUNNING")
    return Invitation(server, *door.new_link(server.url))
