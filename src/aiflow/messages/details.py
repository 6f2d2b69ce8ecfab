"""Details on their way to a person: English for the record and for programs, said again in the person's language."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.details import Detail, flat, from_flat
from aiflow.messages import Texts
from aiflow.messages.commands import as_plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

ENGLISH = Texts("en")


class Words(str):
    """A text in English that knows what it says: what keeps or quotes it has a text, what shows it words it again.

    So files and the `--json` of errors have the same words in every language, and nothing English reaches a person who
    reads Japanese.
    """

    __slots__ = ("detail",)

    detail: Detail

    def __new__(cls, told: Detail) -> Words:
        """Write a detail in English."""
        words = super().__new__(cls, ENGLISH.say(told))
        words.detail = told
        return words


def detail_of(told: object) -> Detail | None:
    """Return what something says, if it is more than its words."""
    if isinstance(told, Words):
        return told.detail
    return told if isinstance(told, Detail) else None


def words(key: str, **facts: object) -> Words:
    """Say something that a person may read, by the id of its text."""
    return Words(Detail(key, tuple(facts.items())))


def as_text(fact: object) -> str:
    """Return a fact as a text; words stay what they are, and are worded again wherever they are shown."""
    if isinstance(fact, (str, Detail)):
        return Words(fact) if isinstance(fact, Detail) else fact
    return str(as_plain(fact))


def recorded(told: object, mask: Callable[[str], str] = str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return what a record keeps of a text: the English words, and the facts by which it is worded again."""
    known = detail_of(told)
    if known is None:
        return mask(str(told)), ()
    clean = _masked(known, mask)
    return mask(ENGLISH.say(clean)), flat(clean)


def masked(told: str, mask: Callable[[str], str]) -> str:
    """Take secrets out of a text; words stay words."""
    return Words(_masked(told.detail, mask)) if isinstance(told, Words) else mask(told)


def _masked(told: Detail, mask: Callable[[str], str]) -> Detail:
    return Detail(told.key, tuple((name, _masked_fact(fact, mask)) for name, fact in told.facts))


def _masked_fact(fact: object, mask: Callable[[str], str]) -> object:
    known = detail_of(fact)
    return mask(str(fact)) if known is None else _masked(known, mask)


def said_again(facts: Iterable[tuple[str, str]], texts: Texts) -> str:
    """Say what a record keeps in the person's language; empty if it keeps only words."""
    told = from_flat(facts)
    key = next((key for key in (told.key, f"agent_end.{told.key}") if texts.has(key)), None) if told else None
    return texts.say(Detail(key, told.facts)) if told and key else ""
