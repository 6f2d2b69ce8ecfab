"""Checking settings (CFG): each value against its row of the table; what is wrong is a value, too."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from aiflow.settings.table import BY_NAME, SECTIONS, SettingKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from aiflow.settings.table import Setting, SettingValue


class MistakeKind(StrEnum):
    """What can be wrong with a setting; the words are in `messages/` under `settings_mistake.<kind>`."""

    UNKNOWN = "unknown"
    WRONG_TYPE = "wrong_type"
    NOT_A_CHOICE = "not_a_choice"
    OUT_OF_RANGE = "out_of_range"
    NOT_A_STORE = "not_a_store"
    NOT_A_NAMESPACE = "not_a_namespace"
    NOT_A_FOLDER = "not_a_folder"
    NOT_A_REPO = "not_a_repo"
    NOT_A_SAFE_URL = "not_a_safe_url"
    NOT_A_SECTION = "not_a_section"
    MISPLACED = "misplaced"
    NO_VALUE = "no_value"
    NOT_FOR_AGENTS = "not_for_agents"
    SYNTAX = "syntax"


class Mistake(NamedTuple):
    """One mistake: which setting, what is wrong, and the facts for its message."""

    name: str
    kind: MistakeKind
    facts: tuple[tuple[str, str], ...] = ()


def check_tables(tables: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, SettingValue] | Mistake]:
    """Walk a parsed TOML document and yield each setting's name and value, or what is wrong with it."""
    for key, raw in tables.items():
        name = f"{prefix}{key}"
        if name in SECTIONS:
            if isinstance(raw, dict):
                yield from check_tables(raw, f"{name}.")
            else:
                yield Mistake(name, MistakeKind.NOT_A_SECTION)
        elif name in BY_NAME:
            yield check_value(BY_NAME[name], raw)
        else:
            yield unknown(name)


def unknown(name: str) -> Mistake:
    """Say that there is no such setting, and which one may have been meant."""
    import difflib

    section, _, last = name.rpartition(".")
    if section and last in BY_NAME:
        return Mistake(name, MistakeKind.MISPLACED, (("setting", last), ("section", section)))
    close = difflib.get_close_matches(name, [*BY_NAME, *SECTIONS], n=1)
    return Mistake(name, MistakeKind.UNKNOWN, (("suggestion", close[0] if close else ""),))


def check_value(setting: Setting, raw: object) -> tuple[str, SettingValue] | Mistake:
    """Check one value of a file against its row."""
    value = _of_kind(setting.kind, raw)
    if value is None:
        return Mistake(setting.name, MistakeKind.WRONG_TYPE, (("wanted", setting.kind.value), ("value", _short(raw))))
    if setting.choices and value not in setting.choices:
        allowed = ", ".join(choice for choice in setting.choices if choice)
        return Mistake(setting.name, MistakeKind.NOT_A_CHOICE, (("value", str(value)), ("allowed", allowed)))
    if isinstance(value, (int, float)) and not setting.minimum <= value <= setting.maximum:
        allowed = f"{setting.minimum:g} … {setting.maximum:.0f}"
        return Mistake(setting.name, MistakeKind.OUT_OF_RANGE, (("value", _short(value)), ("allowed", allowed)))
    if setting.form and isinstance(value, str) and not _has_form(setting.form, value):
        # A URL may have a password in it, and a message may be read by anybody.
        shown = value if "@" not in value else f"…@{value.rpartition('@')[2]}"
        return Mistake(setting.name, MistakeKind(f"not_a_{setting.form}"), (("value", _short(shown)),))
    return setting.name, value


def _has_form(form: str, value: str) -> bool:
    from aiflow.settings import forms

    check: bool = getattr(forms, f"is_{form}")(value)
    return check


def _of_kind(kind: SettingKind, raw: object) -> SettingValue | None:
    """Return a value if it is of the kind, else None."""
    if kind is SettingKind.LIST:
        is_texts = isinstance(raw, (list, tuple)) and all(isinstance(item, str) for item in raw)
        return tuple(raw) if is_texts else None  # type: ignore[arg-type]
    if isinstance(raw, bool) or kind is SettingKind.BOOLEAN:
        return raw if isinstance(raw, bool) and kind is SettingKind.BOOLEAN else None
    if kind is SettingKind.NUMBER:
        return _as_float(raw) if isinstance(raw, (int, float)) else None
    wanted = int if kind is SettingKind.INTEGER else str
    return raw if isinstance(raw, wanted) else None


def _as_float(number: float) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf


def _short(value: object) -> str:
    """Write a value for a message: not longer than a line, however many digits it has."""
    try:
        text = repr(value) if not isinstance(value, float) else str(value)
    except ValueError:  # Python refuses to write a number of thousands of digits
        return "…"
    return text if len(text) <= 60 else f"{text[:60]}…"


_TRUTH = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


def check_text(setting: Setting, text: str) -> tuple[str, SettingValue] | Mistake:
    """Check one value given as text, in an environment variable or on the command line."""
    raw: object = text
    try:
        if setting.kind is SettingKind.INTEGER:
            raw = int(text)
        elif setting.kind is SettingKind.NUMBER:
            raw = float(text)
        elif setting.kind is SettingKind.BOOLEAN:
            raw = _TRUTH.get(text.strip().lower(), text)
        elif setting.kind is SettingKind.LIST:
            raw = _listed(text)
    except (ValueError, RecursionError):
        raw = text
    return check_value(setting, raw)


def _listed(text: str) -> object:
    """Read a list as in the file if it begins like one there, else as a shell reads words."""
    if not text.lstrip().startswith("["):
        import shlex

        return shlex.split(text)
    import tomllib

    tables = tomllib.loads(f"given = {text.strip()}")
    return tables["given"] if len(tables) == 1 else text
