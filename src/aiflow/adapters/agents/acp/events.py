"""The events of our ACP client, read (AGT-4): what the log shows of them, and what a call came to.

Pure, takes any bytes, never raises; a call is closed by what the client says last, and has succeeded only with `ended`
and the agent's own `end_turn`.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from aiflow.adapters.agents.acp.offers import login_names
from aiflow.adapters.agents.acp.own_log import OwnLog
from aiflow.adapters.agents.acp.tool_log import ToolLog, plan_lines, text_of
from aiflow.adapters.agents.acp.troubles import AUTH, FAILED, OURS, lost_session, trouble_of, words_of
from aiflow.adapters.agents.acp.usage import Spent
from aiflow.adapters.agents.call.answer_text import answer_in, readable
from aiflow.adapters.agents.call.paid_session import PaidSession, named
from aiflow.adapters.agents.call.stream import Told, Trouble
from aiflow.domain.agents.answers import Spoiled, read_answer
from aiflow.domain.details import Detail
from aiflow.messages.details import ENGLISH, Words, words

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from aiflow.domain.agents.answers import Role

DENIED = "AGENT_PERMISSION_DENIED"
MAX_MESSAGE = 5_000_000
MOST_WORDS = 2_000
# Turns that did not come to their own end; the words are the texts `acp.turn.…`.
_CUT_SHORT = frozenset({"max_tokens", "max_turn_requests", "refusal", "cancelled"})


class AcpEvents:
    """Reads the events of one call."""

    def __init__(self, role: Role, now: Callable[[], datetime], cwd: str, session: PaidSession | None = None) -> None:
        self._role = role
        self._now = now
        self._told = Told()
        self._tools = ToolLog(cwd)
        self._session_id = ""
        self._paid_usd = session.paid_usd if session else 0.0
        self._spent = Spent(session.paid_usd if session else None)
        self._message = ""
        self._message_id = ""
        self._is_speaking = False
        self._is_shown = True
        self._refused: list[str] = []
        self._logins: list[str] = []
        self._log = OwnLog()

    @property
    def told(self) -> Told:
        """What is known by now."""
        usage = self._spent.usage
        session = PaidSession(self._session_id, self._paid_usd + usage.cost_usd)
        return replace(self._told, usage=usage, session_id=named(session) if session.id else None)

    def read(self, line: bytes) -> str | None:
        """Take an event; once a closing event came, nothing changes any more."""
        event = _object(line)
        kind = event.get("event")
        if not isinstance(kind, str) or kind not in _READERS:
            return _printable(line.decode("utf-8", "replace"))[:MOST_WORDS] if not event else None
        if self._told.is_closed:
            return None
        said = _READERS[kind](self, event)
        if kind == "update":
            return said
        return "\n".join(filter(None, (self._rest(), said))) or None

    def read_error(self, line: bytes) -> str | None:
        """Take a line of the client's own standard error."""
        return _printable(line.decode("utf-8", "replace"))[:MOST_WORDS]

    def _agent(self, event: dict[str, Any]) -> str:
        info = _dict(event.get("info"))
        self._logins = login_names(event.get("logins"))
        name = text_of(info.get("title")) or text_of(info.get("name")) or "agent"
        return f"[acp] {name} {text_of(info.get('version'))}".rstrip()

    def _session(self, event: dict[str, Any]) -> str | None:
        session_id = event.get("id")
        if isinstance(session_id, str) and session_id and event.get("can_go_on") is True:
            self._session_id = session_id
        return None

    def _update(self, event: dict[str, Any]) -> str | None:
        update = _dict(event.get("update"))
        kind = update.get("sessionUpdate")
        if kind == "usage_update":
            self._spent.update(update, is_replay=event.get("is_replay") is True)
            return None
        if event.get("is_replay") is True:
            return None
        if kind == "agent_message_chunk":
            return self._chunk(update)
        if kind in ("tool_call", "tool_call_update"):
            self._is_speaking = self._is_speaking and kind != "tool_call"
            shown = self._tools.read(update)
        else:
            shown = plan_lines(update) if kind == "plan" else None
        return "\n".join(filter(None, (self._rest(), shown))) if shown else None

    def _chunk(self, update: dict[str, Any]) -> str | None:
        """Join what the agent says until it does something else; the last it said is its answer."""
        rest, message_id = None, text_of(update.get("messageId"))
        if not self._is_speaking or message_id != self._message_id:
            rest = self._rest()
            self._message, self._message_id, self._is_speaking, self._is_shown = "", message_id, True, False
        text = text_of(_dict(update.get("content")).get("text"))
        self._message = (self._message + text)[:MAX_MESSAGE]
        return rest

    def _rest(self) -> str | None:
        """Show the last words, if they are not shown yet."""
        said, self._is_shown = "" if self._is_shown else self._message, True
        return readable(said) or None

    def _permission(self, event: dict[str, Any]) -> str:
        what, verdict, why = (text_of(event.get(key)) for key in ("what", "verdict", "why"))
        if verdict == "refused":
            self._refused.append(f"{what} ({why})")
        return _printable(f"[acp] {verdict}: {what}{f' ({why})' if why else ''}")

    def _file(self, event: dict[str, Any]) -> str | None:
        action, path, refused = (text_of(event.get(key)) for key in ("action", "path", "refused"))
        if refused and action == "write":
            self._refused.append(f"{action} {path} ({refused})")
        return _printable(f"[acp] {action} {path}{f': {refused}' if refused else ''}")

    def _complaint(self, event: dict[str, Any]) -> str | None:
        text = self._log.read(text_of(event.get("text")))
        return f"[agent] {text}" if text else None

    def _noise(self, event: dict[str, Any]) -> str:
        return f"[agent] {_printable(text_of(event.get('text')))}"

    def _asked(self, event: dict[str, Any]) -> None:
        names = event.get("choices")
        choices = tuple(name for name in names if isinstance(name, str)) if isinstance(names, list) else ()
        what = text_of(event.get("what")) or "?"
        self._close(Trouble("NEEDS_CLARIFICATION", what), choices=choices)

    def _ended(self, event: dict[str, Any]) -> str | None:
        """The turn is over; what it was refused counts if it gave up for that."""
        self._spent.close(_dict(event.get("usage")), _dict(event.get("meta")))
        reason = event.get("reason")
        answer = answer_in(self._message)
        is_spoiled = isinstance(read_answer(self._role, answer), Spoiled)
        if self._refused and (is_spoiled or reason != "end_turn"):
            self._close(Trouble(DENIED, "; ".join(dict.fromkeys(self._refused))[:2000]))
        elif reason != "end_turn":
            told = words(f"acp.turn.{reason}") if str(reason) in _CUT_SHORT else words("acp.turn_ended", reason=reason)
            self._close(Trouble(FAILED, told))
        else:
            self._told = replace(self._told, is_closed=True, answer=answer if self._message.strip() else None)
        return None

    def _failed(self, event: dict[str, Any]) -> None:
        code = event.get("code")
        known = code if isinstance(code, int) else None
        data = _dict(event.get("data"))
        message = text_of(event.get("message"))
        if known == OURS and message.startswith("acp.") and ENGLISH.has(message):
            facts = tuple((name, text_of(fact)[:MOST_WORDS]) for name, fact in data.items())
            trouble = Trouble(FAILED, Words(Detail(message, facts)))
        else:
            trouble = trouble_of(known, words_of(message, data), self._now())
        doing = text_of(event.get("doing"))
        if doing in ("model", "mode"):
            trouble = Trouble("SETTINGS_INVALID", words(f"acp.setting.{doing}", problem=trouble.detail))
        elif doing == "session/load":
            trouble = lost_session(trouble)
        elif doing == "authenticate":
            trouble = Trouble(AUTH, trouble.detail)
        if trouble.reason_code == AUTH and self._logins:
            logins = "; ".join(self._logins)
            trouble = replace(trouble, detail=words("acp.with_logins", problem=trouble.detail, logins=logins))
        self._close(trouble)

    def _lost(self, event: dict[str, Any]) -> None:
        code = event.get("exit_code")
        detail = words("acp.away_silent")
        if isinstance(code, int):
            detail = words("acp.away_signal", signal=-code) if code < 0 else words("acp.away_code", code=code)
        trouble = trouble_of(None, self._log.words, self._now())
        if self._log.words:
            detail = words("agent.said", how=detail, said=self._log.words)
        self._close(replace(trouble, detail=detail))

    def _not_started(self, event: dict[str, Any]) -> None:
        self._close(Trouble("AGENT_NOT_FOUND", text_of(event.get("problem")) or words("acp.not_started")))

    def _close(self, trouble: Trouble, choices: tuple[str, ...] = ()) -> None:
        self._told = replace(self._told, is_closed=True, trouble=trouble, choices=choices)


_READERS: dict[str, Callable[[AcpEvents, dict[str, Any]], str | None]] = {
    name: getattr(AcpEvents, f"_{name}")
    for name in (
        *("agent", "session", "update", "permission", "file", "complaint", "noise"),
        *("asked", "ended", "failed", "lost", "not_started"),
    )
}


def _object(line: bytes) -> dict[str, Any]:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return event if isinstance(event, dict) else {}


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _printable(text: str) -> str:
    """Take surrogates out that no file would take."""
    return text.encode("utf-8", "replace").decode()
