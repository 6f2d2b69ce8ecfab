"""The words (ERR-1): what people read, in Japanese and English, filled with facts.

`messages.v1.<lang>.json` has title, summary and actions per reason code; `ui.v1.<lang>.json` everything else. An action
may have alternatives, the most precise first and the general one last: what is said is the first whose facts are known.
"""

from __future__ import annotations

import json
import os
import re
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

LANGUAGES = ("en", "ja")
DEFAULT_LANGUAGE = "en"
_PLACEHOLDERS = re.compile(r"\{(\w+)\}")


class Message(NamedTuple):
    """What a person is told about a reason code."""

    title: str
    summary: str
    actions: tuple[str, ...]


class Texts:
    """All words in one language."""

    def __init__(self, language: str) -> None:
        self.language = language if language in LANGUAGES else DEFAULT_LANGUAGE

    def __call__(self, key: str, /, **facts: object) -> str:
        """Return one text, filled; a missing key shows itself rather than failing."""
        template = _load("ui", self.language).get(key)
        return _fill(template, facts) if template is not None else key

    def has(self, key: str) -> bool:
        """Tell whether there is a text under a key."""
        return key in _load("ui", self.language)

    def message(self, code: str, facts: Mapping[str, object]) -> Message:
        """Return title, summary and actions of a reason code."""
        found = _load("messages", self.language).get(code)
        if found is None:
            return Message(code, "", ())
        actions = tuple(_fill(_fitting(action, facts), facts) for action in found["actions"])
        return Message(_fill(found["title"], facts), _fill(found["summary"], facts), actions)


def choose_language(flag: str | None, environ: Mapping[str, str], setting: str | None = None) -> str:
    """Choose the language: `--lang`, then AIFLOW_LANG, then the settings, then the locale."""
    for wanted in (flag, environ.get("AIFLOW_LANG"), environ.get("AIFLOW_LANGUAGE"), setting):
        if wanted in LANGUAGES:
            return str(wanted)
    locale = environ.get("LC_ALL") or environ.get("LC_MESSAGES") or environ.get("LANG") or ""
    return "ja" if locale.lower().startswith("ja") else DEFAULT_LANGUAGE


class _Facts(dict[str, object]):
    """Facts for a template; one that is not known stays visible."""

    def __missing__(self, key: str) -> str:
        return f"<{key}>"


def _fill(template: str, facts: Mapping[str, object]) -> str:
    return template.format_map(_Facts(facts)) if "{" in template else template


def _fitting(action: str | list[str], facts: Mapping[str, object]) -> str:
    """Choose among an action's alternatives."""
    alternatives = [action] if isinstance(action, str) else action
    known = (each for each in alternatives if all(name in facts for name in _PLACEHOLDERS.findall(each)))
    return next(known, alternatives[-1])


@cache
def _load(kind: str, language: str) -> dict[str, Any]:
    with open(f"{os.path.dirname(__file__)}/{kind}.v1.{language}.json", "rb") as file:
        loaded: dict[str, Any] = json.load(file)
    return loaded
