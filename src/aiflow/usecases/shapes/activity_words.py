"""What an entry of the journal says, in words: for the terminal and the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from aiflow.messages import Texts

# What is said in its own way, or says nothing to a person.
_SAID = ("event", "key", "from", "to", "digest")


def kind_words(fields: Mapping[str, Any], texts: Texts) -> str:
    """Say what kind of thing happened."""
    kind = str(fields.get("kind", ""))
    return texts(f"activity.kind.{kind}") if texts.has(f"activity.kind.{kind}") else kind


def more_words(fields: Mapping[str, Any]) -> Iterator[str]:
    """Yield what an entry says besides: what was changed or moved, and its other facts; not its reason."""
    told = fields.get("data")
    data: dict[str, Any] = told if isinstance(told, dict) else {}
    yield str(data.get("event") or data.get("key") or "")
    way = " → ".join(str(data[name]) for name in ("from", "to") if data.get(name) not in (None, ""))
    yield "" if data.get("from") == data.get("to") else way
    for name, value in data.items():
        if name not in _SAID and value not in (None, "", [], {}) and value is not False:
            yield f"{name}={len(value) if isinstance(value, (list, dict)) else value}"


def activity_words(fields: Mapping[str, Any], texts: Texts) -> str:
    """Say one entry in a line."""
    return "  ".join(filter(None, (kind_words(fields, texts), *more_words(fields))))
