"""What claude's closing event says went wrong (RUN-13, AGT-4): its own signals, and the reason code each one is.

Pure. A claude whose model could not be reached says `"subtype": "success", "is_error": true`, and a text: so the kind
of error comes first, the API's status second, and words only where a program says neither.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from aiflow.adapters.agents.call.json_fields import number_of, part_of, text_of
from aiflow.adapters.agents.call.retry_time import retry_time
from aiflow.adapters.agents.call.stream import SESSION_LOST, Trouble
from aiflow.messages.details import words

if TYPE_CHECKING:
    from aiflow.adapters.agents.call.json_fields import Fields

MAX_DETAIL = 1_000
LATEST = datetime(2200, 1, 1, tzinfo=UTC).timestamp()

_BY_END = {
    "error_max_budget_usd": "COST_LIMIT_REACHED",
    "error_max_structured_output_retries": "JSON_SCHEMA_INVALID",
}
_BY_KIND = {
    "rate_limit": "AGENT_QUOTA",
    "overloaded": "AGENT_QUOTA",
    "authentication_failed": "AGENT_AUTH_REQUIRED",
    "oauth_org_not_allowed": "AGENT_AUTH_REQUIRED",
    "billing_error": "AGENT_AUTH_REQUIRED",
}
_BY_STATUS = {
    401: "AGENT_AUTH_REQUIRED",
    402: "AGENT_AUTH_REQUIRED",
    403: "AGENT_AUTH_REQUIRED",
    429: "AGENT_QUOTA",
    529: "AGENT_QUOTA",
}
_AUTH_WORDS = re.compile(
    r"invalid api key|not logged in|please run /login|oauth token (?:has )?(?:expired|been revoked|revoked)"
    r"|credit balance is too low|failed to authenticate",
    re.IGNORECASE,
)
_QUOTA_WORDS = re.compile(
    r"usage limit reached|(?:hit|reached) your .{0,40}\blimit\b|rate limit|overloaded_error"
    r"|\b(?:hour|session|daily|weekly|opus|sonnet) limit reached|out of extra usage",
    re.IGNORECASE,
)
_RESET = re.compile(r"limit reached\|(\d{9,13})\b")
_OLD_WORDS = re.compile(r"^error: unknown option", re.IGNORECASE)
_LOST_WORDS = re.compile(r"no conversation found with session id|--resume requires a valid session", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Signals:
    """What came before the end: the kind of the last error of the API, and when a used-up quota is there again."""

    kind: str = ""
    resets_at: datetime | None = None


def trouble_at_end(result: Fields, signals: Signals, now: datetime) -> Trouble | None:
    """Say what is wrong with a call by its closing event, or None: it says that all is well, and nothing less.

    When a quota is there again is read from its words where no number gives it: `resets 4pm (Asia/Tokyo)`.
    """
    is_well = result.get("is_error") is False and result.get("subtype") == "success"
    is_well = is_well and not result.get("api_error_status") and not result.get("api_error")
    if is_well and (cut_short := _cut_short(result)):
        return Trouble("AGENT_FAILED", words("claude.cut_short", reason=cut_short))
    if is_well:
        return None
    said = words_of(result)
    reset = signals.resets_at or _reset_in(said) or retry_time(said, now)
    code = _code_of(result, signals.kind, said)
    return Trouble(code, said or words("claude.failed"), reset if code == "AGENT_QUOTA" else None)


def _cut_short(result: Fields) -> str:
    """Return what ended a turn that claude calls a success, if not its own end; older programs do not report it."""
    reason = result.get("terminal_reason", "completed")
    if result.get("interrupted_by_shutdown"):
        return "interrupted by shutdown"
    return "" if reason in ("completed", None) else cut(str(reason).replace("_", " "))


def trouble_in_words(text: str) -> Trouble | None:
    """Say what a line of claude's standard error means that comes before everything, or None."""
    if _LOST_WORDS.search(text):
        return Trouble(SESSION_LOST, cut(text))
    if _OLD_WORDS.search(text):
        return Trouble("AGENT_FAILED", words("claude.too_old", said=cut(text)))
    return Trouble("AGENT_AUTH_REQUIRED", cut(text)) if _AUTH_WORDS.search(text) else None


def words_of(result: Fields) -> str:
    """Return what a closing event says in words."""
    errors = result.get("errors")
    told = [error for error in errors if isinstance(error, str)] if isinstance(errors, list) else []
    told = [error for error in told if not error.startswith("[ede_diagnostic]")]
    ending = text_of(result, "terminal_reason") or text_of(result, "subtype")
    return cut("; ".join(told) or text_of(result, "result") or ending.replace("_", " "))


def reset_of(info: Fields) -> datetime | None:
    """Return when a limit that is used up is lifted, from a `rate_limit_info`."""
    if text_of(info, "status") != "rejected":
        return None
    windows = part_of(info, "unifiedWindows")
    named = part_of(windows, text_of(info, "rateLimitType"))
    return moment(number_of(info, "resetsAt") or number_of(named, "resetsAt"))


def moment(seconds: float) -> datetime | None:
    """Read a time of Unix, in seconds or milliseconds; None if it cannot be one."""
    seconds = seconds / 1000 if seconds > LATEST else seconds
    return datetime.fromtimestamp(seconds, UTC) if 0 < seconds <= LATEST else None


def cut(text: str) -> str:
    """Keep what fits on a page about a run."""
    return text.strip()[:MAX_DETAIL]


def _code_of(result: Fields, kind: str, words: str) -> str:
    ending = text_of(result, "subtype")
    if ending in _BY_END:
        return _BY_END[ending]
    status = int(number_of(result, "api_error_status"))
    if code := _BY_KIND.get(kind) or _BY_STATUS.get(status):
        return code
    if _LOST_WORDS.search(words):
        return SESSION_LOST
    if status or ending != "success":
        return "AGENT_FAILED"
    if _AUTH_WORDS.search(words):
        return "AGENT_AUTH_REQUIRED"
    return "AGENT_QUOTA" if _QUOTA_WORDS.search(words) else "AGENT_FAILED"


def _reset_in(words: str) -> datetime | None:
    found = _RESET.search(words)
    return moment(float(found[1])) if found else None
