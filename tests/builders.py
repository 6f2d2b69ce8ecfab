"""Short ways to make the values that tests are about."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aiflow.domain.backlog.selection import Backlog
from aiflow.domain.lifecycle import RunState
from aiflow.domain.lock import Lock, LockType
from aiflow.domain.next_action import NextAction
from aiflow.domain.request import Priority, Request, RequestId, RequestStatus
from aiflow.domain.run_summary import RunSummary
from aiflow.messages.commands import command_line

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def request(request_id: str, status: str = "ready", priority: str = "P2", **fields: Any) -> Request:
    """Make a request; `depends_on` may be a list of strings."""
    depends_on = tuple(RequestId(wanted) for wanted in fields.pop("depends_on", ()))
    return Request(
        id=RequestId(request_id),
        where=f"requests/{request_id}.md",
        title=fields.pop("title", request_id),
        status=RequestStatus(status),
        priority=Priority(priority),
        depends_on=depends_on,
        **fields,
    )


def typed(*actions: NextAction | None) -> tuple[str | None, ...]:
    """Say what to do next as a person types it."""
    return tuple(command_line(action) if action else None for action in actions)


def backlog(*requests: Request, **parts: Any) -> Backlog:
    """Make a backlog of requests."""
    return Backlog(tuple(requests), **parts)


def run(state: str, reason_code: str | None = None, run_id: str = "RUN-20260101-000000-aaaaaa") -> RunSummary:
    """Make a run's summary."""
    return RunSummary(run_id, RunState(state), reason_code)


def request_lock(request_id: str, run_id: str = "RUN-20260101-000000-aaaaaa") -> dict[RequestId, Lock]:
    """Make the mapping of locks with one request locked."""
    return {RequestId(request_id): Lock(LockType.REQUEST, request_id, run_id, pid=12345, host="127.0.0.1")}


def write_request(root: Path, request_id: str, text: str | bytes | None = None, **keys: str) -> Path:
    """Write a request file, whole or from keys."""
    folder = root / "requests"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{request_id}.md"
    if text is None:
        lines = "".join(f"{key}: {value}\n" for key, value in keys.items())
        text = f"---\n{lines}---\n\n# {request_id}\n\nBody of {request_id}.\n"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path
