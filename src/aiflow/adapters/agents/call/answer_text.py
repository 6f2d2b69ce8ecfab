"""An agent's answer inside what it said (AGT-3): the one JSON object taken out, and shown to a person without braces.

Pure, takes any text, never raises, and takes no longer than the text is long.
"""

from __future__ import annotations

import json
import re
from typing import Any

# How many braces that begin nothing are looked at; an answer is not that deep in a text.
MAX_TRIES = 50
_FENCE = re.compile(r"```(?:json|JSON)?[ \t]*\n(.*?)\n?[ \t]*```", re.DOTALL)
_DECODER = json.JSONDecoder()


def answer_in(text: str) -> bytes:
    """Return the JSON object that a text holds, if it holds exactly one; else the text, for the reader to judge."""
    found = _object_of(text)
    return (text if found is None else found).encode("utf-8", "surrogatepass")


def has_answer(text: str) -> bool:
    """Return whether a text holds exactly one JSON object."""
    return _object_of(text) is not None


def readable(text: str) -> str:
    """Show a message as a person reads it: an answer as lines of `key: value`, all else as it is."""
    found = _object_of(text)
    if found is None:
        return text.strip()
    lines = "\n".join(line for key, value in _load(found).items() for line in _lines(key, value))
    return _FENCE.sub(r"\1", text).replace(found, lines).strip()


def _object_of(text: str) -> str | None:
    whole = _unfenced(text)
    if _is_object(whole):
        return whole
    found, at, tries = list[str](), whole.find("{"), 0
    while at >= 0 and tries < MAX_TRIES and len(found) < 2:
        end = _end_of_object(whole, at)
        if end is None:
            tries += 1
        else:
            found.append(whole[at:end])
        at = whole.find("{", at + 1 if end is None else end)
    return found[0] if len(found) == 1 else None


def _unfenced(text: str) -> str:
    """Take the one fence off that stands around everything that counts."""
    fences = _FENCE.findall(text)
    return (fences[0] if len(fences) == 1 and _is_object(fences[0].strip()) else text).strip()


def _end_of_object(text: str, at: int) -> int | None:
    try:
        value, end = _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        return None
    return end if isinstance(value, dict) and value else None


def _is_object(text: str) -> bool:
    return bool(_load(text))


def _load(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text) if text.startswith("{") else None
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _lines(key: str, value: Any) -> list[str]:
    """Show one key; what is empty is not shown."""
    if isinstance(value, list):
        items = [_item(item) for item in value]
        return [f"{key}:", *(f"  - {item}" for item in items)] if items else []
    return [f"{key}: {_item(value)}"] if value not in ("", None, {}) else []


def _item(value: Any) -> str:
    if isinstance(value, dict):
        named = [str(value[name]) for name in ("id", "title") if value.get(name)]
        return " ".join(named) or ", ".join(f"{key}: {_item(one)}" for key, one in value.items())
    if isinstance(value, list):
        return ", ".join(map(_item, value))
    return value if isinstance(value, str) else json.dumps(value)
