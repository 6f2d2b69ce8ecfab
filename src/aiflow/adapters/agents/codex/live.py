"""Live token counts of codex (AGT-4): its events show what a turn used only at its good end, its session file at once.

So a limit ends a call that runs away, and a call that fails counts too. Where no such file is found, or codex comes
to write it otherwise, the events' own count at the end is what there is.
"""

from __future__ import annotations

import contextlib
import glob
import os
import time
from typing import TYPE_CHECKING

from aiflow.adapters.agents.call.json_fields import part_of, read_object
from aiflow.adapters.agents.codex.session import session_of

if TYPE_CHECKING:
    from aiflow.adapters.agents.call.json_fields import Fields
    from aiflow.adapters.agents.call.stream import Told
    from aiflow.adapters.agents.codex.events import CodexEvents

FIRST_LOOK_SECONDS = 0.5
_MARK = b'"token_count"'


class LiveCodexEvents:
    """Codex's events, with the counts of its session file added as they are written."""

    def __init__(self, events: CodexEvents, codex_home: str) -> None:
        self._events = events
        self._folder = os.path.join(codex_home, "sessions")
        self._path: str | None = None
        self._look_at = float("-inf")
        self._pause = FIRST_LOOK_SECONDS
        self._place = 0

    @property
    def told(self) -> Told:
        """What is known by now."""
        with contextlib.suppress(OSError):
            self._read_counts()
        return self._events.told

    def read(self, line: bytes) -> str | None:
        """Take a line of standard output."""
        return self._events.read(line)

    def read_error(self, line: bytes) -> str | None:
        """Take a line of standard error."""
        return self._events.read_error(line)

    def _read_counts(self) -> None:
        path = self._path = self._path or self._find()
        if path is None or os.path.getsize(path) <= self._place:
            return
        with open(path, "rb") as file:
            file.seek(self._place)
            data = file.read()
        whole, newline, _ = data.rpartition(b"\n")
        self._place += len(whole) + len(newline)
        for line in whole.split(b"\n"):
            if _MARK in line:
                self._events.count(total_in(line))

    def _find(self) -> str | None:
        """Look for the thread's file, ever more rarely: it comes with the first turn, or never."""
        session = session_of(self._events.told.session_id)
        if session is None or time.monotonic() < self._look_at:
            return None
        self._look_at = time.monotonic() + self._pause
        self._pause *= 2
        found = glob.glob(f"{glob.escape(self._folder)}/*/*/*/rollout-*-{session.thread_id}.jsonl")
        return found[0] if found else None


def total_in(line: bytes) -> Fields:
    """Read what the thread has used so far out of a line of the session file; empty if it does not report it."""
    return part_of(part_of(part_of(read_object(line) or {}, "payload"), "info"), "total_token_usage")
