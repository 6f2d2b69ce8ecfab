"""An agent's updates cut down to what is read of them: a log needs no images, no raw outputs, no lists of commands."""

from __future__ import annotations

from typing import Any

# Of what an agent says in one piece, and of what a tool gave; as JSON it may be six times as long.
MAX_CHUNK = 500_000
MAX_OUTPUT = 20_000
_KEPT = ("sessionUpdate", "messageId", "toolCallId", "title", "kind", "status", "locations", "entries", "cost")


def slim(update: dict[str, Any]) -> dict[str, Any]:
    """Return an update without the parts that are never read."""
    kept = {key: _shorter(update[key]) for key in _KEPT if key in update}
    content = update.get("content")
    if isinstance(content, dict):
        return kept | {"content": _text(content, MAX_CHUNK)}
    if isinstance(content, list):
        parts = [part.get("content") for part in content if isinstance(part, dict)]
        return kept | {"content": [{"content": _text(part, MAX_OUTPUT)} for part in parts if isinstance(part, dict)]}
    return kept


def _text(content: dict[str, Any], most: int) -> dict[str, Any]:
    """Keep the text of a piece of content."""
    text = content.get("text")
    return {"type": "text", "text": text[:most]} if isinstance(text, str) else {}


def _shorter(value: Any, depth: int = 4) -> Any:
    """Cut texts and lists down to what a log could show."""
    if isinstance(value, str):
        return value[:MAX_OUTPUT]
    if isinstance(value, list):
        return [_shorter(one, depth - 1) for one in value[:100]] if depth else []
    if isinstance(value, dict):
        return {key: _shorter(one, depth - 1) for key, one in [*value.items()][:100]} if depth else {}
    return value
