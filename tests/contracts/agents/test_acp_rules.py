"""The rules of the ACP client by themselves: permissions, what errors mean, what agents offer, what is a message."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aiflow.adapters.agents.acp.driver import AcpDriver
from aiflow.adapters.agents.acp.files import Folders, MissingError, RefusedError
from aiflow.adapters.agents.acp.offers import choice_of, login_names, login_of
from aiflow.adapters.agents.acp.permissions import (
    Option,
    PermissionRules,
    PermissionVerdict,
    PermissionWish,
    Policy,
    Where,
    decide,
)
from aiflow.adapters.agents.acp.programs import known
from aiflow.adapters.agents.acp.troubles import is_limit, reason_of, trouble_of, words_of
from aiflow.adapters.agents.acp.updates import slim
from aiflow.adapters.agents.acp.wire import Wire, read_message
from aiflow.adapters.agents.call.command import Launch, Surroundings
from aiflow.adapters.secrets import Masker
from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.call import AgentCall, Brief
from aiflow.domain.untrusted import clean_plain
from aiflow.messages import Texts

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
OPTIONS = (
    Option("once", "Allow once", "allow_once"),
    Option("always", "Always allow", "allow_always"),
    Option("no", "Reject", "reject_once"),
    Option("never", "Always reject", "reject_always"),
)
KINDS = ("read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other", "new")

# --- permissions


@pytest.mark.spec("AGT-1", "SEC")
@given(
    kind=st.sampled_from(KINDS),
    options=st.lists(st.sampled_from(OPTIONS), unique=True),
    places=st.lists(st.sampled_from(list(Where))),
    rules=st.builds(
        PermissionRules,
        st.sampled_from([Policy.AUTO, Policy.DENY]),
        st.booleans(),
        st.booleans(),
        may_run=st.booleans(),
    ),
)
def test_nothing_is_ever_allowed_for_ever_nor_outside(
    kind: str, options: list[Option], places: list[Where], rules: PermissionRules
) -> None:
    decision = decide(PermissionWish("x", kind, tuple(places), tuple(options)), rules, Where)
    if decision.verdict is PermissionVerdict.ALLOWED:
        assert rules.policy is Policy.AUTO
        assert decision.option_id == "once"
        reading = ("read", "search", "think", "fetch", *(("execute",) if rules.may_run else ()))
        assert not rules.is_reader or kind in reading
        assert Where.OWN not in places
        assert kind not in ("edit", "delete", "move") or set(places) <= {Where.INSIDE}
    else:
        assert decision.verdict is PermissionVerdict.REFUSED
        assert decision.option_id in ("no", "never", None)


@pytest.mark.spec("RUN-10")
@given(st.text(max_size=700), st.text(max_size=700), st.sampled_from([option.name for option in OPTIONS]))
def test_an_answer_is_used_for_that_very_request_only(title: str, other: str, answer: str) -> None:
    wish = PermissionWish(title, "execute", (), OPTIONS)
    rules = PermissionRules(Policy.ASK, is_reader=False, answers=((wish.what, answer),))
    decision = decide(wish, rules, lambda _: Where.INSIDE)
    assert decision.option_id == next(option.id for option in OPTIONS if option.name == answer)
    another = PermissionWish(other, "execute", (), OPTIONS)
    if wish.what != another.what:
        assert decide(another, rules, lambda _: Where.INSIDE).verdict is PermissionVerdict.ASKED


def test_two_long_requests_that_begin_alike_are_two() -> None:
    first, second = (PermissionWish("x" * 600 + end, "execute", (), OPTIONS).what for end in ("1", "2"))
    assert first != second
    assert len(first) < 520


@pytest.mark.spec("RUN-10", "SEC")
def test_a_request_is_known_again_though_its_secrets_were_masked() -> None:
    mask = Masker({"MY_KEY": "s3cret-value"}).mask_text
    wish = PermissionWish("curl -H s3cret-value host", "execute", (), OPTIONS, mask)
    assert wish.what == "execute: curl -H *** host"
    rules = PermissionRules(Policy.ASK, is_reader=False, answers=((wish.what, "1"),))
    assert decide(wish, rules, lambda _: Where.INSIDE).verdict is PermissionVerdict.ALLOWED


@pytest.mark.spec("SEC")
@pytest.mark.parametrize("title", ["curl -H x; rm -r ~ host", "curl -H *** ; rm -r ~ host", "curl -H  host"])
def test_stars_in_what_a_person_allowed_stand_for_nothing_else(title: str) -> None:
    rules = PermissionRules(Policy.ASK, is_reader=False, answers=(("execute: curl -H *** host", "1"),))
    assert (
        decide(PermissionWish(title, "execute", (), OPTIONS), rules, lambda _: Where.INSIDE).verdict
        is PermissionVerdict.ASKED
    )


@pytest.mark.spec("SEC")
@pytest.mark.parametrize("filler", range(470, 500))
def test_a_secret_is_masked_before_a_long_request_is_cut(filler: int) -> None:
    wish = PermissionWish(
        f"{'x' * filler} s3cret-value and so on", "execute", (), OPTIONS, Masker({"K_KEY": "s3cret-value"}).mask_text
    )
    assert "s3" not in wish.what


@pytest.mark.spec("SEC")
def test_what_is_asked_hides_nothing_and_is_known_again_behind_the_sieve() -> None:
    what = PermissionWish("rm\u200b -r \u202ex", "execute", (), OPTIONS).what
    assert what == "execute: rm⟨U+200B⟩ -r ⟨U+202E⟩x"
    assert clean_plain(what).text == what


def test_the_last_answer_counts() -> None:
    rules = PermissionRules(
        Policy.ASK, is_reader=False, answers=(("execute: x", "Reject"), ("execute: x", "Allow once"))
    )
    assert decide(PermissionWish("x", "execute", (), OPTIONS), rules, lambda _: Where.INSIDE).option_id == "once"


# --- files


@pytest.mark.spec("SEC")
def test_a_path_is_where_it_leads(tmp_path: Path) -> None:
    worktree, own, outside = (tmp_path / name for name in ("work", "own", "outside"))
    for folder in (worktree, own, outside):
        folder.mkdir()
    (worktree / "link").symlink_to(outside)
    (worktree / "loop").symlink_to("loop")
    (worktree / "pipe").touch()
    folders = Folders((str(worktree),), is_writable=True, own=(str(own),))
    assert folders.find("a/b") is Where.INSIDE
    assert folders.find(str(worktree)) is Where.INSIDE
    assert folders.find("link/x") is Where.OUTSIDE
    assert folders.find(f"{worktree}x/y") is Where.OUTSIDE
    assert folders.find("../own/x") is Where.OWN
    (worktree / "latin").write_bytes(b"\xe9")
    for path in ("", "a\0b", "link/x", "../x", ".git/HEAD", "loop", "latin", "."):
        with pytest.raises(RefusedError):
            folders.read(path, None, None)
    with pytest.raises(MissingError):
        folders.read("missing", None, None)
    for path in ("link/x", "../x", ".git", "loop", "."):
        with pytest.raises(RefusedError):
            folders.write(path, "x")
    with pytest.raises(RefusedError):
        folders.write("surrogate.txt", "\ud800")
    folders.write("a/b/c.txt", "é\r\n")
    assert (worktree / "a/b/c.txt").read_bytes() == "é\r\n".encode()
    assert [folders.read("a/b/c.txt", line, 1) for line in (None, 1, 2)] == ["é\r\n", "é\r\n", ""]
    assert list(outside.iterdir()) == []


# --- what errors mean

WORDS = {
    "AGENT_QUOTA": [
        "Rate limit reached for gpt on tokens per min. Please try again in 20s.",
        "429 Too Many Requests",
        "You have hit your usage limit. Upgrade or try again at 3:05 PM.",
        "RESOURCE_EXHAUSTED: Quota exceeded for quota metric",
        "Overloaded",
        "You've hit your session limit · resets 4pm (Asia/Tokyo)",
        "Weekly limit reached",
        '{"type":"error","error":{"type":"overloaded_error"}} 529',
        "You exceeded your current quota, please check your plan and billing details. Please retry in 34.07s.",
    ],
    "AGENT_AUTH_REQUIRED": [
        "401 Unauthorized",
        "Incorrect API key provided: sk-x",
        "API key not valid. Please pass a valid API key.",
        "Gemini API key is missing or not configured.",
        "invalid x-api-key",
        "Please log in",
        "Please run /login",
        "Your credit balance is too low to access the API",
        "You exceeded your current quota, please check your plan and billing details.",
        "insufficient_quota",
        "402 Payment Required",
        "You do not have access to this model.",
    ],
    "AGENT_FAILED": [
        "stub boom",
        "500 Internal Server Error",
        "Cannot connect to API: The socket connection was closed unexpectedly.",
        "listening on port 4290, took 401.5 ms",
        "You have reached your maximum output token limit",
        "You've hit your context window limit",
        "",
    ],
}


@pytest.mark.spec("RUN-13")
@pytest.mark.parametrize(("code", "text"), [(code, text) for code, texts in WORDS.items() for text in texts])
def test_a_providers_words_have_their_reason_code(code: str, text: str) -> None:
    assert reason_of(text) == code
    assert trouble_of(-32603, text, NOW).reason_code == code


@pytest.mark.parametrize(
    ("number", "code"), [(-32000, "AGENT_AUTH_REQUIRED"), (401, "AGENT_AUTH_REQUIRED"), (429, "AGENT_QUOTA")]
)
def test_a_code_says_more_than_words(number: int, code: str) -> None:
    assert trouble_of(number, "no", NOW).reason_code == code


def test_a_limit_of_what_the_agent_asks_besides_is_none_of_its_work() -> None:
    line = 'level=ERROR message="stream error" small={} agent={} error.error="AI_APICallError: Rate limit reached"'
    assert is_limit(line.format("false", "build"))
    assert not is_limit(line.format("true", "title"))


def test_the_words_inside_an_error_are_told() -> None:
    assert words_of('{"error": {"message": "inner"}}', {}) == "inner"
    assert words_of("Internal error", {"details": "more"}) == "Internal error: more"
    assert words_of("Internal error: boom", {"service": "x"}) == "boom"
    assert words_of("", {}) == "an error without a message"
    assert words_of("{nonsense", {"details": 3}) == "{nonsense"


@given(st.text())
def test_any_words_can_be_judged(text: str) -> None:
    assert reason_of(text) in WORDS
    assert words_of(text, {})


# --- what agents offer

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)
SESSIONS = st.dictionaries(
    st.sampled_from(["configOptions", "models", "modes", "sessionId"]),
    JSON
    | st.lists(st.dictionaries(st.sampled_from(["id", "category", "type", "options", "currentValue"]), JSON))
    | st.dictionaries(st.sampled_from(["availableModels", "availableModes", "currentModelId"]), JSON),
)


@settings(max_examples=50)
@given(SESSIONS, st.sampled_from(["model", "mode"]), st.text())
def test_any_offer_can_be_read(session: dict[str, Any], what: str, wanted: str) -> None:
    choice = choice_of(session, what, wanted)
    assert choice is None or all(isinstance(value, str) for value in choice.values)
    login_of(session.get("configOptions"), {})
    login_names(session.get("configOptions"))


def test_only_a_login_that_needs_nobody_is_made() -> None:
    methods = [
        {"id": "oauth", "name": "Log in with a browser"},
        {"id": "key", "type": "env_var", "vars": [{"name": "A_KEY"}, {"name": "B_KEY"}], "name": "Key"},
        {"id": "openai-api-key", "name": "Key", "description": "Set OPENAI_API_KEY"},
    ]
    assert login_of(methods, {}) is None
    assert login_of(methods, {"A_KEY": "x"}) is None
    assert login_of(methods, {"A_KEY": "x", "B_KEY": "y"}) == "key"
    assert login_of(methods, {"OPENAI_API_KEY": "x"}) == "openai-api-key"
    assert login_names(methods) == ["Log in with a browser", "Key", "Key: Set OPENAI_API_KEY"]


# --- the wire


@given(st.binary() | JSON.map(lambda value: json.dumps(value).encode()))
def test_only_what_the_library_can_take_is_a_message(line: bytes) -> None:
    message = read_message(line)
    assert message is None or isinstance(message.get("id"), (int, str, type(None)))


@given(st.lists(st.binary(max_size=30), max_size=8), st.integers(1, 20))
def test_any_bytes_can_come_in_any_pieces(lines: list[bytes], size: int) -> None:
    data = b"\n".join([*lines, b'{"id": 1, "result": {}}\n'])
    noise: list[str] = []

    async def receive() -> list[dict[str, Any]]:
        reader = asyncio.StreamReader()
        wire = Wire(reader, None, lambda _: None, noise.append)  # type: ignore[arg-type]
        for at in range(0, len(data), size):
            reader.feed_data(data[at : at + size])
        reader.feed_eof()
        got = []
        while (message := await wire.receive()) is not None:
            got.append(message)
        return got

    assert {"id": 1, "result": {}} in asyncio.run(receive())


@pytest.mark.timing
def test_a_message_of_many_megabytes_is_searched_once(allowed: Callable[[float], float]) -> None:
    data = json.dumps({"id": 1, "result": "x" * 30_000_000}).encode() + b"\n"

    async def receive() -> Any:
        reader = asyncio.StreamReader()
        reader.feed_data(data)
        reader.feed_eof()
        return await Wire(reader, None, lambda _: None, lambda _: None).receive()  # type: ignore[arg-type]

    began = time.monotonic()
    assert len(asyncio.run(receive())["result"]) == 30_000_000
    assert time.monotonic() - began < allowed(5), "it took 10 s where every piece was searched from the line's begin"


# --- the driver


class Nothing:
    """Processes that are asked only whether they can be confined."""

    def confinement(self) -> str | None:
        return "landlock"


def start(argv: tuple[str, ...], environ: dict[str, str], tmp_path: Path, **more: Any) -> tuple[Any, dict[str, Any]]:
    around = Surroundings(str(tmp_path), "", "", environ, Nothing(), Masker({}))  # type: ignore[arg-type]
    brief = Brief("RQ-1", "Title", "Body", "P1")
    call = AgentCall(Role.IMPLEMENTER, brief, "RUN-1", str(tmp_path), None, (), 1, **more)
    started = AcpDriver(Launch(argv, 9, 9, model="m", mode="x", permissions="ask"), around).start(call, str(tmp_path))
    return started, json.loads(started.stdin)


@pytest.mark.spec("AGT-1", "AGT-4")
def test_a_call_is_started_through_our_client(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path / "home")}
    asked = tuple(Texts(language)("run.may_agent", what="execute: make") for language in ("en", "ja"))
    answers = ((asked[0], "Reject"), ("Which colour?", "Blue"), (asked[1], "Allow once"))
    started, order = start(("opencode", "acp"), home, tmp_path, answers=answers, session_id="s+5")
    assert started.argv[1:] == ("-P", "-m", "aiflow.adapters.agents.acp.client")
    assert started.shown == ("opencode", "acp")
    assert started.writable is not None
    assert all(path.startswith(home["HOME"]) for path in started.writable)
    assert (order["argv"], order["model"], order["mode"], order["permissions"]) == (
        ["opencode", "acp"],
        "m",
        "x",
        "ask",
    )
    assert order["answers"] == [["execute: make", "Reject"], ["execute: make", "Allow once"]]
    assert order["is_confined"]
    assert order["may_run"]
    assert order["session_id"] == "s"
    assert order["prompt"].startswith("You are still the implementer")
    assert started.variables["OPENCODE_PRINT_LOGS"] == "1"
    assert "continue_loop_on_deny" in started.variables["OPENCODE_CONFIG_CONTENT"]
    # What the user has set stays.
    own, _ = start(("opencode", "acp"), home | {"OPENCODE_CONFIG_CONTENT": "{}"}, tmp_path)
    assert "OPENCODE_CONFIG_CONTENT" not in own.variables
    assert "OPENCODE_CONFIG_CONTENT" in own.env_names


@pytest.mark.spec("AGT-1", "SEC")
def test_a_reviewer_gets_commands_only_where_the_kernel_keeps_them_from_writing(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path / "home")}
    for role, sandbox, may_run in (
        (Role.QA, "auto", True),
        (Role.QA, "off", False),
        (Role.PLANNER, "auto", False),
        (Role.IMPLEMENTER, "off", True),
    ):
        around = Surroundings(str(tmp_path), "", "", home, Nothing(), Masker({}))  # type: ignore[arg-type]
        call = AgentCall(role, Brief("RQ-1", "Title", "Body", "P1"), "RUN-1", str(tmp_path), None, (), 1)
        driver = AcpDriver(Launch(("opencode", "acp"), 9, 9, sandbox=sandbox), around)
        order = json.loads(driver.start(call, str(tmp_path)).stdin)
        assert order["may_run"] is may_run
        if role is not Role.IMPLEMENTER:
            assert ("You can run commands" in order["prompt"]) is may_run


def test_known_programs_get_the_keys_that_are_theirs() -> None:
    assert "GEMINI_API_KEY" in known(("/usr/bin/gemini", "--acp")).env_names
    assert "ANTHROPIC_API_KEY" in known(("npx", "-y", "@zed-industries/claude-code-acp@1")).env_names
    assert "ANTHROPIC_API_KEY" not in known(("gemini", "--acp")).env_names
    assert known(("./my-agent",)).env_names == ()


# --- updates


@settings(max_examples=50)  # nothing raises: values of any shape are dear to make
@given(st.dictionaries(st.sampled_from(["sessionUpdate", "content", "entries", "title", "cost", "rawOutput"]), JSON))
def test_any_update_can_be_cut_down(update: dict[str, Any]) -> None:
    slimmed = slim(update)
    assert slim(slimmed) == slimmed
    assert "rawOutput" not in slimmed


@pytest.mark.spec("RUN-13")
@pytest.mark.parametrize(
    "text",
    [
        "at load (/w/src/quota.js:3:1)",
        "wrote 429 bytes",
        "TypeError: quota is not a function",
        "/srv/billing/x.py: boom",
    ],
)
def test_a_crash_is_no_quota_because_of_a_name_or_a_number(text: str) -> None:
    assert reason_of(text) == "AGENT_FAILED"


@pytest.mark.spec("RUN-13")
@pytest.mark.parametrize(
    "text",
    ["You exceeded your current quota", "HTTP 429", "status: 529", "Too Many Requests", "quota exceeded for model x"],
)
def test_what_a_provider_says_of_a_limit_is_one(text: str) -> None:
    assert reason_of(text) == "AGENT_QUOTA"
