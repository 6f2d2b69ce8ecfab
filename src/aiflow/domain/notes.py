"""Notes to a person who is not there (REQ-6, AUT-3): something waits for them, or auto-run has ended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiflow.domain.next_action import NextAction


class NoteKind(StrEnum):
    """What a note is about."""

    WAITING = "waiting"
    AUTO_ENDED = "auto_ended"


@dataclass(frozen=True, slots=True)
class Note:
    """One message: what it is about, and how to continue."""

    kind: NoteKind
    reason_code: str
    title: str
    text: str
    action: NextAction | None = None
    request_id: str | None = None
    run_id: str | None = None
