"""A text for a person, as a value: the id of the text and the facts that fill it, in no language yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

# How a run's record names the id of the words that say it; the names of their facts begin with it.
TOLD = "told"


@dataclass(frozen=True, slots=True)
class Detail:
    """One text; a fact of it may be another one. Output of others (git, an agent) is a fact, which we don't word."""

    key: str
    facts: tuple[tuple[str, object], ...] = ()


def detail(key: str, **facts: object) -> Detail:
    """Return the text of an id, with its facts."""
    return Detail(key, tuple(facts.items()))


def flat(told: Detail, name: str = TOLD) -> tuple[tuple[str, str], ...]:
    """Write a detail as plain facts, as a run's record keeps them."""
    facts: list[tuple[str, str]] = [(name, told.key)]
    for each, fact in told.facts:
        inside = f"{name}.{each}"
        facts += flat(fact, f"{inside}.{TOLD}") if isinstance(fact, Detail) else [(inside, str(fact))]
    return tuple(facts)


def from_flat(facts: Iterable[tuple[str, str]], name: str = TOLD) -> Detail | None:
    """Read a detail back; None if the record has none. Older records have its facts without a mark."""
    known = dict(facts)
    if name not in known:
        return None
    found: dict[str, object] = {each: fact for each, fact in known.items() if TOLD not in each.split(".")}
    for each, fact in known.items():
        rest = each.removeprefix(f"{name}.")
        if rest != each and "." not in rest:
            found[rest] = fact
        elif rest != each and rest.count(".") == 1 and rest.endswith(f".{TOLD}"):
            found[rest.removesuffix(f".{TOLD}")] = from_flat(facts, each)
    return Detail(known[name], tuple(found.items()))
