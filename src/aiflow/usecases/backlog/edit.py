"""Change one metadata key of a request, as a person (CLI `set`, API PATCH; REQ-3, REQ-5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.activity import Activity, ActivityKind, Actor
from aiflow.domain.backlog.metadata import READERS, MistakeError, check_text, check_title
from aiflow.domain.lifecycle import PERSON_EVENTS
from aiflow.domain.request import EDITABLE_KEYS, MetadataKey, Problem, ProblemKind, RequestId, Value
from aiflow.errors import BadInputError

if TYPE_CHECKING:
    from aiflow.domain.backlog.metadata import Change
    from aiflow.ports import Clock, Journal, RequestEditor


def edit_request(
    request_id: RequestId, key: str, change: Change, editor: RequestEditor, record: tuple[Journal, Clock]
) -> tuple[Value, Value] | None:
    """Change one key and record it; return (old, new), or None if it said that already."""
    check_value(request_id, key, change.new)
    changed = editor.edit(request_id, {key: change})
    if key not in changed:
        return None
    old, new = changed[key]
    journal, clock = record
    kind = ActivityKind.STATUS_CHANGED if key == MetadataKey.STATUS else ActivityKind.REQUEST_EDITED
    journal.append(Activity(clock(), kind, Actor.PERSON, request_id, data={"key": key, "from": old, "to": new}))
    return old, new


def check_value(request_id: str, key: str, value: Value) -> None:
    """Refuse a key that is not ours to change, and a value it cannot have (REQ-2, REQ-5)."""
    if key not in tuple(EDITABLE_KEYS):
        facts = (("value", key), ("allowed", ", ".join(EDITABLE_KEYS)))
        raise BadInputError(request_id=request_id, problem=Problem(ProblemKind.BAD_KEY, None, facts))
    try:
        check_text(*((value,) if isinstance(value, str) else value or ()))
        meant = READERS[key](value)
        if key == MetadataKey.TITLE:
            check_title(str(value))
    except MistakeError as mistake:
        told = {"key": key, **dict(mistake.facts)}
        if mistake.kind is ProblemKind.BAD_STATUS:
            told["allowed"] = ", ".join(PERSON_EVENTS)
        problem = Problem(mistake.kind, None, tuple(told.items()))
        raise BadInputError(request_id=request_id, problem=problem) from None
    if key == MetadataKey.STATUS and meant not in PERSON_EVENTS:
        raise BadInputError(reason_code="STATUS_NOT_ALLOWED", status=str(meant), request_id=request_id)
