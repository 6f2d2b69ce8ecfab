"""What an agent's errors mean (RUN-13): by the protocol's codes, and by the words of the model's provider.

The protocol has a code for a missing login and none for limits, so that agents hand on what their provider said. Pure.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from aiflow.adapters.agents.call.retry_time import retry_time
from aiflow.adapters.agents.call.stream import SESSION_LOST, Trouble
from aiflow.messages.details import Words, words

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

QUOTA = "AGENT_QUOTA"
AUTH = "AGENT_AUTH_REQUIRED"
FAILED = "AGENT_FAILED"
# The code of errors that our side of the conversation raises: their message is the id of a text, their data its facts.
OURS = 0
# JSON-RPC's code for a missing login (ACP), and HTTP's numbers, which some agents use as codes.
AUTH_CODES = frozenset({-32000, 401, 402, 403})
QUOTA_CODES = frozenset({429, 529})
MAX_TEXT = 4_000

_PAY = re.compile(
    r"insufficient[ _]?(?:quota|funds|credit|balance)|credit balance|out of credits|no credits|billing|payment required"
    r"|\b402\b",
    re.IGNORECASE,
)
_LIMIT = re.compile(
    r"rate[ _-]?limit|too many requests|usage[ _]limit|resource[ _]?exhausted|overloaded|at capacity"
    r"|\b(?:exceed\w*|exhaust\w*|reach\w*|used up|hit|insufficient|out of|current|over)\b[^.\n]{0,30}\bquota"
    r"|\bquota\b[^.\n]{0,30}\b(?:exceed\w*|exhaust\w*|reach\w*|used|reset\w*)"
    # Claude's words, which bridges to it hand on; a full context or answer is no quota.
    r"|\b(?:hit|reached) your (?![^.\n]{0,40}\b(?:context|output|turns?|length)\b)[^.\n]{0,40}\blimit\b"
    r"|\b(?:hour|session|daily|weekly) limit reached|out of extra usage"
    # A number alone is any number.
    r"|(?:status|code|http|error)\W{0,4}(?:code\W{0,3})?(?:429|529)\b",
    re.IGNORECASE,
)
_LOGIN = re.compile(
    r"unauthori[sz]ed|unauthenticated|authentication|not logged in|log ?in again|please log ?in|/login\b|auth login"
    r"|(?:invalid|incorrect|missing|expired|no|wrong)[ _](?:x-)?(?:api[ _-]?key|token|credentials?)"
    r"|api[ _-]?key[^.\n]{0,30}(?:invalid|missing|not (?:valid|set|found|configured)|expired)"
    r"|do(?:es)? not have (?:access|permission)|forbidden|(?<![\d.])40[13](?![\d.])",
    re.IGNORECASE,
)
# What a file is called says nothing: `at load (/app/quota.js:3:1)`.
_PATH = re.compile(r"\S*[/\\]\S*\.\w\S*")
# Of opencode's own log: what it asks besides the work, such as a title, fails on its own.
_ASIDE = re.compile(r"\bsmall=true\b|\bagent=title\b")


def reason_of(text: str) -> str:
    """Name the trouble that a provider's words are about; AGENT_FAILED if they are about no other."""
    text = _PATH.sub(" ", text[:MAX_TEXT])
    has_limit = _LIMIT.search(text) is not None
    # "You exceeded your current quota, please check your plan and billing details": with a time it is a limit.
    if _PAY.search(text) and not (has_limit and re.search(r"\b(?:retry|try again)\b[^.]{0,20}\b(?:in|at)\b", text)):
        return AUTH
    if has_limit:
        return QUOTA
    return AUTH if _LOGIN.search(text) else FAILED


def is_limit(line: str) -> bool:
    """Return whether a line of an agent's own log says that its work met a limit."""
    return _ASIDE.search(line) is None and reason_of(line) == QUOTA


def trouble_of(code: int | None, text: str, now: datetime) -> Trouble:
    """Name the trouble of an error that the agent answered with."""
    reason = AUTH if code in AUTH_CODES else QUOTA if code in QUOTA_CODES else reason_of(text)
    detail = text if isinstance(text, Words) else " ".join(text[:MAX_TEXT].split())
    return Trouble(reason, detail, retry_time(text, now) if reason == QUOTA else None)


def words_of(message: str, data: Mapping[str, Any]) -> str:
    """Return what an error says: its message, or the one inside it where agents hand JSON on, and its details."""
    try:
        inside = json.loads(message) if message.startswith("{") else None
    except (ValueError, RecursionError):
        inside = None
    error = inside.get("error", inside) if isinstance(inside, dict) else None
    inner = error.get("message") if isinstance(error, dict) else None
    details = data.get("details") or data.get("message")
    said = inner if isinstance(inner, str) else message.removeprefix("Internal error: ")
    texts = (said, details if isinstance(details, str) else "")
    return ": ".join(filter(None, dict.fromkeys(texts))) or words("acp.without_a_word")


def lost_session(trouble: Trouble) -> Trouble:
    """Name an error at the session that should have continued: it is gone, unless something else is wrong."""
    return Trouble(SESSION_LOST, trouble.detail) if trouble.reason_code == FAILED else trouble
