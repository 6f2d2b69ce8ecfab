"""What the ACP client's events mean: recorded from real programs, made by hand, and mangled in every way."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aiflow.adapters.agents.acp.events import AcpEvents
from aiflow.adapters.agents.call.paid_session import session_of
from aiflow.adapters.agents.call.stream import Told
from aiflow.domain.agents.answers import Implemented, Question, Role, Spoiled, read_answer
from aiflow.domain.agents.usage import Usage

FOLDER = Path(__file__).parents[2] / "fixtures/agents/acp"
RECORDED = sorted(path.stem for path in FOLDER.glob("*.jsonl"))
NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
DONE = '{"status": "done", "summary": "It is done"}'
CHOICES = ("Allow once", "Always allow", "Reject")


def reader(role: Role = Role.IMPLEMENTER) -> AcpEvents:
    return AcpEvents(role, lambda: NOW, "/work")


def read(*events: Any, role: Role = Role.IMPLEMENTER) -> tuple[Told, str]:
    """Read events; return what they told, and the log."""
    events_read = reader(role)
    lines = [event if isinstance(event, bytes) else json.dumps(event).encode() for event in events]
    log = [events_read.read(line) for line in lines]
    return events_read.told, "\n".join(text for text in log if text)


def recorded(name: str) -> list[bytes]:
    return (FOLDER / f"{name}.jsonl").read_bytes().splitlines()


def update(which: str, **more: Any) -> dict[str, Any]:
    return {"event": "update", "update": {"sessionUpdate": which, **more}, "is_replay": False}


def chunk(text: str, message: str = "m1") -> dict[str, Any]:
    return update("agent_message_chunk", messageId=message, content={"type": "text", "text": text})


def ended(reason: Any = "end_turn", **more: Any) -> dict[str, Any]:
    return {"event": "ended", "reason": reason, **more}


# --- recorded from the real programs

TROUBLES = {
    "refused": ("AGENT_PERMISSION_DENIED", "execute: printf 'made\\n' > made.txt"),
    "asked": ("NEEDS_CLARIFICATION", "execute: printf 'made\\n' > made.txt; echo made it"),
    "rate_limit": ("AGENT_QUOTA", "Rate limit reached"),
    "silent_limit": ("AGENT_QUOTA", "Rate limit reached"),
    "quota": ("AGENT_QUOTA", "usage limit"),
    "overloaded": ("AGENT_QUOTA", "overloaded"),
    "server_error": ("AGENT_FAILED", "server had an error"),
    "unauthorized": ("AGENT_AUTH_REQUIRED", "opencode auth login"),
    "forbidden": ("AGENT_AUTH_REQUIRED", "do not have access"),
    "billing": ("AGENT_AUTH_REQUIRED", "billing"),
    "bad_request": ("AGENT_FAILED", "Invalid"),
    "cut": ("AGENT_FAILED", "closed unexpectedly"),
    "garbled": ("AGENT_FAILED", "JSON parsing failed"),
    "session_lost": ("AGENT_SESSION_LOST", "service failure"),
    "no_such_model": ("SETTINGS_INVALID", "agent.model: the agent does not offer stub/none"),
    "no_such_program": ("AGENT_NOT_FOUND", "no-such-program"),
    "killed": ("AGENT_FAILED", "signal 9"),
    "gemini_logged_out": ("AGENT_AUTH_REQUIRED", "Gemini API key"),
    "gemini_unauthorized": ("AGENT_AUTH_REQUIRED", "Incorrect API key"),
    "gemini_rate_limit": ("AGENT_QUOTA", "stub rate limited"),
    "gemini_refused": ("AGENT_PERMISSION_DENIED", "this role only reads"),
}
ANSWERED = {"done", "worked", "allowed", "answered", "planned"}
CLOSING = {"asked", "ended", "failed", "lost", "not_started"}
ONLY_WORDS = {"only_words", "gemini_worked", "gemini_resumed"}
ROLES = {"planned": Role.PLANNER, "gemini_refused": Role.PLANNER}


def test_every_recording_is_looked_at() -> None:
    assert set(RECORDED) == {*TROUBLES, *ANSWERED, *ONLY_WORDS}


@pytest.mark.spec("AGT-4", "RUN-13")
@pytest.mark.parametrize("name", TROUBLES)
def test_each_trouble_has_its_reason_code(name: str) -> None:
    told, _ = read(*recorded(name), role=ROLES.get(name, Role.IMPLEMENTER))
    code, words = TROUBLES[name]
    assert told.is_closed
    assert told.trouble is not None
    assert (told.trouble.reason_code, words in told.trouble.detail) == (code, True), told.trouble
    assert told.answer is None
    assert told.choices == (CHOICES if name == "asked" else ())


@pytest.mark.spec("AGT-3", "AGT-4")
@pytest.mark.parametrize("name", sorted(ANSWERED))
def test_an_answer_is_read_with_session_and_usage(name: str) -> None:
    role = ROLES.get(name, Role.IMPLEMENTER)
    told, log = read(*recorded(name), role=role)
    assert (told.is_closed, told.trouble) == (True, None)
    assert not isinstance(read_answer(role, told.answer), Spoiled)
    assert (told.session_id or "").startswith("ses_00000000+")
    assert (told.usage.input_tokens, told.usage.output_tokens) == (100, 7)
    assert '{"' not in log


def test_words_are_an_answer_that_the_engine_refuses() -> None:
    for name in sorted(ONLY_WORDS):
        told, _ = read(*recorded(name))
        assert (told.is_closed, told.trouble) == (True, None)
        assert isinstance(read_answer(Role.IMPLEMENTER, told.answer), Spoiled)
    assert read(*recorded("gemini_worked"))[0].usage == Usage(input_tokens=200, output_tokens=14)


def test_the_log_of_a_real_call_is_for_a_person() -> None:
    assert read(*recorded("worked"))[1].splitlines() == [
        "[acp] OpenCode 1.18.33",
        "> execute: printf 'made\\n' > made.txt; echo made it",
        "  | made it",
        "> edit: write b.txt",
        "status: done",
        "summary: Made two",
    ]
    for name in RECORDED:
        log = read(*recorded(name))[1]
        assert "jsonrpc" not in log, name
        assert "timestamp=" not in log, name
        assert "    at " not in log, name


@pytest.mark.parametrize("name", RECORDED)
def test_a_recording_that_is_cut_short_is_never_a_success(name: str) -> None:
    lines = recorded(name)
    closing = [json.loads(line)["event"] in CLOSING for line in lines].index(True)
    for end in range(closing + 1):
        told, _ = read(*lines[:end])
        assert not told.is_closed
        told, _ = read(*lines[:end], lines[end][: len(lines[end]) // 2])
        assert not told.is_closed


# --- made by hand


@pytest.mark.parametrize(
    ("reason", "code", "words"),
    [
        ("max_tokens", "AGENT_FAILED", "token limit"),
        ("max_turn_requests", "AGENT_FAILED", "limit of requests"),
        ("refusal", "AGENT_FAILED", "refused"),
        ("cancelled", "AGENT_FAILED", "cancelled"),
        ("something_new", "AGENT_FAILED", "something_new"),
        (None, "AGENT_FAILED", "None"),
        ({"odd": 1}, "AGENT_FAILED", "odd"),
    ],
)
def test_only_the_end_of_a_turn_is_success(reason: Any, code: str, words: str) -> None:
    told, _ = read(chunk(DONE), ended(reason))
    assert told.trouble is not None
    assert (told.trouble.reason_code, words in told.trouble.detail, told.answer) == (code, True, None)


def test_the_answer_is_what_was_said_last() -> None:
    tool = update("tool_call", toolCallId="1", title="ls", kind="execute", status="completed")
    told, log = read(chunk("First I "), chunk("look."), tool, chunk('{"status": "do'), chunk('ne"}'), ended())
    assert read_answer(Role.IMPLEMENTER, told.answer) == Implemented()
    assert log.splitlines() == ["First I look.", "> execute: ls", "status: done"]
    told, _ = read(chunk('{"steps": []}', "m1"), chunk(DONE, "m2"), tool, ended())
    assert read_answer(Role.IMPLEMENTER, told.answer) == Implemented("It is done")
    told, _ = read(chunk(f"Here it is:\n```json\n{DONE}\n```\nBye."), ended())
    assert read_answer(Role.IMPLEMENTER, told.answer) == Implemented("It is done")
    assert read(ended())[0].answer is None


def test_a_question_of_the_agents_is_an_answer() -> None:
    told, _ = read(chunk('{"status": "needs_input", "question": "Which?"}'), ended())
    assert read_answer(Role.PLANNER, told.answer) == Question("Which?")


def test_a_refusal_counts_only_if_the_agent_gave_up_for_it() -> None:
    refused = {"event": "permission", "what": "execute: x", "verdict": "refused", "why": "this role only reads"}
    wrote = {"event": "file", "action": "write", "path": "/x", "refused": "it is outside the worktree"}
    told, log = read(refused, chunk(DONE), ended())
    assert (told.trouble, "refused: execute: x (this role only reads)" in log) == (None, True)
    for events in ((refused, ended()), (wrote, chunk("I give up."), ended()), (refused, chunk(DONE), ended("refusal"))):
        trouble = read(*events)[0].trouble
        assert trouble is not None
        assert trouble.reason_code == "AGENT_PERMISSION_DENIED"
    # Files that it may not read or that are not there are no reason to give up.
    looked = {"event": "file", "action": "read", "path": "/x", "refused": "No such file or directory"}
    assert read(looked, chunk("I give up."), ended())[0].trouble is None


@pytest.mark.spec("RUN-13")
def test_a_limit_is_told_with_its_time() -> None:
    failed = {"event": "failed", "doing": "session/prompt", "code": 429, "message": "try again in 90 seconds"}
    trouble = read(failed)[0].trouble
    assert trouble is not None
    assert (trouble.reason_code, trouble.retry_at) == ("AGENT_QUOTA", NOW + timedelta(seconds=90))


def test_a_login_that_fails_is_a_login_that_is_missing() -> None:
    trouble = read({"event": "failed", "doing": "authenticate", "code": -32603, "message": "no browser"})[0].trouble
    assert trouble is not None
    assert trouble.reason_code == "AGENT_AUTH_REQUIRED"


def test_only_an_agent_that_can_go_on_with_a_session_has_one() -> None:
    assert read({"event": "session", "id": "s", "can_go_on": True})[0].session_id == "s+0"
    assert read({"event": "session", "id": "s", "can_go_on": False})[0].session_id is None
    assert read({"event": "session", "id": "", "can_go_on": True})[0].session_id is None


@pytest.mark.spec("AGT-4")
def test_money_is_counted_from_where_the_session_stood() -> None:
    def cost(amount: Any, currency: str = "USD", *, is_replay: bool = False) -> dict[str, Any]:
        event = update("usage_update", used=1, size=2, cost={"amount": amount, "currency": currency})
        return event | {"is_replay": is_replay}

    assert read(cost(0.5), cost(0.75))[0].usage.cost_usd == 0.75
    assert read(cost(2.0, is_replay=True), cost(2.25), cost(2.5))[0].usage.cost_usd == 0.5
    for odd in ("1", None, True, -1, float("nan"), float("inf"), 10**400, [1]):
        assert read(cost(odd))[0].usage.cost_usd == 0
    assert read(cost(1.0, "EUR"))[0].usage.cost_usd == 0

    def resumed(paid: str, *events: dict[str, Any]) -> tuple[float, str | None]:
        events_read = AcpEvents(Role.QA, lambda: NOW, "/work", session_of(paid))
        for each in ({"event": "session", "id": "s", "can_go_on": True}, *events):
            events_read.read(json.dumps(each).encode())
        return events_read.told.usage.cost_usd, events_read.told.session_id

    # An agent that repeats no cost, as most do, tells the whole session's with the turn.
    assert resumed("s+2000000", cost(0), cost(2.25), cost(2.5)) == (0.5, "s+2500000")
    assert resumed("s+2000000", cost(2.0, is_replay=True), cost(2.5)) == (0.5, "s+2500000")
    assert resumed("s+2000000", cost(3.0, is_replay=True), cost(3.5)) == (1.5, "s+3500000"), "a call was killed between"
    assert resumed("s+2000000", cost(0.1), cost(0.5)) == (0.5, "s+2500000"), "a program that counts its own time only"
    assert resumed("s+2000000") == (0.0, "s+2000000")


def test_tokens_are_those_of_the_turn() -> None:
    usage = {"inputTokens": 10, "cachedReadTokens": 5, "cachedWriteTokens": 2, "outputTokens": 3, "thoughtTokens": 1}
    told, _ = read(ended(usage=usage))
    assert told.usage == Usage(input_tokens=17, cached_tokens=5, output_tokens=4)
    odd = {"inputTokens": "10", "outputTokens": -1, "cachedReadTokens": True, "thoughtTokens": 1.5}
    assert read(ended(usage=odd))[0].usage == Usage()


def test_tools_and_plans_stand_in_the_log_once() -> None:
    entries = [{"content": "look", "status": "completed"}, {"content": "do", "status": "in_progress"}, {"content": "x"}]
    begin = update("tool_call", toolCallId="1", title="bash", kind="execute", status="pending")
    going = update("tool_call_update", toolCallId="1", title="make\n test", status="in_progress")
    text = "\n".join(f"line {number}" for number in range(20))
    content = [{"type": "content", "content": {"type": "text", "text": text}}]
    failed = update("tool_call_update", toolCallId="1", status="failed", content=content)
    log = read(update("plan", entries=entries), begin, going, going, failed, failed)[1].splitlines()
    assert log[:7] == ["plan:", "  [x] look", "  [>] do", "  [ ] x", "> execute: make test", "  failed", "  | line 0"]
    assert log[-1] == "  | … 8 more lines"


def test_the_agents_own_log_is_told_in_words_and_once() -> None:
    line = 'timestamp=1 level=ERROR message="stream error" a=1 error.error="AI_APICallError: \\"no\\"" stack="x"'
    events = [line, line, "    at async foo (x.js:1:1)", "}", "Error handling request {", "plain", ""]
    log = read(*({"event": "complaint", "text": text} for text in events))[1]
    assert log.splitlines() == ['[agent] AI_APICallError: "no"', "[agent] plain"]


def test_what_comes_behind_the_end_changes_nothing() -> None:
    told, _ = read(chunk(DONE), ended(), {"event": "lost", "exit_code": 1}, chunk("x"), ended("refusal"))
    assert (told.trouble, read_answer(Role.IMPLEMENTER, told.answer)) == (None, Implemented("It is done"))
    told, _ = read({"event": "lost", "exit_code": 1}, chunk(DONE), ended())
    assert told.trouble is not None


# --- mangled

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=5,
)
NAMES = st.sampled_from(
    ["agent", "session", "update", "permission", "file", "complaint", "noise", "asked", "failed", "lost", "new"]
)
KEYS = st.sampled_from(
    ["id", "can_go_on", "update", "what", "verdict", "text", "choices", "reason", "usage", "meta", "code", "message"]
)
KINDS = st.sampled_from(["agent_message_chunk", "tool_call", "tool_call_update", "plan", "usage_update", "other"])
UPDATE_KEYS = st.sampled_from(["content", "toolCallId", "title", "kind", "status", "entries", "cost", "messageId"])
UPDATES = st.builds(
    lambda kind, more, is_replay: {"event": "update", "update": more | {"sessionUpdate": kind}, "is_replay": is_replay},
    KINDS,
    st.dictionaries(UPDATE_KEYS, JSON, max_size=4),
    JSON,
)
EVENTS = UPDATES | st.builds(lambda name, more: more | {"event": name}, NAMES, st.dictionaries(KEYS, JSON, max_size=4))
LINES = (
    st.binary(max_size=60)
    | EVENTS.map(lambda event: json.dumps(event).encode())
    | JSON.map(lambda value: json.dumps(value).encode())
)


@settings(max_examples=50)
@given(st.lists(LINES, max_size=12))
def test_any_lines_can_be_read_and_are_no_success_without_its_event(lines: list[bytes]) -> None:
    told, _ = read(*lines)
    assert not told.is_closed or told.trouble is not None
    assert told.answer is None
    assert all(isinstance(choice, str) for choice in told.choices)


@settings(max_examples=50)  # whole recordings: dear, and any line of them is as good as another
@given(st.sampled_from(RECORDED), st.data())
def test_a_recording_that_is_mangled_is_no_success_without_its_event(name: str, data: st.DataObject) -> None:
    lines = recorded(name)
    order = data.draw(st.lists(st.integers(0, len(lines) - 1), max_size=len(lines)))
    mangled = [lines[at] for at in order]
    for _ in range(data.draw(st.integers(0, 3))):
        mangled.insert(data.draw(st.integers(0, len(mangled))), data.draw(LINES))
    if mangled:
        mangled[-1] = mangled[-1][: data.draw(st.integers(0, len(mangled[-1])))]
    is_ended = any(line in lines and json.loads(line)["event"] == "ended" for line in mangled)
    told, log = read(*mangled)
    assert is_ended or not told.is_closed or told.trouble is not None
    log.encode()


@settings(max_examples=50)  # one comparison, and values of any shape are dear to make
@given(JSON, JSON, st.text())
def test_an_end_of_any_shape_is_a_success_only_with_its_reason(reason: Any, usage: Any, said: str) -> None:
    told, _ = read(chunk(said), {"event": "ended", "reason": reason, "usage": usage, "meta": usage})
    assert told.is_closed
    assert (told.trouble is None) == (reason == "end_turn")
    assert told.usage.tokens >= 0


def test_a_huge_line_takes_no_time() -> None:
    told, _ = read(chunk("{" * 3_000_000), chunk("x" * 6_000_000), ended(), b"y" * 5_000_000)
    assert told.is_closed
    assert told.answer is not None
    assert len(told.answer) <= 5_000_000
