"""What codex's error messages mean (RUN-13, AGT-4): codex reports its troubles in words only, so the words decide.

Pure. The phrases are those of codex's own error type; the program has already tried again before it reports them.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from aiflow.adapters.agents.call.retry_time import retry_time
from aiflow.adapters.agents.call.stream import Trouble
from aiflow.messages.details import words

if TYPE_CHECKING:
    from datetime import datetime

MAX_DETAIL = 1_000
_MISSING_VARIABLE = re.compile(r"Missing environment variable: `([^`]*)`")
_ROOM = "ran out of room in the model's context window"
# The first that fits counts. A used-up plan also mentions credits and signing up for more: it comes before money.
_CODES = (
    ("AGENT_QUOTA", re.compile(r"usage limit|rate limit|too many requests|status:? 429|at capacity|overloaded")),
    (
        "AGENT_AUTH_REQUIRED",
        re.compile(
            r"missing environment variable|status:? 40[13]\b|unauthorized|api key|log(?:ged)? ?(?:in|out)\b|sign in"
            r"|(?:access|refresh) token|quota exceeded|current quota|insufficient_quota|billing|out of credits"
            r"|spend cap|with your chatgpt plan"
        ),
    ),
)


def trouble_of_message(message: str, now: datetime) -> Trouble:
    """Name what an error that ended codex's turn is."""
    message = plain(message)
    said = message.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").lower()
    code = next((code for code, phrases in _CODES if phrases.search(said)), "AGENT_FAILED")
    detail = " ".join(message.split())[:MAX_DETAIL] or words("codex.no_reason")
    if variable := _MISSING_VARIABLE.search(message):
        detail = words("codex.needs_variable", said=detail, variable=variable[1])
    return Trouble(code, detail, retry_time(message, now) if code == "AGENT_QUOTA" else None)


def plain(message: str) -> str:
    """Take the words out of an error of the API that codex hands on as it came, as JSON."""
    try:
        error = json.loads(message)["error"] if message.startswith("{") else {}
        words = [error.get("message"), error.get("code") or error.get("type")]
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return message
    return " ".join(str(word) for word in words if word) or message


def is_session_full(message: str) -> bool:
    """Recognize an error that would come again in the same session, whatever the prompt."""
    return _ROOM in message.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
