"""Edit a request as a whole, as a person (CLI `edit`; REQ-3, REQ-5): checked first, and no change is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.activity import Activity, ActivityKind, Actor
from aiflow.domain.lifecycle import PERSON_EVENTS
from aiflow.domain.request import InvalidRequest, Request
from aiflow.errors import BadInputError

if TYPE_CHECKING:
    from aiflow.domain.request import RequestId
    from aiflow.ports import Clock, Journal, RequestEditor


def rewrite_request(
    request_id: RequestId, texts: tuple[str, str], editor: RequestEditor, record: tuple[Journal, Clock]
) -> bool:
    """Replace the text that a person began with by theirs and record it; return whether anything changed."""
    before, after = texts
    if after == before:
        return False
    new, old = editor.check_text(after, request_id), editor.check_text(before, request_id)
    if isinstance(new, InvalidRequest):
        raise BadInputError(
            reason_code="REQUEST_INVALID", request_id=request_id, path=new.where, problem=new.problems[0]
        )
    status = old.status if isinstance(old, Request) else None
    if new.status != status and new.status not in PERSON_EVENTS:
        raise BadInputError(reason_code="STATUS_NOT_ALLOWED", status=new.status.value, request_id=request_id)
    editor.rewrite(request_id, before, after)
    journal, clock = record
    journal.append(Activity(clock(), ActivityKind.REQUEST_EDITED, Actor.PERSON, request_id, data={"key": "text"}))
    if status is not None and new.status != status:
        data = {"key": "status", "from": status.value, "to": new.status.value}
        journal.append(Activity(clock(), ActivityKind.STATUS_CHANGED, Actor.PERSON, request_id, data=data))
    return True
