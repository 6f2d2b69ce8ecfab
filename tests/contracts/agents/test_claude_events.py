"""The reader of claude's events, over what the real program said in each trouble (see `e2e/record_claude.py`)."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aiflow.adapters.agents.call.paid_session import PaidSession, named, session_of
from aiflow.adapters.agents.call.stream import Told
from aiflow.adapters.agents.claude.events import ClaudeEvents
from aiflow.domain.agents.answers import Implemented, Planned, Question, Role, Spoiled, read_answer
from aiflow.domain.agents.usage import Usage
from aiflow.domain.details import detail

FOLDER = Path(__file__).parents[2] / "fixtures/agents/claude-code"
CWD = "/state/work"
NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
READ_ONLY = {"planned", "no_tool"}
GOOD = {"done", "worked", "planned", "no_tool", "garbled", "only_words"}


def lines_of(name: str) -> list[bytes]:
    return (FOLDER / f"{name}.jsonl").read_bytes().splitlines()


def read(lines: Iterable[bytes], errors: Iterable[bytes] = (), role: Role = Role.IMPLEMENTER) -> tuple[Told, list[str]]:
    """Read a stream: what it told, and what the log shows."""
    events = ClaudeEvents(role, CWD, lambda: NOW)
    shown = [*map(events.read, lines), *map(events.read_error, errors)]
    return events.told, [text for text in shown if text]


def recorded(name: str) -> tuple[Told, list[str]]:
    errors = FOLDER / f"{name}.stderr"
    role = Role.PLANNER if name in READ_ONLY else Role.IMPLEMENTER
    return read(lines_of(name), errors.read_bytes().splitlines() if errors.exists() else [], role)


TROUBLES = {
    "denied": ("AGENT_PERMISSION_DENIED", "denied: Write /state/outside.txt"),
    "rate_limit": ("AGENT_QUOTA", "would exceed your organization's rate limit"),
    "rate_limit_in_stream": ("AGENT_QUOTA", "would exceed your organization's rate limit"),
    "quota": ("AGENT_QUOTA", "You've hit your 5-hour limit"),
    "overloaded": ("AGENT_QUOTA", "529 Overloaded"),
    "server_error": ("AGENT_FAILED", "500 Internal server error"),
    "unauthorized": ("AGENT_AUTH_REQUIRED", "Invalid API key"),
    "login_expired": ("AGENT_AUTH_REQUIRED", "Please run /login"),
    "logged_out": ("AGENT_AUTH_REQUIRED", "Please run /login"),
    "forbidden": ("AGENT_AUTH_REQUIRED", "403 Your API key does not have permission"),
    "billing": ("AGENT_AUTH_REQUIRED", "Credit balance is too low"),
    "bad_request": ("AGENT_FAILED", "400 messages"),
    "cut": ("AGENT_FAILED", "Connection to the API was lost"),
    "max_turns": ("AGENT_FAILED", "maximum number of turns (2)"),
    "budget": ("COST_LIMIT_REACHED", "maximum budget ($0.001"),
    "schema_violated": ("JSON_SCHEMA_INVALID", "'steps' is not allowed"),
    "session_lost": ("AGENT_SESSION_LOST", "No conversation found"),
    "session_not_one": ("AGENT_SESSION_LOST", "--resume requires a valid session"),
    "interrupted": ("AGENT_FAILED", "aborted streaming"),
}
UNCLOSED = {"bad_flag", "terminated", "killed"}


def test_every_recording_is_judged() -> None:
    assert {path.stem for path in FOLDER.glob("*.jsonl")} == GOOD | {*TROUBLES} | UNCLOSED


@pytest.mark.spec("AGT-4", "RUN-13")
@pytest.mark.parametrize("name", TROUBLES)
def test_each_trouble_has_its_reason_code(name: str) -> None:
    told, _ = recorded(name)
    code, words = TROUBLES[name]
    assert told.is_closed
    assert told.trouble is not None
    assert (told.trouble.reason_code, words in told.trouble.detail) == (code, True), told.trouble
    assert told.answer is None


@pytest.mark.spec("AGT-4")
@pytest.mark.parametrize("name", sorted(UNCLOSED))
def test_without_a_closing_event_nothing_is_closed(name: str) -> None:
    told, _ = recorded(name)
    assert (told.is_closed, told.answer) == (False, None)


@pytest.mark.spec("AGT-3", "AGT-4")
@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("done", Implemented("It is done")),
        ("garbled", Implemented("It is done")),
        ("worked", Implemented("Made two")),
        ("only_words", Spoiled("JSON_PARSE_ERROR", detail("answer.none"))),
    ],
)
def test_a_call_that_ended_well_gives_its_answer(name: str, answer: object) -> None:
    told, _ = recorded(name)
    assert (told.is_closed, told.trouble) == (True, None)
    got = read_answer(Role.IMPLEMENTER, told.answer)
    assert got == answer or (isinstance(got, Spoiled) and isinstance(answer, Spoiled))
    millionths = round(told.usage.cost_usd * 1_000_000)
    assert told.session_id == f"00000000-0000-4000-8000-000000000001+{millionths}"


def test_a_planner_that_tried_what_it_has_no_tool_for_has_planned_all_the_same() -> None:
    told, shown = recorded("no_tool")
    assert isinstance(read_answer(Role.PLANNER, told.answer), Planned)
    assert any("No such tool available: Bash" in text for text in shown)


@pytest.mark.spec("AGT-4")
def test_denials_fail_whoever_writes_and_only_show_for_whoever_reads() -> None:
    for role in (Role.PLANNER, Role.QA):
        told, shown = read(lines_of("denied"), role=role)
        assert told.trouble is None
        assert told.answer
        assert any("it was not allowed: Write" in text for text in shown)
    assert read([end(permission_denials=["odd"])])[0].trouble is not None
    many = [{"tool_name": "Bash", "tool_input": {"command": f"echo {n}"}} for n in range(9)]
    trouble = read([end(permission_denials=many)])[0].trouble
    assert trouble is not None
    assert trouble.detail == "denied: Bash echo 0; Bash echo 1; Bash echo 2; Bash echo 3; Bash echo 4 and 4 more"


@pytest.mark.spec("AGT-4")
@pytest.mark.parametrize(
    "ending",
    [
        {"terminal_reason": "aborted_tools"},
        {"terminal_reason": "aborted_streaming"},
        {"terminal_reason": "tool_deferred"},
        {"terminal_reason": "something new"},
        {"terminal_reason": []},
        {"terminal_reason": "completed", "interrupted_by_shutdown": True},
    ],
)
def test_a_success_whose_turn_did_not_come_to_its_own_end_is_none(ending: dict[str, Any]) -> None:
    told, _ = read([end(**ending)])
    assert (told.is_closed, told.answer) == (True, None)
    assert told.trouble is not None
    assert told.trouble.reason_code == "AGENT_FAILED"
    assert told.trouble.detail.startswith("its turn did not finish: ")
    assert read([end(terminal_reason="completed")])[0].trouble is None
    assert read([end(terminal_reason=None)])[0].trouble is None


@pytest.mark.spec("RUN-13")
def test_a_used_up_quota_says_when_it_is_there_again() -> None:
    told, shown = recorded("quota")
    assert told.trouble is not None
    assert told.trouble.retry_at == datetime(2030, 1, 1, tzinfo=UTC)
    assert "claude: the account's limit is reached (five hour, until 2030-01-01T00:00:00+00:00)" in shown
    words = "Claude AI usage limit reached|1893456000"
    old, _ = read([end(is_error=True, result=words)])
    assert old.trouble is not None
    assert (old.trouble.reason_code, old.trouble.retry_at) == ("AGENT_QUOTA", told.trouble.retry_at)


@pytest.mark.spec("RUN-13")
@pytest.mark.parametrize(
    "words", ["You've hit your limit · resets at 1:00 PM UTC", "5-hour limit reached ∙ resets 1pm"]
)
@pytest.mark.parametrize("status", [{}, {"api_error_status": 429}])
def test_a_time_that_is_only_told_in_words_is_one(words: str, status: dict[str, int]) -> None:
    trouble = read([end(is_error=True, result=words, **status)])[0].trouble
    assert trouble is not None
    assert (trouble.reason_code, trouble.retry_at) == ("AGENT_QUOTA", NOW.replace(hour=13, minute=1))


@pytest.mark.parametrize("when", [-1, 0, 1e300, "soon", None, True, 10**400])
def test_a_time_that_is_none_is_no_time(when: Any) -> None:
    info = {"status": "rejected", "resetsAt": when}
    lines = [event("rate_limit_event", rate_limit_info=info), end(is_error=True, api_error_status=429)]
    trouble = read(lines)[0].trouble
    assert trouble is not None
    assert (trouble.reason_code, trouble.retry_at) == ("AGENT_QUOTA", None)


def test_an_account_that_has_not_used_up_its_quota_has_no_time_to_wait_for() -> None:
    info = {"status": "allowed_warning", "resetsAt": 1893456000, "rateLimitType": "seven_day"}
    told, shown = read([event("rate_limit_event", rate_limit_info=info), end(is_error=True, api_error_status=429)])
    assert told.trouble is not None
    assert told.trouble.retry_at is None
    assert shown[0] == "claude: the account's limit is near (seven day)"


@pytest.mark.spec("AGT-4")
@pytest.mark.parametrize(
    "fields",
    [
        {"is_error": True},
        {"is_error": None},
        {"is_error": 0},
        {"is_error": "false"},
        {"subtype": "error_during_execution"},
        {"subtype": None},
        {"api_error_status": 500},
        {"api_error": "connection_failed"},
    ],
)
def test_success_by_every_sign_or_none(fields: dict[str, Any]) -> None:
    assert read([end()])[0].trouble is None
    told, _ = read([end(**fields)])
    assert told.trouble is not None
    assert told.answer is None


def test_an_error_that_was_told_once_stays_one() -> None:
    told, _ = read([end(is_error=True, result="boom"), end()])
    assert told.trouble is not None
    assert told.answer is None


def test_words_of_a_model_are_no_signal() -> None:
    """A model can write about a limit, or about logging in, without there being one."""
    said = {"content": [{"type": "text", "text": "usage limit reached|1893456000. Please run /login"}]}
    told, _ = read([event("assistant", message=said), end(result='{"status": "done", "summary": "limit reached"}')])
    assert told.trouble is None
    failed, _ = read([end(subtype="error_max_turns", is_error=True, errors=["Please run /login"])])
    assert failed.trouble is not None
    assert failed.trouble.reason_code == "AGENT_FAILED"


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("No conversation found with session ID: 1", "AGENT_SESSION_LOST"),
        ("Invalid API key · Please run /login", "AGENT_AUTH_REQUIRED"),
        ("OAuth token has expired", "AGENT_AUTH_REQUIRED"),
        ("error: unknown option '--json-schema'", "AGENT_FAILED"),
        ("(node:1) Warning: something", None),
    ],
)
def test_errors_before_the_start_are_read_from_standard_error(line: str, code: str | None) -> None:
    told, shown = read([], [line.encode()])
    assert (told.trouble.reason_code if told.trouble else None) == code
    assert shown == [line]
    assert read([end()], [line.encode()])[0].trouble is None, "it ended well behind a warning"


@pytest.mark.spec("AGT-3")
def test_an_answer_without_the_schema_is_taken_out_of_the_words() -> None:
    told, _ = read([end(result='Here it is:\n```json\n{"status": "needs_input", "question": "Which?"}\n```\n')])
    assert read_answer(Role.IMPLEMENTER, told.answer) == Question("Which?")


@pytest.mark.spec("AGT-4")
def test_tokens_flow_before_the_end_and_no_message_counts_twice() -> None:
    lines = lines_of("worked")
    assert read(lines[:-1])[0].usage == Usage(input_tokens=300, output_tokens=21)
    assert read(lines)[0].usage == Usage(input_tokens=300, output_tokens=21, cost_usd=0.00162)
    assert recorded("killed")[0].usage.tokens == 214


@pytest.mark.spec("AGT-4")
def test_a_resumed_session_is_not_paid_for_twice() -> None:
    """Its totals are those of the whole session."""
    since = {
        "a": {"inputTokens": 3, "cacheReadInputTokens": 40, "outputTokens": 2, "costUSD": 0.5},
        "b": {"costUSD": 1},
    }
    told, _ = read([end(total_cost_usd=99, modelUsage={"a": {"costUSD": 99}}, model_usage_since_last_result=since)])
    assert told.usage == Usage(input_tokens=43, cached_tokens=40, output_tokens=2, cost_usd=1.5)
    old, _ = read([end(total_cost_usd=2, usage={"input_tokens": 5, "output_tokens": 1})])
    assert old.usage == Usage(input_tokens=5, output_tokens=1, cost_usd=2)


@pytest.mark.spec("AGT-4")
@pytest.mark.parametrize(
    ("paid", "total", "cost"),
    [
        ("", 1.5, 0.5),  # begins a session: whatever the total is, it is this call's
        ("+1000000", 1.5, 0.5),  # all that came before is counted
        ("+1000000", 3.25, 2.25),  # a call before was killed, and could not tell its 1.75
        ("+0", 2.0, 2.0),
        ("+9000000", 1.5, 0.5),
        ("+1000000", None, 0.5),
    ],
)
def test_what_a_killed_call_cost_is_told_by_the_next_in_its_session(
    paid: str, total: float | None, cost: float
) -> None:
    events = ClaudeEvents(Role.QA, CWD, lambda: NOW, session_of(f"abc{paid}") if paid else None)
    events.read(end(session_id="abc", total_cost_usd=total, model_usage_since_last_result={"a": {"costUSD": 0.5}}))
    assert events.told.usage.cost_usd == cost
    before = session_of(f"abc{paid}")
    assert before is not None
    assert session_of(events.told.session_id) == PaidSession("abc", before.paid_usd + cost)


def test_a_session_is_read_as_it_was_written() -> None:
    for session in (PaidSession("abc", 0.00054), PaidSession("a+1", 2.0), PaidSession("é b\n", 0.0)):
        assert session_of(named(session)) == session
    assert session_of("bare") == PaidSession("bare")
    assert session_of("") is session_of(None) is None


@pytest.mark.parametrize("name", sorted(GOOD | {*TROUBLES} | UNCLOSED))
def test_the_log_is_for_people(name: str) -> None:
    _, shown = recorded(name)
    text = "\n".join(shown)
    assert '{"' not in text and '"type"' not in text
    assert len(shown) <= 20, "no piece of a message has a line of its own"


def test_the_log_shows_what_was_done_and_said() -> None:
    assert recorded("worked")[1] == [
        "claude 2.1.325, model claude-opus-5-5",
        "$ printf 'made\\n' > made.txt; echo made it",
        "made it",
        "Write b.txt",
        "status: done\nsummary: Made two",
        "claude: done; 300 tokens read (0 cached), 21 written, $0.0016",
    ]
    assert "claude: the model's API failed (429 rate_limit); tries again in 0.0 s, 1 of 1" in recorded("rate_limit")[1]


def test_the_log_steers_no_terminal_and_stays_short() -> None:
    use = {"content": [{"type": "tool_use", "id": "1", "name": "Bash", "input": {"command": "x\x1b[2J\x07"}}]}
    gave = {"content": [{"type": "tool_result", "tool_use_id": "1", "content": "\x1b]0;t\x07y\x00" + "z" * 99_999}]}
    _, shown = read([event("assistant", message=use), event("user", message=gave)])
    assert shown[0] == "$ x"
    assert shown[1].startswith("yzz")
    assert len(shown[1]) < 9_000


def test_lines_that_are_no_events_are_shown_as_words_or_as_their_size() -> None:
    _, shown = read([b"Warning: old node", b'{"type": "assist', b'["a"]', b"\xff\xfe", b"17"])
    assert shown == [
        "Warning: old node",
        "claude: an event that cannot be read (16 bytes)",
        "claude: an event that cannot be read (5 bytes)",
        "��",
        "17",
    ]


def event(kind: str, **fields: Any) -> bytes:
    return json.dumps({"type": kind, **fields}).encode()


def end(**fields: Any) -> bytes:
    """A closing event that says success, but for these fields."""
    good = {"subtype": "success", "is_error": False, "api_error_status": None, "permission_denials": []}
    return event("result", **{**good, "structured_output": fields.pop("structured_output", None), **fields})


ALL_LINES = [line for path in sorted(FOLDER.glob("*.jsonl")) for line in path.read_bytes().splitlines()]
GOOD_ENDS = {line for name in GOOD for line in lines_of(name) if b'"type":"result"' in line}
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=5,
)
_NAMES = st.sampled_from(
    sorted({key for line in ALL_LINES for key in json.loads(line)} | {"content", "message", "usage", "event", "type"})
)


def _cut(data: st.DataObject, lines: list[bytes]) -> list[bytes]:
    whole = b"\n".join(lines)
    return whole[: data.draw(st.integers(0, len(whole)))].split(b"\n")


def _shuffled(data: st.DataObject, lines: list[bytes]) -> list[bytes]:
    random.Random(data.draw(st.integers(0, 999))).shuffle(lines)
    return lines


def _thinned(data: st.DataObject, lines: list[bytes]) -> list[bytes]:
    dropped = data.draw(st.sets(st.integers(0, len(lines) - 1), max_size=9))
    return [line for number, line in enumerate(lines) if number not in dropped]


def _spoiled(data: st.DataObject, lines: list[bytes]) -> list[bytes]:
    """Give a field of one event a value of any type."""
    number = data.draw(st.integers(0, len(lines) - 1))
    spoiled = json.loads(lines[number])
    spoiled[data.draw(_NAMES)] = data.draw(_JSON)
    lines[number] = json.dumps(spoiled).encode()
    return lines


def _mixed(data: st.DataObject, lines: list[bytes]) -> list[bytes]:
    """Put noise, unknown events and pieces of other recordings between the lines."""
    noise = st.binary(max_size=60) | st.builds(event, st.text(max_size=9)) | st.sampled_from(ALL_LINES)
    for line in data.draw(st.lists(noise, max_size=5)):
        lines.insert(data.draw(st.integers(0, len(lines))), line.replace(b"\n", b" "))
    return lines


@pytest.mark.spec("AGT-4")
@pytest.mark.parametrize("change", [_cut, _shuffled, _thinned, _mixed], ids=lambda change: change.__name__)
@given(data=st.data())
@settings(max_examples=40, deadline=None)  # of four recordings each, whose lines are dear to read
def test_no_spoiled_stream_is_a_success(
    change: Callable[[st.DataObject, list[bytes]], list[bytes]], data: st.DataObject
) -> None:
    name = data.draw(st.sampled_from(sorted(GOOD | {*TROUBLES} - {"bad_flag"})))
    lines = change(data, lines_of(name) or [b"{}"])
    role = data.draw(st.sampled_from(Role))
    told, _ = read(lines, data.draw(st.lists(st.binary(max_size=40), max_size=3)), role)
    if told.is_closed and told.trouble is None:
        assert GOOD_ENDS & set(lines) or (role is not Role.IMPLEMENTER and set(lines_of("denied")) & set(lines))


@given(data=st.data())
@settings(max_examples=50, deadline=None)  # whole recordings, as above
def test_fields_of_any_type_never_raise(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted({*TROUBLES, *GOOD})))
    lines = _spoiled(data, lines_of(name))
    told, shown = read(lines)
    assert all(isinstance(text, str) for text in shown)
    assert told.usage.tokens >= 0 and told.usage.cost_usd >= 0
    assert told.answer is None or isinstance(told.answer, bytes)


@given(st.lists(st.binary(max_size=200), max_size=20))
@settings(max_examples=100, deadline=None)
def test_any_bytes_are_taken(lines: list[bytes]) -> None:
    told, _ = read(lines, lines)
    assert not told.is_closed


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"result","structured_output":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"type":"assistant","message":{"content":[{"type":"tool_use","input":' + b'{"a":' * 900 + b"1" + b"}" * 904,
        b'{"type":"result","total_cost_usd":' + b"9" * 9_999 + b"}",
        b'{"type":"result","is_error":false,"result":"' + b"x" * 3_000_000 + b'"}',
        b'{"type":"result","subtype":"success","is_error":false,"structured_output":"\\ud800"}',
    ],
)
def test_deep_long_and_odd_lines_are_taken(line: bytes) -> None:
    told, shown = read([line])
    assert told.answer is None or json.loads(told.answer) == "\ud800"
    assert sum(map(len, shown)) < 10_000
