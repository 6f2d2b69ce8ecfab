"""The reader of codex's events takes anything (AGT-4): it never raises, and never calls a failure a success."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiflow.adapters.agents.codex.session import CodexThread
from aiflow.domain.agents.usage import Usage
from codex_recordings import NEVER_CLOSED, OUTCOMES, THREAD, lines_of, reader

RECORDED = sorted({line for name in [*OUTCOMES, *NEVER_CLOSED] for line in lines_of(name)[0]})
TYPES = [
    "thread.started",
    "turn.completed",
    "turn.failed",
    "item.completed",
    "item.started",
    "item.updated",
    "error",
    "x",
]
ITEMS = ["agent_message", "command_execution", "file_change", "todo_list", "reasoning", "error", "mcp_tool_call", "x"]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELDS = (
    "thread_id",
    "usage",
    "error",
    "message",
    "text",
    "command",
    "status",
    "changes",
    "items",
    "exit_code",
    "aggregated_output",
)


def _odd(kind: object, item: dict[str, Any], more: dict[str, Any]) -> bytes:
    return json.dumps({"type": kind, "item": item, **more}).encode()


def _cut(line: bytes, at: int) -> bytes:
    return line[: at % (len(line) + 1)]


ODD_ITEMS = st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=4).flatmap(
    lambda fields: st.sampled_from(ITEMS).map(lambda kind: {"type": kind, **fields})
)
ODD = st.builds(
    _odd, st.sampled_from(TYPES) | VALUES, ODD_ITEMS, st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=3)
)
LINES = (
    st.sampled_from(RECORDED)
    | st.builds(_cut, st.sampled_from(RECORDED), st.integers(0, 2000))
    | ODD
    | st.binary(max_size=80)
)


def _is_event(line: bytes, kind: str) -> bool:
    try:
        value = json.loads(line)
    except ValueError:
        return False
    return isinstance(value, dict) and value.get("type") == kind


@pytest.mark.spec("AGT-4")
@given(
    st.lists(LINES, max_size=25),
    st.lists(st.binary(max_size=60) | st.sampled_from(lines_of("refused")[1]), max_size=4),
    st.booleans(),
)
def test_nothing_broken_raises_or_passes_for_a_success(
    lines: list[bytes], errors: list[bytes], is_resumed: bool
) -> None:
    """Events cut, doubled, dropped, out of order, unknown, of wrong types, or no events at all."""
    events = reader(CodexThread(THREAD, Usage(input_tokens=5)) if is_resumed else None)
    shown = [*map(events.read, lines), *map(events.read_error, errors)]
    assert all(isinstance(text, str | None) for text in shown)
    told = events.told
    is_success = told.is_closed and told.trouble is None
    assert not is_success or any(_is_event(line, "turn.completed") for line in lines)
    assert not is_success or not any(_is_event(line, "turn.failed") for line in lines)
    assert told.is_closed == any(_is_event(line, kind) for line in lines for kind in ("turn.completed", "turn.failed"))
    assert told.usage.tokens >= 0


@pytest.mark.parametrize("name", ["done", "planned", "resumed", "words_only"])
def test_no_beginning_of_a_good_call_is_a_success(name: str) -> None:
    data = b"\n".join(lines_of(name)[0])
    last = data.rindex(b'{"type":"turn.completed"')
    for cut in range(0, len(data), 7):
        events = reader()
        for line in data[:cut].split(b"\n"):
            events.read(line)
        assert events.told.is_closed is False or cut >= len(data)
    assert last > 0


@pytest.mark.parametrize(
    "line", [b'{"type":' * 100_000, b"[" * 1_000_000, b'{"a":1,' * 100_000, b"9" * 1_000_000, b'"' + b"x" * 5_000_000]
)
def test_a_huge_line_is_only_a_line(line: bytes) -> None:
    events = reader()
    events.read(line)
    events.read_error(line)
    assert not events.told.is_closed
