"""What was typed into a refused form (WEB-1): without a script, its page shows the form again and loses nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.lifecycle import PERSON_EVENTS
from aiflow.domain.request import Priority

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from aiflow.web.acting import Form

_CHOICES: Mapping[str, tuple[str, ...]] = {
    "status": tuple(each.value for each in PERSON_EVENTS),
    "priority": tuple(each.value for each in Priority),
}


class TypedField(NamedTuple):
    """A field that is shown again: with `rows` a text, with `choices` a list, otherwise a line."""

    name: str
    label: str
    value: str
    rows: int = 0
    choices: tuple[str, ...] = ()


class FormAgain(NamedTuple):
    """A refused form: where it is sent, what is shown of it, and what goes with that unseen."""

    path: str
    shown: tuple[TypedField, ...]
    unseen: tuple[tuple[str, str], ...]


class _Kind(NamedTuple):
    name: str
    label: str
    rows: int = 0


_KEYS = (_Kind("depends_on", "web.depends_on"), _Kind("labels", "web.labels"))
# By the last part of the address that a form is sent to.
_FORMS: Mapping[str, tuple[_Kind, ...]] = {
    "requests": (
        _Kind("title", "web.col.title"),
        _Kind("text", "web.new.text", 10),
        _Kind("priority", "web.col.priority"),
        *_KEYS,
        _Kind("request_id", "web.new.id"),
    ),
    "edit": (_Kind("text", "web.edit.text", 24),),
    "set": (_Kind("status", "web.col.status"), _Kind("priority", "web.col.priority"), *_KEYS),
    "resume": (_Kind("answer", "web.your_answer", 4),),
    "send-back": (_Kind("comment", "web.send_back.what", 4),),
    "start": tuple(_Kind(name, f"web.evening.{name}") for name in ("until", "max_runs", "max_minutes", "max_cost_usd")),
}


def form_again(path: str, form: Form) -> FormAgain | None:
    """Return the form that was sent to an address as it is shown again, or None if nothing was typed into it."""
    kinds = _FORMS.get(path.rsplit("/", 1)[-1], ())
    names = {name for name, _ in form.fields}
    shown = tuple(_shown(kind, form) for kind in kinds if kind.name in names)
    if not any(each.value.strip() for each in shown if not each.choices):
        return None
    return FormAgain(path, shown, tuple(_unseen(form, {each.name for each in shown})))


def _shown(kind: _Kind, form: Form) -> TypedField:
    value, known = form(kind.name), _CHOICES.get(kind.name, ())
    choices = known if not known or value in known else (value, *known)
    return TypedField(kind.name, kind.label, value, kind.rows, choices)


def _unseen(form: Form, shown: set[str]) -> Iterator[tuple[str, str]]:
    return ((name, value) for name, value in form.fields if name not in shown)
