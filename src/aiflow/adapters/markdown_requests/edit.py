"""Writing request files (REQ-3): only the keys that change, atomically, one process at a time."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiflow.adapters.atomic_files import (
    create_file,
    guarded,
    remove_leftovers,
    replace_file,
    state_dir,
    translated,
)
from aiflow.adapters.markdown_requests.patch import PatchError, body_start, current_value, patch
from aiflow.adapters.markdown_requests.store import FOLDER, SUFFIX, is_request
from aiflow.domain.change import ANY
from aiflow.domain.request import Problem, ProblemKind, normalize_id
from aiflow.errors import AiflowError, BadInputError, ConflictError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from aiflow.domain.change import Change
    from aiflow.domain.request import RequestId, Value

GUARD = "requests.guard"
_TRIES = 20


@dataclass(frozen=True, slots=True)
class Edit:
    """What to change in one file: keys, and the body as (expected, new)."""

    request_id: RequestId
    changes: Mapping[str, Change]
    body: tuple[str, str] | None = None


def edit_file(root: Path, path: Path, edit: Edit) -> dict[str, tuple[Value, Value]]:
    """Read anew under the guard and re-apply: a change of other keys meanwhile is no conflict."""
    with translated(path), guarded(state_dir(root, "locks") / GUARD):
        remove_leftovers(state_dir(root, "tmp"))
        for _ in range(_TRIES):
            data = path.read_bytes()
            if not data.strip():  # perhaps an editor is just writing it
                raise _cannot_edit(edit.request_id, Problem(ProblemKind.EMPTY))
            text, changed = apply_edit(_decode(data, edit.request_id), edit)
            if replace_file(path, text.encode("utf-8"), state_dir(root, "tmp"), expected=data):
                return changed
    raise ConflictError(request_id=edit.request_id, path=_path(edit.request_id), key=", ".join(edit.changes))


def apply_edit(text: str, edit: Edit) -> tuple[str, dict[str, tuple[Value, Value]]]:
    """Return the new text and what changes; a key that says something unexpected is a conflict."""
    changed: dict[str, tuple[Value, Value]] = {}
    for key, change in edit.changes.items():
        old = current_value(text, key)
        if old == change.new:
            continue
        if change.expected is not ANY and old != change.expected:
            found = _plain(old) or "-"
            raise ConflictError(request_id=edit.request_id, path=_path(edit.request_id), key=key, found=found)
        changed[key] = (old, change.new)
    text = apply_values(text, {key: new for key, (_, new) in changed.items()}, edit.request_id)
    if edit.body is not None:
        expected, new = edit.body
        at = body_start(text)
        if text[at:] not in (expected, new):
            raise ConflictError(request_id=edit.request_id, path=_path(edit.request_id), key="body", found="…")
        text = text[:at] + new
    return text, changed


def create_request_file(
    root: Path, folder: Path, propose: Callable[[frozenset[str]], RequestId], text: str, values: Mapping[str, Value]
) -> str:
    """Create a file under an id that is free, whole or not at all; return its name."""
    with translated(folder), guarded(state_dir(root, "locks") / GUARD):
        names = [name for name in os.listdir(folder) if is_request(name)]
        ids = [normalize_id(name.removesuffix(SUFFIX)) for name in names]
        taken = {existing.casefold(): existing for existing in ids}
        request_id = propose(frozenset(taken))
        name = f"{request_id}{SUFFIX}"
        data = apply_values(text, values, request_id).encode("utf-8")
        existing = taken.get(request_id.casefold())
        if existing or not create_file(folder / name, data, state_dir(root, "tmp")):
            found = existing or request_id
            raise ConflictError(reason_code="REQUEST_EXISTS", request_id=found, path=_path(found))
    return name


def apply_values(text: str, values: Mapping[str, Value], request_id: RequestId) -> str:
    """Return a text with these keys changed, or refuse with what is wrong with it."""
    try:
        return patch(text, values) if values else text
    except PatchError as error:
        raise _cannot_edit(request_id, error.problem) from error


def _decode(data: bytes, request_id: RequestId) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise _cannot_edit(request_id, Problem(ProblemKind.NOT_TEXT)) from None


def _cannot_edit(request_id: RequestId, problem: Problem) -> AiflowError:
    return BadInputError(reason_code="REQUEST_INVALID", request_id=request_id, path=_path(request_id), problem=problem)


def _path(request_id: RequestId) -> str:
    return f"{FOLDER}/{request_id}{SUFFIX}"


def _plain(value: Value) -> str:
    return ", ".join(value) if isinstance(value, tuple) else value or ""
