"""An agent's tool calls and plans as lines of a log: each call once as it begins, and what came of it."""

from __future__ import annotations

from typing import Any

from aiflow.adapters.agents.call.log_text import inside

# How much of a command's output a log keeps; the whole is the agent's business.
MOST_LINES = 12
MOST_LETTERS = 300
MAX_CALLS = 10_000
_MARKS = {"completed": "x", "in_progress": ">"}


class ToolLog:
    """Follows the tool calls of one turn."""

    def __init__(self, cwd: str) -> None:
        self._cwd = cwd
        self._known: dict[str, dict[str, str]] = {}
        self._begun: set[str] = set()
        self._ended: set[str] = set()

    def read(self, update: dict[str, Any]) -> str | None:
        """Take news of a call; return what is new to the log."""
        call_id = text_of(update.get("toolCallId"))
        known = self._known.setdefault(call_id, {}) if len(self._known) < MAX_CALLS else {}
        known |= {key: value for key in ("title", "kind", "status") if (value := text_of(update.get(key)))}
        if known.get("status", "pending") == "pending":  # often without a title yet
            return None
        lines = []
        if call_id not in self._begun:
            self._begun.add(call_id)
            lines.append(self._begin(known, update))
        if known["status"] in ("completed", "failed") and call_id not in self._ended:
            self._ended.add(call_id)
            lines += ["  failed"] if known["status"] == "failed" else []
            lines += _output(update.get("content")) if known.get("kind") in ("execute", None) or lines[-1:] else []
        return "\n".join(lines) or None

    def _begin(self, known: dict[str, str], update: dict[str, Any]) -> str:
        """Say what is done and where; a command is at home in the worktree."""
        title, kind = _one_line(known.get("title", "")), known.get("kind", "tool")
        places = update.get("locations") if kind != "execute" else None
        first = places[0] if isinstance(places, list) and places else None
        path = inside(text_of(first.get("path")), self._cwd) if isinstance(first, dict) else ""
        return f"> {kind}: {title} {'' if path in title else path}".rstrip()


def plan_lines(update: dict[str, Any]) -> str | None:
    """Show an agent's plan."""
    entries = update.get("entries")
    entries = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    lines = [
        f"  [{_MARKS.get(text_of(entry.get('status')), ' ')}] {_one_line(text_of(entry.get('content')))}"
        for entry in entries[:50]
    ]
    return "\n".join(("plan:", *lines)) if lines else None


def text_of(value: object) -> str:
    """Return a text that a log can take; nothing of anything else."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def _output(content: object) -> list[str]:
    """Show the begin of what a tool gave."""
    parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    inner = (part.get("content") for part in parts)
    text = "\n".join(text_of(one.get("text")) for one in inner if isinstance(one, dict))
    lines = [line for line in text.splitlines() if line.strip()]
    shown = [f"  | {line[:MOST_LETTERS]}" for line in lines[:MOST_LINES]]
    return [*shown, f"  | … {len(lines) - MOST_LINES} more lines"] if len(lines) > MOST_LINES else shown


def _one_line(text: str) -> str:
    return " ".join(text.split())[: 2 * MOST_LETTERS]
