"""Codex's items as a person reads them in the step's log (AGT-4): commands and what they gave, changes, words.

Pure. What it does not know it does not show: raw JSON in a log is no help.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from aiflow.adapters.agents.call.answer_text import readable
from aiflow.adapters.agents.call.json_fields import part_of, parts_of, text_of
from aiflow.adapters.agents.call.log_text import inside, shortened, used_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aiflow.adapters.agents.call.json_fields import Fields
    from aiflow.domain.agents.usage import Usage


def shown_begin(item: Fields) -> str | None:
    """Show an item as it begins: a command that may take long, a list of things to do."""
    if item.get("type") == "command_execution":
        return f"$ {_command(text_of(item, 'command'))}"
    return shown_todo(item)


def shown_item(item: Fields, cwd: str) -> str | None:
    """Show an item once it is done; None where that says nothing new."""
    show = _SHOWN.get(text_of(item, "type"))
    return show(item, cwd) or None if show else None


def shown_todo(item: Fields) -> str | None:
    """Show a list of things to do, as it is made and whenever it changes."""
    rows = parts_of(item, "items") if item.get("type") == "todo_list" else []
    lines = (f"  [{'x' if row.get('completed') is True else ' '}] {text_of(row, 'text')}" for row in rows)
    return "\n".join(("to do:", *lines)) if rows else None


def shown_tokens(usage: Usage) -> str:
    """Show what a turn used."""
    return f"codex: done; {used_tokens(usage)}"


def _command(command: str) -> str:
    """Take the shell off that codex puts around every command."""
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    is_wrapped = len(words) == 3 and words[1] in ("-c", "-lc") and words[0].endswith("sh")
    return words[2] if is_wrapped else command


def _result(item: Fields) -> str:
    output = shortened(text_of(item, "aggregated_output").rstrip())
    code, status = item.get("exit_code"), text_of(item, "status")
    ending = "" if code == 0 else f"(exit code {code})" if isinstance(code, int) else f"({status or 'no exit code'})"
    return "\n".join(filter(None, (output, ending)))


def _changes(item: Fields, cwd: str) -> str:
    told = parts_of(item, "changes")
    files = ", ".join(f"{text_of(change, 'kind')} {inside(text_of(change, 'path'), cwd)}".strip() for change in told)
    status = text_of(item, "status")
    return f"files: {files}" + ("" if status == "completed" else f" ({status})") if files else ""


def _tool(item: Fields) -> str:
    """Show a server's tool, and why it failed if that is reported."""
    error = shortened(text_of(part_of(item, "error"), "message"))
    return f"tool {text_of(item, 'server')}.{text_of(item, 'tool')}: {error or text_of(item, 'status')}"


_SHOWN: Mapping[str, Callable[[Fields, str], str]] = {
    "command_execution": lambda item, _: _result(item),
    "agent_message": lambda item, _: readable(text_of(item, "text")),
    "reasoning": lambda item, _: text_of(item, "text").strip(),
    "file_change": _changes,
    "mcp_tool_call": lambda item, _: _tool(item),
    "web_search": lambda item, _: f"web search: {text_of(item, 'query')}",
    "error": lambda item, _: f"warning: {text_of(item, 'message')}",
}
