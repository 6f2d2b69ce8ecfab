"""Activities (ERR-4): what the journal records, one entry per thing that happened."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime


class ActivityKind(StrEnum):
    """What can happen."""

    PROJECT_INITIALISED = "project_initialised"
    REQUEST_CREATED = "request_created"
    REQUEST_EDITED = "request_edited"
    STATUS_CHANGED = "status_changed"
    DECISION = "decision"
    TRANSITION = "transition"
    RECOVERY = "recovery"
    REFUSAL = "refusal"
    NOTE_FAILED = "note_failed"
    CLEANED = "cleaned"


class Actor(StrEnum):
    """Who did it."""

    PERSON = "person"
    ENGINE = "engine"
    AUTO_RUN = "auto_run"
    RUNNER = "runner"
    ISSUES = "issues"


@dataclass(frozen=True, slots=True)
class Activity:
    """One journal entry."""

    at: datetime
    kind: ActivityKind
    actor: Actor
    request_id: str | None = None
    run_id: str | None = None
    reason_code: str | None = None
    data: Mapping[str, object] = field(default_factory=dict)
