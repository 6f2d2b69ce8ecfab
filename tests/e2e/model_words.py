"""What every API between an agent and its model has: words, results of tools, a schema, a folder, events."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from e2e.model_turns import Action, Answer, Asked, Say, UseTool

Event = dict[str, Any] | str
# What the programs themselves put among the user's words.
_OWN_WORDS = ("<system-reminder>", "<environment_context>", "<user_instructions>", "# AGENTS.md")
_FOLDER = re.compile(r"(?:[Ww]orking directory: |<cwd>)([^\n<]+)")


class Usage(NamedTuple):
    """The tokens that an answer costs."""

    input_tokens: int = 100
    output_tokens: int = 7


class Heard(NamedTuple):
    """The parts of a request that all APIs have."""

    tools: tuple[str, ...]
    prompt: str
    results: tuple[str, ...]
    schema: Mapping[str, Any] | None
    folder: str


class Call(NamedTuple):
    """One use of a tool, or text if the name is empty."""

    name: str
    arguments: Mapping[str, Any]
    text: str = ""


def text_of(content: Any) -> str:
    """The words of a content, whatever its form."""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        return text_of(content.get("text") or content.get("content") or content.get("output") or "")
    return "\n".join(text_of(part) for part in content or ())


def _is_own(text: str) -> bool:
    return text.lstrip().startswith(_OWN_WORDS)


def listen(parts: Iterable[tuple[str, str]]) -> tuple[str, tuple[str, ...]]:
    """Find what the user said last, and what the tools gave since."""
    prompt, results, was_user = "", list[str](), False
    for kind, text in parts:
        if kind == "result":
            results.append(text)
        elif kind == "user" and not _is_own(text):
            prompt, results = (f"{prompt}\n{text}" if was_user else text), []
        was_user = kind == "user" and (was_user or not _is_own(text))
    return prompt, tuple(results)


def folder_in(body: Mapping[str, Any]) -> str:
    """Find where the program says it works."""
    found = _FOLDER.search(
        json.dumps([body.get("system"), body.get("messages"), body.get("input")]).replace("\\n", "\n")
    )
    return found[1].strip() if found else ""


def encode(event: Event) -> bytes:
    """Write one server-sent event."""
    if isinstance(event, str):
        return f"data: {event}\n\n".encode()
    name = f"event: {event['type']}\n" if "type" in event else ""
    return f"{name}data: {json.dumps(event)}\n\n".encode()


def plain(action: Action) -> Call:
    """Write what needs no tool of the program's own."""
    match action:
        case UseTool(name, arguments):
            return Call(name, arguments)
        case Answer(value):
            return Call("", {}, json.dumps(value))
        case Say(text):
            return Call("", {}, text)
    raise AssertionError(action)


def absolute(path: str, asked: Asked) -> str:
    """Put a path below the folder that the program works in."""
    return path if path.startswith("/") else f"{asked.folder}/{path}"


def new_id(prefix: str) -> str:
    """Make an id as the APIs do."""
    return f"{prefix}_{uuid.uuid4().hex[:24]}"
