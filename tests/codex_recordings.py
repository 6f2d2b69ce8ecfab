"""What the real codex said in each case, recorded by `e2e/record_codex.py`, and what each case comes to."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aiflow.adapters.agents.codex.events import CodexEvents
from aiflow.adapters.agents.codex.session import CodexThread

FOLDER = Path(__file__).parent / "fixtures/agents/codex"
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
THREAD = "00000000-0000-7000-8000-000000000001"
# What the recorded calls came to; None is a call that was closed well.
OUTCOMES = {
    "done": None,
    "planned": None,
    "resumed": None,
    "wrong_shape": None,
    "words_only": None,
    "refused_but_done": None,
    "refused": "AGENT_PERMISSION_DENIED",
    "rate_limit": "AGENT_QUOTA",
    "rate_limit_in_stream": "AGENT_QUOTA",
    "plan_used_up": "AGENT_QUOTA",
    "overloaded": "AGENT_QUOTA",
    "billing": "AGENT_AUTH_REQUIRED",
    "unauthorized": "AGENT_AUTH_REQUIRED",
    "forbidden": "AGENT_AUTH_REQUIRED",
    "missing_variable": "AGENT_AUTH_REQUIRED",
    "server_error": "AGENT_FAILED",
    "bad_request": "AGENT_FAILED",
    "too_long": "AGENT_FAILED",
    "cut": "AGENT_FAILED",
    "garbled": "AGENT_FAILED",
    "thread_lost": "AGENT_SESSION_LOST",
}
NEVER_CLOSED = ("killed", "bad_settings", "thread_lost")


def reader(session: CodexThread | None = None) -> CodexEvents:
    """Give a reader at a fixed time."""
    return CodexEvents(session, "/home/user/work", lambda: NOW)


def lines_of(name: str) -> tuple[list[bytes], list[bytes]]:
    """What a recorded call said on its two outputs."""

    def read(suffix: str) -> list[bytes]:
        path = FOLDER / f"{name}.{suffix}"
        return path.read_bytes().splitlines() if path.exists() else []

    return read("jsonl"), read("stderr")


def event(kind: str, **fields: Any) -> bytes:
    """Write an event as codex does."""
    return json.dumps({"type": kind, **fields}).encode()
