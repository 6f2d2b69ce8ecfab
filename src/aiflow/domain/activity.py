"""Activities (ERR-4): what the journal records, one entry per thing that happened."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol

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


class Subject(Protocol):
    """What an entry can be about: a run, a lock, a task, a note."""

    @property
    def request_id(self) -> str | None:
        """The request."""

    @property
    def run_id(self) -> str | None:
        """The run."""


class About(NamedTuple):
    """What an entry is about, where nothing else at hand says it."""

    request_id: str | None = None
    run_id: str | None = None


def decided(at: datetime, who: Actor, about: Subject, reason_code: str | None = None, **data: object) -> Activity:
    """Record that somebody decided or asked for something."""
    return Activity(at, ActivityKind.DECISION, who, about.request_id, about.run_id, reason_code, data)


def recovered(at: datetime, who: Actor, about: Subject, reason_code: str | None, **data: object) -> Activity:
    """Record that something was put right after a crash."""
    return Activity(at, ActivityKind.RECOVERY, who, about.request_id, about.run_id, reason_code, data)


def refused(at: datetime, who: Actor, about: Subject, reason_code: str, **data: object) -> Activity:
    """Record that something was not written, because it is no longer ours to write."""
    return Activity(at, ActivityKind.REFUSAL, who, about.request_id, about.run_id, reason_code, data)


def moved(at: datetime, who: Actor, about: Subject, reason_code: str | None, **data: object) -> Activity:
    """Record a run's step from one state to another."""
    return Activity(at, ActivityKind.TRANSITION, who, about.request_id, about.run_id, reason_code, data)


def entry_fields(activity: Activity) -> dict[str, object]:
    """Return an entry as it is recorded; what it does not say is left out."""
    fields: dict[str, object] = {
        "at": activity.at.isoformat(),
        "kind": activity.kind.value,
        "actor": activity.actor.value,
        "request_id": activity.request_id,
        "run_id": activity.run_id,
        "reason_code": activity.reason_code,
        "data": dict(activity.data),
    }
    return {name: value for name, value in fields.items() if value not in (None, {})}
