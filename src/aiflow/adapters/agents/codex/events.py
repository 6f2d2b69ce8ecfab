"""What `codex exec --json` reports (AGT-4), one event a line: a log a person reads, and how the turn came out.

Pure: takes any bytes, never raises, and calls nothing a success that codex did not close with `turn.completed`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from aiflow.adapters.agents.call.answer_text import answer_in, has_answer
from aiflow.adapters.agents.call.json_fields import count_of, part_of, read_object, text_of
from aiflow.adapters.agents.call.stream import SESSION_LOST, Told, Trouble
from aiflow.adapters.agents.codex.log import shown_begin, shown_item, shown_todo, shown_tokens
from aiflow.adapters.agents.codex.session import CodexThread, named
from aiflow.adapters.agents.codex.troubles import is_session_full, plain, trouble_of_message
from aiflow.domain.agents.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from aiflow.adapters.agents.call.json_fields import Fields

_STAMP = re.compile(r"^\d{4}-\d\d-\d\dT[\d:.]+Z\s+([A-Z]+) [\w:]+: (?:error=)?")
_DENIED = re.compile(r"rejected by user approval settings|you cannot ask for escalated permissions|Rejected\(")
_REJECTED = re.compile(r'^.*Rejected\(\\?"(.*?)\\?"\).*$')
# Said by every codex whose home is below /tmp, and by every codex that has background terminals to end.
_HARMLESS = re.compile(r"could not create PATH aliases|failed to record rollout items")
MAX_DENIED = 5
MAX_DETAIL = 300


class CodexEvents:
    """Reads the events of one call; `now` gives the time at which a message that names another one is read."""

    def __init__(self, session: CodexThread | None, cwd: str, now: Callable[[], datetime]) -> None:
        self._before = session.used if session else Usage()
        self._is_resumed = session is not None
        self._thread_id = session.thread_id if session else None
        self._cwd = cwd
        self._now = now
        self._used = self._before
        self._is_completed = False
        self._failure: Trouble | None = None
        self._lost: Trouble | None = None
        self._message: str | None = None
        self._denied: list[str] = []
        self._said = ""

    @property
    def told(self) -> Told:
        """What is known by now."""
        return Told(
            is_closed=self._is_completed or self._failure is not None,
            answer=None if self._message is None else answer_in(self._message),
            trouble=self._failure or self._lost or self._refusal(),
            session_id=named(CodexThread(self._thread_id, self._used)) if self._thread_id else None,
            usage=_difference(self._used, self._before),
        )

    def read(self, line: bytes) -> str | None:
        """Take a line of standard output; return what the log shows of it."""
        event = read_object(line)
        if event is None:
            return line.decode("utf-8", "replace").strip()
        take = {
            "thread.started": self._take_thread,
            "item.started": self._take_item_begun,
            "item.updated": self._take_item_changed,
            "item.completed": self._take_item,
            "turn.completed": self._take_completed,
            "turn.failed": self._take_failed,
            "error": self._take_error,
        }.get(text_of(event, "type"))
        return take(event) if take else None

    def read_error(self, line: bytes) -> str | None:
        """Take a line of standard error: what goes wrong before the first event, and what codex refused a tool."""
        text = line.decode("utf-8", "replace").strip()
        if _HARMLESS.search(text):
            return None
        text = _STAMP.sub("", text)
        if _DENIED.search(text):
            text = _REJECTED.sub(r"\1", text)
            self._denied.append(text)
            return f"refused: {text}"
        if self._is_resumed and "thread/resume" in text:
            self._thread_id, self._lost = None, Trouble(SESSION_LOST, text[:MAX_DETAIL])
        return text

    def count(self, total: Fields) -> None:
        """Take what the whole thread has used so far; it only ever grows."""
        self._grow(_usage(total))

    def _grow(self, used: Usage) -> None:
        if used.tokens > self._used.tokens:
            self._used = used

    def _refusal(self) -> Trouble | None:
        """A turn that ended without an answer after something was refused has failed because of that."""
        if not self._is_completed or not self._denied or has_answer(self._message or ""):
            return None
        return Trouble("AGENT_PERMISSION_DENIED", "; ".join(dict.fromkeys(self._denied[:MAX_DENIED])))

    def _take_thread(self, event: Fields) -> None:
        self._thread_id = text_of(event, "thread_id") or self._thread_id

    def _take_item_begun(self, event: Fields) -> str | None:
        return shown_begin(part_of(event, "item"))

    def _take_item_changed(self, event: Fields) -> str | None:
        return shown_todo(part_of(event, "item"))

    def _take_item(self, event: Fields) -> str | None:
        item = part_of(event, "item")
        if item.get("type") == "agent_message":
            self._message = text_of(item, "text")
        if denied := _denied_in(item):
            self._denied.append(denied)
        return shown_item(item, self._cwd)

    def _take_completed(self, event: Fields) -> str:
        self._is_completed = True
        used = _usage(part_of(event, "usage"))
        # Less than the thread had before the call can only be what this call alone has used.
        self._grow(self._before + used if used.tokens < self._before.tokens else used)
        return shown_tokens(_difference(self._used, self._before))

    def _take_failed(self, event: Fields) -> str | None:
        message = text_of(part_of(event, "error"), "message")
        self._failure = trouble_of_message(message, self._now())
        if is_session_full(message):
            self._thread_id = None
        return self._say(message)

    def _take_error(self, event: Fields) -> str | None:
        """An error alone ends nothing: codex tries again, or says `turn.failed` next."""
        return self._say(text_of(event, "message"))

    def _say(self, message: str) -> str | None:
        """Show an error once, though codex reports it twice."""
        shown = f"codex: {plain(message)}"
        if shown == self._said:
            return None
        self._said = shown
        return shown


def _denied_in(item: Fields) -> str:
    """Say what an item was not allowed; empty if it was."""
    if item.get("status") == "declined":
        return f"declined: {text_of(item, 'command')}"
    error = text_of(part_of(item, "error"), "message")
    return f"{text_of(item, 'tool')}: {error}" if "requires approval" in error else ""


def _usage(counts: Fields) -> Usage:
    read = count_of(counts, "input_tokens")
    cached = min(read, count_of(counts, "cached_input_tokens"))
    return Usage(input_tokens=read, cached_tokens=cached, output_tokens=count_of(counts, "output_tokens"))


def _difference(used: Usage, before: Usage) -> Usage:
    """Return what came since: codex counts a thread, and a call is only its last turn."""
    return Usage(
        input_tokens=max(0, used.input_tokens - before.input_tokens),
        cached_tokens=max(0, used.cached_tokens - before.cached_tokens),
        output_tokens=max(0, used.output_tokens - before.output_tokens),
    )
