"""The events of `claude -p --output-format stream-json` (AGT-4), one JSON object a line.

Pure, takes any bytes, never raises. Only a closing event that says success by every sign makes a call one: exit codes,
words and what came before count for nothing, and an error once reported stays one.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from aiflow.adapters.agents.call.answer_text import answer_in
from aiflow.adapters.agents.call.json_fields import part_of, parts_of, read_object, text_of
from aiflow.adapters.agents.call.paid_session import PaidSession, named
from aiflow.adapters.agents.call.stream import Told, Trouble
from aiflow.adapters.agents.claude.log import (
    shown_assistant,
    shown_denials,
    shown_end,
    shown_limit,
    shown_noise,
    shown_result,
    shown_system,
    tool_use,
)
from aiflow.adapters.agents.claude.troubles import Signals, reset_of, trouble_at_end, trouble_in_words
from aiflow.adapters.agents.claude.usage import Meter
from aiflow.domain.agents.answers import Role
from aiflow.messages.details import words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from aiflow.adapters.agents.call.json_fields import Fields

# It goes into an argument vector: nothing but an id may.
SESSION_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,99}")
MAX_DENIED = 5


class ClaudeEvents:
    """Reads the events of one call; `now` gives the time at which words that name another one are read."""

    def __init__(self, role: Role, cwd: str, now: Callable[[], datetime], session: PaidSession | None = None) -> None:
        self._role = role
        self._cwd = cwd
        self._now = now
        self._session_id = ""
        self._paid_usd = session.paid_usd if session else 0.0
        self._told = Told()
        self._signals = Signals()
        self._meter = Meter(session.paid_usd if session else None)
        self._tools: dict[str, str] = {}
        self._readers: Mapping[str, Callable[[Fields], str | None]] = {
            "system": shown_system,
            "assistant": self._read_assistant,
            "user": self._read_user,
            "stream_event": self._read_partial,
            "rate_limit_event": self._read_limit,
            "result": self._read_end,
        }

    @property
    def told(self) -> Told:
        """What is known by now."""
        usage = self._meter.usage
        session = PaidSession(self._session_id, self._paid_usd + usage.cost_usd)
        return replace(self._told, usage=usage, session_id=named(session) if session.id else None)

    def read(self, line: bytes) -> str | None:
        """Take a line of standard output; return what the log shows of it."""
        event = read_object(line)
        if event is None:
            return shown_noise(line)
        session_id = text_of(event, "session_id")
        if SESSION_ID.fullmatch(session_id):
            self._session_id = session_id
        reader = self._readers.get(text_of(event, "type"))
        return reader(event) if reader else None

    def read_error(self, line: bytes) -> str | None:
        """Take a line of standard error; return what the log shows of it."""
        text = shown_noise(line)
        if not self._told.is_closed and self._told.trouble is None:
            self._told = replace(self._told, trouble=trouble_in_words(text))
        return text

    def _read_assistant(self, event: Fields) -> str | None:
        message = part_of(event, "message")
        self._meter.hear_message(message)
        if kind := text_of(event, "error"):
            info = part_of(part_of(event, "api_error_params"), "rate_limit_info")
            self._signals = Signals(kind, reset_of(info) or self._signals.resets_at)
        for block in parts_of(message, "content"):
            if text_of(block, "type") == "tool_use":
                self._tools[text_of(block, "id")] = text_of(block, "name")
        return shown_assistant(event, self._cwd)

    def _read_user(self, event: Fields) -> str | None:
        """Read what tools gave; what the program tells its model in a person's name is skipped."""
        blocks = [one for one in parts_of(part_of(event, "message"), "content") if one.get("type") == "tool_result"]
        shown = [shown_result(block, self._tools.pop(text_of(block, "tool_use_id"), "")) for block in blocks]
        return "\n".join(filter(None, shown)) or None

    def _read_partial(self, event: Fields) -> str | None:
        """Read a piece of a message: it shows that something is happening, and what that uses."""
        piece = part_of(event, "event")
        if text_of(piece, "type") == "message_start":
            self._meter.hear_message(part_of(piece, "message"))
        elif text_of(piece, "type") == "message_delta":
            self._meter.hear_delta(piece)
        return None

    def _read_limit(self, event: Fields) -> str | None:
        reset = reset_of(part_of(event, "rate_limit_info"))
        self._signals = replace(self._signals, resets_at=reset or self._signals.resets_at)
        return shown_limit(event)

    def _read_end(self, result: Fields) -> str | None:
        self._meter.hear_end(result)
        denied = [
            tool_use(text_of(one, "tool_name"), part_of(one, "tool_input"), self._cwd) for one in _denials(result)
        ]
        trouble = trouble_at_end(result, self._signals, self._now()) or self._trouble_of(denied)
        known = self._told.trouble if self._told.is_closed else None
        self._told = replace(
            self._told,
            is_closed=True,
            trouble=known or trouble,
            answer=None if known or trouble else _answer_of(result),
        )
        lines = [shown_denials(denied)] if denied else []
        return "\n".join((*lines, shown_end(result, self._meter.ended)))

    def _trouble_of(self, denied: list[str]) -> Trouble | None:
        """Report that an implementer was kept from its work; an agent that only reads has given its answer anyway."""
        if not denied or self._role is not Role.IMPLEMENTER:
            return None
        key = "claude.denied_and_more" if len(denied) > MAX_DENIED else "claude.denied"
        told = words(key, what="; ".join(denied[:MAX_DENIED]), count=len(denied) - MAX_DENIED)
        return Trouble("AGENT_PERMISSION_DENIED", told)


def _denials(result: Fields) -> list[Fields]:
    """Return what was denied; a list of anything else than objects is no list of nothing."""
    value = result.get("permission_denials")
    known = parts_of(result, "permission_denials")
    return known if known or not value else [{"tool_name": "something"}]


def _answer_of(result: Fields) -> bytes:
    """Return the answer by the schema, else what is in the last words."""
    given = result.get("structured_output")
    if given is None:
        return answer_in(text_of(result, "result"))
    try:
        return json.dumps(given).encode()
    except (ValueError, RecursionError):
        return b""
