"""Claude's events as a person reads them in the step's log (AGT-4): what it says, what it does, what came of it.

Pure. What it does not know it does not show: raw JSON in a log is no help.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from aiflow.adapters.agents.call.answer_text import readable
from aiflow.adapters.agents.call.json_fields import count_of, number_of, part_of, parts_of, text_of
from aiflow.adapters.agents.call.log_text import inside, shortened, used_tokens
from aiflow.adapters.agents.claude.troubles import reset_of, words_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aiflow.adapters.agents.call.json_fields import Fields
    from aiflow.domain.agents.usage import Usage

MAX_TARGET = 400
ANSWER_TOOL = "StructuredOutput"
SHELL_TOOL = "Bash"
# What a tool is used on, the most telling argument first.
_TARGETS = (
    "command",
    "file_path",
    "notebook_path",
    "path",
    "pattern",
    "url",
    "query",
    "skill",
    "description",
    "prompt",
)
# What claude says only to its model.
_NOISE = (
    re.compile(r"</?tool_use_error>"),
    re.compile(r" IMPORTANT: You \*may\*.*", re.DOTALL),
    re.compile(r"^\(Bash completed .*\)$"),
)
_CONTROLS = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|[\x00-\x08\x0b-\x1f\x7f]")


def shown_system(event: Fields) -> str | None:
    """Show what the program says about itself."""
    kind = text_of(event, "subtype")
    if kind == "init":
        version, model = text_of(event, "claude_code_version"), text_of(event, "model")
        return _said(f"claude {version}, model {model}")
    if kind == "api_retry":
        seconds = number_of(event, "retry_delay_ms") / 1000
        why = " ".join(filter(None, (str(count_of(event, "error_status") or ""), text_of(event, "error"))))
        tries = f"{count_of(event, 'attempt')} of {count_of(event, 'max_retries')}"
        return _said(f"claude: the model's API failed ({why or 'no answer'}); tries again in {seconds:.1f} s, {tries}")
    if kind == "permission_denied":
        return _said(f"denied: {text_of(event, 'tool_name')}")
    return "claude: the conversation so far was summed up" if kind == "compact_boundary" else None


def shown_assistant(event: Fields, cwd: str) -> str | None:
    """Show a message: words, and the tools it uses. An error of the API is shown once, at the end."""
    if event.get("is_api_error_message") is True or text_of(event, "error"):
        return None
    blocks = parts_of(part_of(event, "message"), "content")
    indent = "  " if text_of(event, "parent_tool_use_id") else ""
    return _joined((_block(block, cwd) for block in blocks), indent)


def shown_result(block: Fields, tool: str) -> str | None:
    """Show what a tool gave: a command's output, and what failed."""
    is_failed = block.get("is_error") is True
    if tool == ANSWER_TOOL and not is_failed:
        return None
    content = block.get("content")
    told = (
        content if isinstance(content, str) else "\n".join(text_of(one, "text") for one in parts_of(block, "content"))
    )
    for noise in _NOISE:
        told = noise.sub("", told)
    return _said(shortened(told.rstrip())) if is_failed or tool == SHELL_TOOL else None


def shown_limit(event: Fields) -> str | None:
    """Show a limit of the account that is near or reached."""
    info = part_of(event, "rate_limit_info")
    status, kind = text_of(info, "status"), text_of(info, "rateLimitType").replace("_", " ")
    if status == "rejected":
        reset = reset_of(info)
        until = f", until {reset.isoformat(timespec='seconds')}" if reset else ""
        return _said(f"claude: the account's limit is reached ({kind or 'unknown'}{until})")
    return _said(f"claude: the account's limit is near ({kind or 'unknown'})") if status == "allowed_warning" else None


def shown_end(result: Fields, usage: Usage) -> str:
    """Show how the call ended, and what it used."""
    money = f", ${usage.cost_usd:.4f}" if usage.cost_usd else ""
    is_failed = result.get("is_error") is not False
    ending = _plain(words_of(result)) if is_failed else "done"
    return f"claude: {ending}; {used_tokens(usage)}{money}"


def shown_denials(denied: list[str]) -> str:
    """Show what the agent was not allowed."""
    return f"claude: it was not allowed: {', '.join(denied)}"


def shown_noise(line: bytes) -> str:
    """Show a line that is no event: words as they are, broken JSON only as its size."""
    text = _plain(line.decode("utf-8", "replace")).strip()
    return f"claude: an event that cannot be read ({len(line)} bytes)" if text[:1] in ("{", "[") else shortened(text)


def tool_use(name: str, given: Fields, cwd: str) -> str:
    """Name a tool with what it is used on, on one line."""
    target = next((text for key in _TARGETS if (text := text_of(given, key))), "")
    return " ".join(f"{name} {inside(target, cwd)}".split())[:MAX_TARGET]


def _block(block: Fields, cwd: str) -> str | None:
    kind, name = text_of(block, "type"), text_of(block, "name")
    if kind == "text":
        return _said(readable(text_of(block, "text")))
    if kind != "tool_use":
        return None
    given = part_of(block, "input")
    if name == ANSWER_TOOL:
        return _said(_answer(given))
    return _said(f"$ {shortened(text_of(given, 'command'))}" if name == SHELL_TOOL else tool_use(name, given, cwd))


def _answer(given: Fields) -> str:
    try:
        return readable(json.dumps(given))
    except (ValueError, RecursionError):
        return ""


def _joined(parts: Iterable[str | None], indent: str) -> str | None:
    lines = [line for part in parts if part for line in part.splitlines()]
    return "\n".join(f"{indent}{line}" for line in lines) or None


def _plain(text: str) -> str:
    """Take out what would steer a terminal."""
    return _CONTROLS.sub("", text.replace("\r\n", "\n"))


def _said(text: str) -> str | None:
    return _plain(text).strip("\n") or None
