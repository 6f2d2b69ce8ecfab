"""Writing request files (REQ-3): only the keys that change, atomically, one process at a time."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from aiflow.adapters.files.atomic_files import create_file, remove_leftovers, replace_file, state_dir, translated
from aiflow.adapters.files.guard_files import guarded
from aiflow.adapters.markdown_requests.patch import PatchError, body_start, current_value, patch
from aiflow.domain.backlog.folder import SUFFIX, is_request_file
from aiflow.domain.backlog.metadata import ANY
from aiflow.domain.request import EDITABLE_KEYS, Problem, ProblemKind, normalize_id
from aiflow.errors import AiflowError, BadInputError, ConflictError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from aiflow.domain.backlog.metadata import Change
    from aiflow.domain.request import RequestId, Value

GUARD = "requests.guard"
_TRIES = 20


@dataclass(frozen=True, slots=True)
class Edit:
    """What to change in one file: keys, and the body as (expected, new); `where` is its path, for messages.

    With `before`, only if the whole text is still that.
    """

    request_id: RequestId
    changes: Mapping[str, Change]
    body: tuple[str, str] | None = None
    where: str = ""
    before: str | None = None


class Rewriting(NamedTuple):
    """A whole text that a person wrote in place of the one they began with."""

    request_id: RequestId
    where: str
    before: str
    after: str


def edit_file(root: Path, path: Path, edit: Edit) -> dict[str, tuple[Value, Value]]:
    """Read again under the guard and re-apply: a change of other keys meanwhile is no conflict."""
    with translated(path), guarded(state_dir(root, "locks") / GUARD):
        remove_leftovers(state_dir(root, "tmp"))
        for _ in range(_TRIES):
            data = path.read_bytes()
            if not data.strip():  # perhaps an editor is just writing it
                raise _cannot_edit(edit.request_id, edit.where, Problem(ProblemKind.EMPTY))
            text, changed = apply_edit(decode(data, edit.request_id, edit.where), edit)
            if replace_file(path, text.encode("utf-8"), state_dir(root, "tmp"), expected=data):
                return changed
    raise ConflictError(request_id=edit.request_id, path=edit.where, key=", ".join(edit.changes))


def apply_edit(text: str, edit: Edit) -> tuple[str, dict[str, tuple[Value, Value]]]:
    """Return the new text and what changes; a key that says something unexpected is a conflict."""
    if edit.before not in (None, text):
        raise ConflictError(request_id=edit.request_id, path=edit.where, key="text", found="…")
    changed: dict[str, tuple[Value, Value]] = {}
    for key, change in edit.changes.items():
        old = current_value(text, key)
        if old == change.new:
            continue
        if change.expected is not ANY and old != change.expected:
            found = _plain(old) or "-"
            raise ConflictError(request_id=edit.request_id, path=edit.where, key=key, found=found)
        changed[key] = (old, change.new)
    text = apply_values(text, {key: new for key, (_, new) in changed.items()}, edit.request_id, edit.where)
    if edit.body is not None:
        expected, new = edit.body
        at = body_start(text)
        if text[at:] not in (expected, new):
            raise ConflictError(request_id=edit.request_id, path=edit.where, key="body", found="…")
        text = text[:at] + new
    return text, changed


def rewrite_file(root: Path, path: Path, rewriting: Rewriting) -> None:
    """Replace the text that a person began with by theirs, with what others changed meanwhile (REQ-3)."""
    with translated(path), guarded(state_dir(root, "locks") / GUARD):
        remove_leftovers(state_dir(root, "tmp"))
        for _ in range(_TRIES):
            data = path.read_bytes()
            text = merge_texts(decode(data, rewriting.request_id, rewriting.where), rewriting)
            if replace_file(path, text.encode("utf-8"), state_dir(root, "tmp"), expected=data):
                return
    raise ConflictError(request_id=rewriting.request_id, path=rewriting.where, key="body", found="…")


def merge_texts(now: str, rewriting: Rewriting) -> str:
    """Return a person's text with the keys that others changed since they began; what both changed is a conflict."""
    before, after = rewriting.before, rewriting.after
    if now in (before, after):
        return after
    conflict = ConflictError(request_id=rewriting.request_id, path=rewriting.where, key="body", found="…")
    try:
        began = {key.value: current_value(before, key) for key in EDITABLE_KEYS}
        theirs = {key: new for key, old in began.items() if (new := current_value(now, key)) != old}
        mine = {key: new for key, old in began.items() if (new := current_value(after, key)) != old}
        is_more = patch(before, theirs) != now  # a comment, a key of the user's own, the body
        both = [key for key, value in theirs.items() if mine.get(key, value) != value]
        merged = patch(after, theirs)
    except PatchError:
        raise conflict from None
    if both:
        conflict.context.update(key=both[0], found=_plain(theirs[both[0]]) or "-")
    if both or is_more:
        raise conflict
    return merged


def create_request_file(
    root: Path, name: str, propose: Callable[[frozenset[str]], RequestId], text: str, values: Mapping[str, Value]
) -> str:
    """Create a file in a folder under an id that is free, whole or not at all; return its path below the root."""
    folder = root / name
    with translated(folder), guarded(state_dir(root, "locks") / GUARD):
        names = filter(is_request_file, os.listdir(folder))
        ids = [normalize_id(each.removesuffix(SUFFIX)) for each in names]
        taken = {existing.casefold(): existing for existing in ids}
        request_id = propose(frozenset(taken))
        path = f"{name}/{request_id}{SUFFIX}"
        data = apply_values(text, values, request_id, path).encode("utf-8")
        existing = taken.get(request_id.casefold())
        if existing or not create_file(root / path, data, state_dir(root, "tmp")):
            found = existing or request_id
            raise ConflictError(reason_code="REQUEST_EXISTS", request_id=found, path=f"{name}/{found}{SUFFIX}")
    return path


def apply_values(text: str, values: Mapping[str, Value], request_id: RequestId, where: str) -> str:
    """Return a text with these keys changed, or refuse with what is wrong with it."""
    try:
        return patch(text, values) if values else text
    except PatchError as error:
        raise _cannot_edit(request_id, where, error.problem) from error


def decode(data: bytes, request_id: RequestId, where: str) -> str:
    """Return a file's text, or refuse what is none."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise _cannot_edit(request_id, where, Problem(ProblemKind.NOT_TEXT)) from None


def _cannot_edit(request_id: RequestId, where: str, problem: Problem) -> AiflowError:
    return BadInputError(reason_code="REQUEST_INVALID", request_id=request_id, path=where, problem=problem)


def _plain(value: Value) -> str:
    return ", ".join(value) if isinstance(value, tuple) else value or ""
