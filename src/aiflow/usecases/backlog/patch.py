"""Change several things of a request at once, as a person (API PATCH; REQ-3, API-2): all of them, or none.

A caller who names the version they saw is refused if the request has changed since.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.activity import Activity, ActivityKind, Actor
from aiflow.domain.backlog.metadata import Change, MistakeError, check_text
from aiflow.domain.request import InvalidRequest, MetadataKey, Problem, Request, RequestId, Value
from aiflow.errors import AiflowError, BadInputError, ConflictError
from aiflow.usecases.backlog.edit import check_value

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from aiflow.ports import Clock, Journal, RequestEditor, RequestSource

# A file that others write all the time is tried so often.
_TRIES = 5


class Patch(NamedTuple):
    """New values for keys, and a new body; `seen` are the versions it may replace, None for any.

    `expected` is what somebody saw of keys that they change: one that says something else by now is a conflict, and
    what others changed besides is none.
    """

    values: Mapping[str, Value]
    body: str | None = None
    seen: Collection[str] | None = None
    expected: Mapping[str, Value] = {}


def text_version(editor: RequestEditor, request_id: RequestId) -> str:
    """Return what identifies a version of a request's text; nothing if it is not edited here."""
    try:
        return _version(editor.whole_text(request_id))
    except AiflowError:
        return ""


def patch_request(
    request_id: RequestId, patch: Patch, source: RequestSource, editor: RequestEditor, record: tuple[Journal, Clock]
) -> None:
    """Change keys and body in one write, and record what changed."""
    for key, value in patch.values.items():
        check_value(request_id, key, value)
    for _ in range(_TRIES if patch.expected else 0):
        try:
            _write(request_id, patch, source, editor, record)
        except ConflictError as error:  # the file has just changed: what we expect may still be so
            if error.context.get("key") != "text" or patch.seen is not None:
                raise
        else:
            return
    _write(request_id, patch, source, editor, record)


def _write(
    request_id: RequestId, patch: Patch, source: RequestSource, editor: RequestEditor, record: tuple[Journal, Clock]
) -> None:
    before = editor.whole_text(request_id)
    if patch.seen is not None and _version(before) not in patch.seen:
        raise ConflictError(request_id=request_id, path=request_id, key="text", found="…")
    if patch.expected:
        _check_expected(request_id, patch, editor.check_text(before, request_id))
    body = None if patch.body is None else (source.body(request_id), patch.body)
    if body is not None:
        _check_body(request_id, before, body, editor)
    changes = {key: Change(value) for key, value in patch.values.items()}
    is_strict = patch.seen is not None or bool(patch.expected)
    changed = editor.edit(request_id, changes, body, before if is_strict else None)
    told = [(key, {"from": old, "to": new}) for key, (old, new) in changed.items()]
    if body is not None and body[0] != body[1]:
        told.append(("text", {}))
    journal, clock = record
    for key, data in told:
        kind = ActivityKind.STATUS_CHANGED if key == MetadataKey.STATUS else ActivityKind.REQUEST_EDITED
        journal.append(Activity(clock(), kind, Actor.PERSON, request_id, data={"key": key, **data}))


def _check_expected(request_id: RequestId, patch: Patch, now: Request | InvalidRequest) -> None:
    """Refuse to change a key that no longer says what somebody saw; a missing one says its default."""
    for key in patch.values:
        found = value_of(now, key) if isinstance(now, Request) else None
        wanted = patch.expected.get(key, found)
        if isinstance(now, InvalidRequest) or found not in (wanted, patch.values[key]):
            told = ", ".join(found) if isinstance(found, tuple) else found
            raise ConflictError(request_id=request_id, path=now.where, key=key, found=told or "-")


def value_of(request: Request, key: str) -> Value:
    """Return what a key of a request says, as it is written."""
    found = getattr(request, key)
    return tuple(str(each) for each in found) if isinstance(found, tuple) else str(found)


def _check_body(request_id: RequestId, before: str, body: tuple[str, str], editor: RequestEditor) -> None:
    """Refuse a body with which the request could not be read any more."""
    old, new = body
    try:
        check_text(new)
    except MistakeError as mistake:
        raise BadInputError(request_id=request_id, problem=Problem(mistake.kind, None, mistake.facts)) from None
    read = editor.check_text(before.removesuffix(old) + new, request_id)
    if isinstance(read, InvalidRequest):
        raise BadInputError(
            reason_code="REQUEST_INVALID", request_id=request_id, path=read.where, problem=read.problems[0]
        )


def _version(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
