"""What the real codex said, recorded, and how it is read (AGT-4); then the same broken in every way."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from aiflow.adapters.agents.codex.events import CodexEvents
from aiflow.adapters.agents.codex.live import LiveCodexEvents
from aiflow.adapters.agents.codex.session import CodexThread
from aiflow.domain.agents.answers import Implemented, Planned, Question, Role, Spoiled, read_answer
from aiflow.domain.agents.usage import Usage
from codex_recordings import FOLDER, NEVER_CLOSED, NOW, OUTCOMES, THREAD, event, lines_of, reader


def heard(name: str, session: CodexThread | None = None) -> tuple[CodexEvents, str]:
    """Read a recorded call; return the reader and the log."""
    events = reader(session)
    said, errors = lines_of(name)
    shown = [*map(events.read, said), *map(events.read_error, errors)]
    return events, "\n".join(filter(None, shown))


def test_every_recording_has_its_outcome() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(OUTCOMES) | set(NEVER_CLOSED)


@pytest.mark.spec("AGT-4")
@pytest.mark.parametrize(("name", "code"), OUTCOMES.items())
def test_a_recorded_call_has_its_reason(name: str, code: str | None) -> None:
    session = CodexThread(THREAD, Usage()) if name == "thread_lost" else None
    told = heard(name, session)[0].told
    assert told.is_closed is (name not in NEVER_CLOSED)
    assert (told.trouble.reason_code if told.trouble else None) == code


@pytest.mark.parametrize("name", [*OUTCOMES, *NEVER_CLOSED])
def test_the_log_is_for_a_person(name: str) -> None:
    log = heard(name)[1]
    assert '{"' not in log
    assert "ERROR codex_core" not in log


@pytest.mark.parametrize("name", NEVER_CLOSED)
def test_a_call_that_was_not_closed_has_not_succeeded(name: str) -> None:
    assert not heard(name)[0].told.is_closed


def test_a_whole_call_is_shown_and_counted() -> None:
    events, log = heard("done")
    assert log.splitlines()[1:] == [
        "$ echo hi > a.txt; cat a.txt",
        "hi",
        "files: add b.txt",
        "$ ls nowhere",
        "ls: cannot access 'nowhere': No such file or directory",
        "(exit code 2)",
        "status: done",
        "summary: It is done",
        "codex: done; 400 tokens read (0 cached), 28 written",
    ]
    assert events.told.usage == Usage(input_tokens=400, output_tokens=28)
    assert events.told.session_id == f"{THREAD}+400,0,28"
    assert read_answer(Role.IMPLEMENTER, events.told.answer) == Implemented("It is done")


def test_answers_are_judged_by_the_one_reader_of_answers() -> None:
    assert isinstance(read_answer(Role.PLANNER, heard("planned")[0].told.answer), Planned)
    shape = read_answer(Role.IMPLEMENTER, heard("wrong_shape")[0].told.answer)
    words = read_answer(Role.IMPLEMENTER, heard("words_only")[0].told.answer)
    assert isinstance(shape, Spoiled)
    assert isinstance(words, Spoiled)
    assert (shape.reason_code, words.reason_code) == ("JSON_SCHEMA_INVALID", "JSON_PARSE_ERROR")
    events = reader()
    events.read(
        event("item.completed", item={"type": "agent_message", "text": '{"status":"needs_input","question":"?"}'})
    )
    assert read_answer(Role.QA, events.told.answer) == Question("?")


@pytest.mark.spec("RUN-13")
def test_times_to_try_again_are_read() -> None:
    def told(name: str) -> datetime | None:
        trouble = heard(name)[0].told.trouble
        assert trouble is not None
        return trouble.retry_at

    assert told("rate_limit") is None
    assert told("rate_limit_in_stream") == NOW + timedelta(seconds=3)
    assert told("plan_used_up") == datetime(2026, 1, 3, 4, 6, tzinfo=UTC)


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("You\N{RIGHT SINGLE QUOTATION MARK}ve hit your usage limit. Try again later.", "AGENT_QUOTA"),
        ("You've hit your usage limit for gpt-x. Switch to another model now, or try again at 3:05 PM.", "AGENT_QUOTA"),
        (
            "You've hit your usage limit. To get more access now, send a request to your admin or try again later.",
            "AGENT_QUOTA",
        ),
        ("stream disconnected before completion: The usage limit has been reached", "AGENT_QUOTA"),
        (
            "Your workspace is out of credits. Ask your workspace owner to refill in order to continue.",
            "AGENT_AUTH_REQUIRED",
        ),
        ("You hit your spend cap set in your workspace. Increase your spend cap to continue.", "AGENT_AUTH_REQUIRED"),
        (
            "To use Codex with your ChatGPT plan, upgrade to Plus: https://chatgpt.com/explore/plus.",
            "AGENT_AUTH_REQUIRED",
        ),
        ("Your access token could not be refreshed. Please log out and sign in again.", "AGENT_AUTH_REQUIRED"),
        ("exceeded retry limit, last status: 401 Unauthorized, request id: x", "AGENT_AUTH_REQUIRED"),
        ("stream disconnected before completion: Incorrect API key provided.", "AGENT_AUTH_REQUIRED"),
        (
            '{"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}',
            "AGENT_AUTH_REQUIRED",
        ),
        ("exceeded retry limit, last status: 500 Internal Server Error", "AGENT_FAILED"),
        ("unexpected status 404 Not Found: The model does not exist", "AGENT_FAILED"),
        ("Connection failed: error sending request", "AGENT_FAILED"),
        ('{"error": 7}', "AGENT_FAILED"),
        ('{"error', "AGENT_FAILED"),
        ("", "AGENT_FAILED"),
    ],
)
def test_messages_that_could_not_be_recorded(message: str, code: str) -> None:
    events = reader()
    events.read(event("turn.failed", error={"message": message}))
    assert events.told.trouble is not None
    assert events.told.trouble.reason_code == code
    assert events.told.trouble.detail
    assert events.told.is_closed


def test_an_error_that_codex_gets_over_is_no_failure() -> None:
    events = reader()
    assert (
        events.read(event("error", message="Reconnecting... 1/5 (rate limit)"))
        == "codex: Reconnecting... 1/5 (rate limit)"
    )
    events.read(event("turn.completed", usage={}))
    assert (events.told.is_closed, events.told.trouble) == (True, None)


def test_a_failure_stays_one_whatever_comes_after() -> None:
    events = reader()
    events.read(event("turn.failed", error={"message": "boom"}))
    events.read(event("turn.completed", usage={}))
    assert events.told.trouble is not None


def test_a_full_thread_is_not_gone_on_with() -> None:
    assert heard("too_long")[0].told.session_id is None
    assert heard("cut")[0].told.session_id == f"{THREAD}+0,0,0"
    assert heard("thread_lost", CodexThread(THREAD, Usage()))[0].told.session_id is None


def test_what_was_refused_is_named() -> None:
    trouble = heard("refused")[0].told.trouble
    assert trouble is not None
    assert trouble.detail.split("; ")[0] == "patch rejected: writing outside of the project"
    assert "`/bin/bash -c 'rm -rf x'` rejected: rm -f style commands are not permitted" in trouble.detail


@pytest.mark.parametrize(
    "item",
    [
        {"type": "command_execution", "command": "reboot", "status": "declined"},
        {"type": "mcp_tool_call", "tool": "wipe", "error": {"message": "MCP tool call requires approval, but"}},
    ],
)
def test_what_was_declined_counts_where_no_answer_came(item: dict[str, Any]) -> None:
    events = reader()
    ended, answered = event("turn.completed", usage={}), {"type": "agent_message", "text": '{"status": "done"}'}
    codes = []
    for line in (event("item.completed", item=item), ended, event("item.completed", item=answered)):
        events.read(line)
        trouble = events.told.trouble
        codes.append(trouble.reason_code if trouble else None)
    assert codes == [None, "AGENT_PERMISSION_DENIED", None]


def test_a_call_is_what_its_thread_used_since() -> None:
    before = Usage(input_tokens=200, cached_tokens=10, output_tokens=14)
    events = heard("resumed", CodexThread(THREAD, before))[0]
    assert events.told.usage == Usage(input_tokens=100, cached_tokens=0, output_tokens=7)
    assert events.told.session_id == f"{THREAD}+300,0,21"
    # A codex that counts the turn alone is told by a count below what was there before.
    alone = reader(CodexThread(THREAD, Usage(input_tokens=1000, output_tokens=100)))
    alone.read(event("turn.completed", usage={"input_tokens": 50, "output_tokens": 5}))
    assert alone.told.usage == Usage(input_tokens=50, output_tokens=5)


@pytest.mark.parametrize(
    ("kind", "item", "shown"),
    [
        (
            "item.started",
            {"type": "todo_list", "items": [{"text": "a", "completed": True}, {"text": "b"}]},
            "to do:\n  [x] a\n  [ ] b",
        ),
        ("item.updated", {"type": "todo_list", "items": [{"text": "a", "completed": True}]}, "to do:\n  [x] a"),
        ("item.completed", {"type": "reasoning", "text": "**Looking**\n"}, "**Looking**"),
        ("item.completed", {"type": "web_search", "query": "how"}, "web search: how"),
        (
            "item.completed",
            {"type": "mcp_tool_call", "server": "docs", "tool": "find", "status": "failed"},
            "tool docs.find: failed",
        ),
        (
            "item.completed",
            {"type": "mcp_tool_call", "server": "docs", "tool": "find", "error": {"message": "no such page"}},
            "tool docs.find: no such page",
        ),
        ("item.completed", {"type": "command_execution", "command": "x", "status": "declined"}, "(declined)"),
        (
            "item.completed",
            {"type": "file_change", "changes": [{"path": "/a", "kind": "delete"}], "status": "failed"},
            "files: delete /a (failed)",
        ),
        ("item.started", {"type": "command_execution", "command": "git 'status"}, "$ git 'status"),
        ("item.completed", {"type": "something_new", "text": "x"}, None),
        ("item.started", {"type": "file_change"}, None),
        ("turn.started", {}, None),
        ("something.new", {"text": "x"}, None),
    ],
)
def test_rarer_events_are_shown_too(kind: str, item: dict[str, Any], shown: str | None) -> None:
    assert reader().read(event(kind, item=item)) == shown


def test_a_long_output_is_cut_in_its_middle() -> None:
    output = "a" * 50_000 + "the end"
    shown = reader().read(
        event("item.completed", item={"type": "command_execution", "aggregated_output": output, "exit_code": 0})
    )
    assert shown is not None
    assert len(shown) < 10_000
    assert shown.endswith("the end")


def test_a_line_that_is_no_event_is_shown_as_it_is() -> None:
    assert reader().read(b"npm notice \xff") == "npm notice \N{REPLACEMENT CHARACTER}"


def test_counts_come_from_the_session_file_while_codex_works(tmp_path: Path) -> None:
    live = LiveCodexEvents(reader(), str(tmp_path))
    assert live.told.usage == Usage()
    live.read(event("thread.started", thread_id=THREAD))
    path = session_file(
        tmp_path, b'{"token_count"\n', counted(100), event("event_msg", payload={"type": "token_count"})
    )
    assert live.told.usage == Usage(input_tokens=100, cached_tokens=1, output_tokens=5)
    with path.open("ab") as file:
        file.write(b"\n" + counted(300) + counted(900)[:50])
    assert live.told.usage.input_tokens == 300
    path.unlink()
    assert live.told.usage.input_tokens == 300
    live.read(event("turn.completed", usage={"input_tokens": 400}))
    assert live.told.usage.input_tokens == 400


def test_what_a_thread_used_before_the_call_is_in_its_file_and_does_not_count(tmp_path: Path) -> None:
    session_file(tmp_path, counted(100), counted(500), counted(1000))
    before = Usage(input_tokens=1000, cached_tokens=1, output_tokens=5)
    live = LiveCodexEvents(reader(CodexThread(THREAD, before)), str(tmp_path))
    assert live.told.usage == Usage()
    session_file(tmp_path, counted(100), counted(500), counted(1000), counted(1070))
    assert live.told.usage == Usage(input_tokens=70)


def counted(tokens: int) -> bytes:
    """A line of a session file that tells what the thread has used."""
    info = {"total_token_usage": {"input_tokens": tokens, "cached_input_tokens": 1, "output_tokens": 5}}
    return event("event_msg", payload={"type": "token_count", "info": info}) + b"\n"


def session_file(codex_home: Path, *lines: bytes) -> Path:
    """Write a thread's session file."""
    path = codex_home / f"sessions/2026/01/02/rollout-2026-01-02T03-04-05-{THREAD}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(lines))
    return path
