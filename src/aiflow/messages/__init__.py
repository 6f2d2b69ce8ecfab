"""The words (ERR-1): what people read, in Japanese and English, filled with facts.

`messages.v1.<lang>.json` has title, summary and actions per reason code; `ui.v1.<lang>.json` everything else. An action
is words, or words and what to do (`advice`). It may have alternatives, the most precise first and the general one last:
the first whose facts are known is used. A fact that is an action (`NextAction`) is shown as its command, a
`Detail` in the language of the text around it.
"""

from __future__ import annotations

import json
import os
import re
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiflow.messages.advice import Advice

LANGUAGES = ("en", "ja")
DEFAULT_LANGUAGE = "en"
_PLACEHOLDERS = re.compile(r"\{(\w+)\}")


class Message(NamedTuple):
    """What a person gets to read about a reason code."""

    title: str
    summary: str
    actions: tuple[Advice, ...]


class Texts:
    """All words in one language."""

    def __init__(self, language: str) -> None:
        self.language = language if language in LANGUAGES else DEFAULT_LANGUAGE

    def __call__(self, key: str, /, **facts: object) -> str:
        """Return one text, filled; a missing key shows itself rather than failing."""
        template = _load("ui", self.language).get(key)
        return self._fill(template, facts) if template is not None else key

    def sentences(self, *parts: str) -> str:
        """Write sentences one behind the other; in Japanese there is no blank between them."""
        return ("" if self.language == "ja" else " ").join(part for part in parts if part)

    def say(self, told: object) -> str:
        """Say a detail in this language; what is only a text stays as it is."""
        from aiflow.messages.details import detail_of

        known = detail_of(told)
        return self(known.key, **dict(known.facts)) if known is not None else str(told)

    def has(self, key: str) -> bool:
        """Return whether there is a text under a key."""
        return key in _load("ui", self.language)

    def message(self, code: str, facts: Mapping[str, object]) -> Message:
        """Return title, summary and actions of a reason code."""
        found = _load("messages", self.language).get(code)
        if found is None:
            return Message(code, "", ())
        from aiflow.messages.advice import issue_of, read_advice, taken_for_issue

        issue = issue_of(facts)
        facts = {**facts, "issue": issue} if issue else facts
        fitting = (_fitting(action, facts) for action in found["actions"])
        actions = tuple(read_advice(action, facts, lambda text: self._fill(text, facts)) for action in fitting)
        actions = tuple(taken_for_issue(actions, issue, self)) if issue else actions
        # What is in the way may be another request's.
        other = _load("ui", self.language).get(f"title.{code}.other") if "asked_for" in facts else None
        # … or no request's yet; what is gone may have left its work on a branch, what was changed may be git's own.
        forms = (f"summary.{code}.{name}" for name in ("turn", "merge", "git_settings", "unposted") if name in facts)
        summary = next(filter(None, map(_load("ui", self.language).get, forms)), None)
        return Message(
            self._fill(other or found["title"], facts), self._fill(summary or found["summary"], facts), actions
        )

    def _fill(self, template: str, facts: Mapping[str, object]) -> str:
        return template.format_map(_Facts(facts, self)) if "{" in template else template


def choose_language(flag: str | None, environ: Mapping[str, str], setting: str | None = None) -> str:
    """Choose the language: `--lang`, then AIFLOW_LANG, then the settings, then the locale."""
    for wanted in (flag, environ.get("AIFLOW_LANG"), environ.get("AIFLOW_LANGUAGE"), setting):
        if wanted in LANGUAGES:
            return str(wanted)
    locale = environ.get("LC_ALL") or environ.get("LC_MESSAGES") or environ.get("LANG") or ""
    return "ja" if locale.lower().startswith("ja") else DEFAULT_LANGUAGE


class _Facts(dict[str, object]):
    """Facts for a template, in a language; one that is not known stays visible."""

    def __init__(self, facts: Mapping[str, object], texts: Texts) -> None:
        super().__init__(facts)
        self._texts = texts

    def __getitem__(self, key: str) -> object:
        fact = super().__getitem__(key)
        if type(fact) in (str, int, float):
            return fact
        from aiflow.messages.commands import as_plain
        from aiflow.messages.details import detail_of

        return as_plain(fact) if detail_of(fact) is None else self._texts.say(fact)

    def __missing__(self, key: str) -> str:
        return f"<{key}>"


def _fitting(action: Any, facts: Mapping[str, object]) -> Any:
    """Choose among an action's alternatives."""
    from aiflow.messages.advice import SLOT, needed

    def is_known(each: Any) -> bool:
        text = each if isinstance(each, str) else each["text"].replace(SLOT, "")
        return all(name in facts for name in (*_PLACEHOLDERS.findall(text), *needed(each)))

    alternatives = action if isinstance(action, list) else [action]
    return next(filter(is_known, alternatives), alternatives[-1])


@cache
def _load(kind: str, language: str) -> dict[str, Any]:
    with open(f"{os.path.dirname(__file__)}/{kind}.v1.{language}.json", "rb") as file:
        loaded: dict[str, Any] = json.load(file)
    return loaded
