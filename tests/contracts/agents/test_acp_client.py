"""The ACP client with agents that are real processes: what it asks of them, what it lets them do, what it tells."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from aiflow.adapters.agents.acp.client import work
from aiflow.messages.details import ENGLISH
from e2e.acp_agent import AcpAgent
from e2e.bench import is_alive

MODELS = """reply(sessionId="s", configOptions=[
    {"id": "model", "category": "model", "type": "select", "currentValue": "small",
     "options": [{"value": "small", "name": "Small"}, {"name": "More", "options": [{"value": "large"}]}]},
    {"id": "mode", "category": "mode", "type": "select", "currentValue": "build",
     "options": [{"value": "build"}, {"value": "plan"}]}])"""
OLDER = """reply(sessionId="s",
    models={"currentModelId": "small", "availableModels": [{"modelId": "small"}, {"modelId": "large"}]},
    modes={"currentModeId": "default", "availableModes": [{"id": "default"}, {"id": "plan"}]})"""


class Scene:
    """One agent, one worktree, and what the client tells of them."""

    def __init__(self, folder: Path) -> None:
        self.agent = AcpAgent(folder / "agent")
        self.cwd = folder / "worktree"
        self.cwd.mkdir()
        self.events: list[dict[str, Any]] = []

    def tell(self, event: str, **facts: Any) -> None:
        """Take an event as it would be written, and read again."""
        self.events.append(json.loads(json.dumps({"event": event, **facts}, default=str)))

    def call(self, **order: Any) -> list[dict[str, Any]]:
        """Call the agent once; return what was told besides updates."""
        document = {
            "argv": [str(self.agent.path)],
            "cwd": str(self.cwd),
            "role": "implementer",
            "prompt": "You are the implementer",
            "session_id": None,
            "model": "",
            "mode": "",
            "permissions": "auto",
            "answers": [],
            "folders": [],
            "own": [],
            "is_confined": False,
            "patience_seconds": 60.0,
        }
        self.events.clear()
        asyncio.run(work(document | order, self.tell, leave_seconds=1.0))
        return [event for event in self.events if event["event"] != "update"]

    @property
    def last(self) -> dict[str, Any]:
        """What was told last: how it ended."""
        return self.events[-1]

    @property
    def updates(self) -> list[dict[str, Any]]:
        """What the agent told of its session."""
        return [event["update"] for event in self.events if event["event"] == "update"]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """Give an agent and a worktree."""
    return Scene(tmp_path)


@pytest.mark.spec("AGT-1")
def test_a_turn_is_told_from_hello_to_its_end(scene: Scene) -> None:
    told = scene.call()
    assert [event["event"] for event in told] == ["agent", "session", "ended"]
    assert told[0]["info"] == {"name": "scripted", "version": "1"}
    assert (told[1]["id"].startswith("session-"), told[1]["can_go_on"]) == (True, True)
    assert told[2]["reason"] == "end_turn"
    assert [update["sessionUpdate"] for update in scene.updates] == [
        "tool_call",
        "tool_call_update",
        "agent_message_chunk",
    ]
    assert (scene.cwd / "made.txt").read_text() == "made\n"
    hello = scene.agent.requests("initialize")[0]
    assert hello["protocolVersion"] == 1
    assert hello["clientCapabilities"] == {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": False}
    assert scene.agent.requests("session/new") == [{"cwd": str(scene.cwd), "mcpServers": []}]
    assert scene.agent.requests("session/prompt")[0]["prompt"] == [{"type": "text", "text": "You are the implementer"}]


@pytest.mark.spec("AGT-1")
def test_a_session_goes_on_and_what_the_agent_repeats_of_it_is_no_news(scene: Scene) -> None:
    cost = {"amount": 2.5, "currency": "USD"}
    repeat = f'say("old news"); update("usage_update", used=1, size=9, cost={cost})'
    late = 'send(id=current, result={}); time.sleep(0.1); say("old news again"); raise Stop'
    scene.agent.does("session/load", f"{repeat}; {late}")
    session = scene.call()[1]["id"]
    scene.call(session_id=session, prompt="You are still the implementer")
    assert scene.agent.requests("session/load") == [{"cwd": str(scene.cwd), "mcpServers": [], "sessionId": session}]
    assert scene.agent.requests("session/prompt")[1]["sessionId"] == session
    assert len(scene.agent.requests("session/new")) == 1
    assert scene.last["event"] == "ended"
    replayed = [event for event in scene.events if event.get("is_replay")]
    assert [event["update"]["cost"] for event in replayed] == [cost]
    assert not any("old news" in json.dumps(update) for update in scene.updates)


@pytest.mark.parametrize("knows", ["fail(-32602, 'Session not found')", None])
def test_a_session_that_is_lost_is_said_to_be(scene: Scene, knows: str | None) -> None:
    if knows is None:  # an agent that cannot go on with any
        scene.agent.does("initialize", 'reply(protocolVersion=1, agentCapabilities={"loadSession": False})')
    else:
        scene.agent.does("session/load", knows)
    scene.call(session_id="gone")
    assert (scene.last["event"], scene.last["doing"]) == ("failed", "session/load")
    assert scene.agent.requests("session/prompt") == []


def test_an_agent_without_sessions_gets_a_new_one_that_nobody_goes_on_with(scene: Scene) -> None:
    scene.agent.does("initialize", "reply(protocolVersion=1)")
    assert scene.call()[1]["can_go_on"] is False


@pytest.mark.spec("AGT-1")
@pytest.mark.parametrize("offer", [MODELS, OLDER])
def test_model_and_mode_are_those_of_the_settings(scene: Scene, offer: str) -> None:
    scene.agent.does("session/new", offer)
    scene.call(model="large", mode="plan")
    assert scene.last["event"] == "ended"
    if offer is MODELS:
        options = scene.agent.requests("session/set_config_option")
        assert [(one["configId"], one["value"]) for one in options] == [("model", "large"), ("mode", "plan")]
    else:
        assert scene.agent.requests("session/set_model") == [{"sessionId": "s", "modelId": "large"}]
        assert scene.agent.requests("session/set_mode") == [{"sessionId": "s", "modeId": "plan"}]
    scene.call(model="small")  # which it is already
    assert len(scene.agent.requests("session/set_config_option")) in (0, 2)
    assert len(scene.agent.requests("session/set_model")) in (0, 1)


@pytest.mark.parametrize(
    ("offer", "wanted", "words"),
    [
        (MODELS, {"model": "huge"}, "does not offer huge, only: small, large"),
        (OLDER, {"mode": "yolo"}, "does not offer yolo, only: default, plan"),
        ('reply(sessionId="s")', {"model": "large"}, "does not let its model be chosen"),
    ],
)
def test_a_model_or_mode_that_is_not_offered_is_no_other_one(
    scene: Scene, offer: str, wanted: dict[str, str], words: str
) -> None:
    scene.agent.does("session/new", offer)
    scene.call(**wanted)
    assert (scene.last["event"], scene.last["doing"]) == ("failed", *wanted)
    assert words in ENGLISH(scene.last["message"], **scene.last["data"])
    assert scene.agent.requests("session/prompt") == []


def test_no_login_is_told_and_one_that_needs_nobody_is_made(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.agent.does(
        "session/new",
        """
logged = any("authenticate" in line for line in (HERE / "heard.jsonl").read_text().splitlines())
reply(sessionId="s") if logged else fail(-32000, "Authentication required")
""",
    )
    scene.agent.does("authenticate", "reply()")
    monkeypatch.delenv("LOG_IN", raising=False)
    told = scene.call()
    assert (told[0]["logins"][0]["name"], scene.last["code"]) == ("Log in", -32000)
    monkeypatch.setenv("LOG_IN", "a key")
    scene.call()
    assert scene.agent.requests("authenticate") == [{"methodId": "log-in"}]
    assert scene.last["event"] == "ended"


# --- permissions


@pytest.mark.spec("AGT-1", "SEC")
@pytest.mark.parametrize(
    ("role", "kind", "path", "chosen"),
    [
        ("implementer", "edit", "{cwd}/a.txt", "once"),
        ("implementer", "execute", None, "once"),
        ("implementer", "edit", "/etc/passwd", "no"),
        ("implementer", "edit", "{cwd}/../x", "no"),
        ("implementer", "edit", "{cwd}/link/x", "no"),
        ("implementer", "read", "/etc/passwd", "once"),
        ("implementer", "execute", "/etc", "no"),
        ("implementer", "read", "{own}/auth.json", "no"),
        ("implementer", "switch_mode", None, "no"),
        ("planner", "read", "{cwd}/a.txt", "once"),
        ("planner", "edit", "{cwd}/a.txt", "no"),
        ("qa", "execute", None, "no"),
        ("qa", "fetch", None, "once"),
        ("qa", "other", None, "no"),
    ],
)
def test_auto_allows_what_stays_in_the_worktree_and_to_readers_only_reading(
    scene: Scene, role: str, kind: str, path: str | None, chosen: str
) -> None:
    (scene.cwd / "link").symlink_to("/etc")
    own = scene.cwd.parent / "own"
    places = [{"path": path.format(cwd=scene.cwd, own=own)}] if path else []
    scene.agent.does(role, f'write(HERE / "chosen", str(may("do it", {kind!r}, locations={places}))); done()')
    told = scene.call(role=role, prompt=f"You are the {role}", own=[str(own)])
    assert (scene.agent.folder / "chosen").read_text() == chosen
    verdict = {"once": "allowed", "no": "refused"}[chosen]
    assert [event["verdict"] for event in told if event["event"] == "permission"] == [verdict]


@pytest.mark.spec("SEC")
@pytest.mark.parametrize(
    ("kind", "path", "chosen"),
    [("execute", "/etc", "once"), ("other", "/etc", "once"), ("edit", "/etc/passwd", "no")],
)
def test_what_the_kernel_confines_may_look_around(scene: Scene, kind: str, path: str, chosen: str) -> None:
    scene.agent.does(
        "implementer", f'write(HERE / "chosen", str(may("x", {kind!r}, locations=[{{"path": {path!r}}}])))'
    )
    scene.call(is_confined=True)
    assert (scene.agent.folder / "chosen").read_text() == chosen


@pytest.mark.spec("SEC")
@pytest.mark.parametrize(("kind", "chosen"), [("execute", "once"), ("edit", "no"), ("other", "no")])
def test_a_reviewer_whom_the_kernel_confines_runs_commands_and_changes_nothing(
    scene: Scene, kind: str, chosen: str
) -> None:
    scene.agent.does(
        "qa", f'write(HERE / "chosen", str(may("x", {kind!r}, locations=[{{"path": {str(scene.cwd)!r}}}])))'
    )
    scene.call(role="qa", prompt="You are the qa", is_confined=True, may_run=True)
    assert (scene.agent.folder / "chosen").read_text() == chosen


def test_the_path_of_a_change_counts_as_well(scene: Scene) -> None:
    change = [{"type": "diff", "path": "/etc/hosts", "oldText": "", "newText": "x"}]
    scene.agent.does("implementer", f'write(HERE / "chosen", str(may("edit", "edit", content={change}))); done()')
    scene.call()
    assert (scene.agent.folder / "chosen").read_text() == "no"


@pytest.mark.spec("AGT-1", "RUN-10")
def test_ask_ends_the_turn_with_the_question_and_the_answer_is_used_when_it_is_asked_again(scene: Scene) -> None:
    scene.agent.does("implementer", 'write(HERE / "chosen", str(may("npm install"))); done()')
    told = scene.call(permissions="ask")
    assert told[-1] == {
        "event": "asked",
        "what": "execute: npm install",
        "choices": ["Allow once", "Always allow", "Reject"],
    }
    assert scene.agent.requests("session/cancel") != []
    assert not (scene.agent.folder / "chosen").exists() or (scene.agent.folder / "chosen").read_text() == "None"
    for answer, option in (("Allow once", "once"), ("ALWAYS allow", "always"), ("3", "no"), ("use yarn", "no")):
        scene.call(permissions="ask", answers=[["execute: npm install", answer]])
        assert (scene.agent.folder / "chosen").read_text() == option
        assert scene.last["event"] == "ended"
    # Another request is another question.
    scene.agent.does("implementer", 'may("npm install evil"); done()')
    assert scene.call(permissions="ask", answers=[["execute: npm install", "1"]])[-1]["event"] == "asked"


@pytest.mark.spec("AGT-1")
def test_deny_refuses_everything(scene: Scene) -> None:
    scene.agent.does("implementer", 'write(HERE / "chosen", str(may("look", "read"))); done()')
    scene.call(permissions="deny")
    assert (scene.agent.folder / "chosen").read_text() == "no"


def test_what_the_agent_wants_for_ever_is_not_allowed(scene: Scene) -> None:
    scene.agent.does("implementer", 'write(HERE / "chosen", str(may("do it", options=OPTIONS[1:2]))); done()')
    scene.call()
    assert (scene.agent.folder / "chosen").read_text() == "None"


# --- files


@pytest.mark.spec("SEC")
def test_files_are_read_and_written_inside_the_worktree_only(scene: Scene, tmp_path: Path) -> None:
    (tmp_path / "outside.txt").write_text("secret")
    (scene.cwd / "link").symlink_to(tmp_path)
    (scene.cwd / "in.txt").write_text("one\r\ntwo\nthree")
    cases = {
        "read": [("in.txt", None), ("missing", -32002), ("link/outside.txt", -32001), ("../outside.txt", -32001)],
        "write": [("deep/new.txt", None), ("link/outside.txt", -32001), (".git", -32001), (".git/config", -32001)],
    }
    code = f"""
got = {{}}
for method, paths in {cases!r}.items():
    for path, _ in paths:
        got[method + path] = ask(f"fs/{{method}}_text_file", path=os.path.join(os.getcwd(), path), content="new\\r\\n")
got["line"] = ask("fs/read_text_file", path=os.path.join(os.getcwd(), "in.txt"), line=2, limit=1)
(HERE / "got").write_text(json.dumps(got)); done()"""
    scene.agent.does("implementer", code)
    scene.agent.does("planner", code)
    scene.call()
    got = json.loads((scene.agent.folder / "got").read_text())
    for method, paths in cases.items():
        for path, error in paths:
            assert got[method + path].get("code") == error, (method, path, got[method + path])
    assert (got["readin.txt"], got["line"]) == ({"content": "one\r\ntwo\nthree"}, {"content": "two\n"})
    assert (scene.cwd / "deep/new.txt").read_bytes() == b"new\r\n"
    assert (tmp_path / "outside.txt").read_text() == "secret"
    assert not (scene.cwd / ".git").exists()
    # A role that only reads writes nowhere.
    (scene.cwd / "deep/new.txt").unlink()
    scene.call(role="planner", prompt="You are the planner")
    got = json.loads((scene.agent.folder / "got").read_text())
    assert got["writedeep/new.txt"]["code"] == -32001
    assert not (scene.cwd / "deep/new.txt").exists()


# --- what goes wrong


@pytest.mark.parametrize(
    ("code", "last"),
    [
        ("os._exit(3)", {"event": "lost", "exit_code": 3}),
        ("os.kill(os.getpid(), 9)", {"event": "lost", "exit_code": -9}),
        ("os.close(1); time.sleep(60)", {"event": "lost", "exit_code": None}),
    ],
)
def test_an_agent_that_goes_away_is_lost(scene: Scene, code: str, last: dict[str, Any]) -> None:
    scene.agent.does("implementer", f'say("half"); {code}')
    scene.call()
    assert scene.last == last
    assert not is_alive(scene.agent.heard[-1]["pid"])


def test_what_is_no_message_is_noise_and_the_turn_goes_on(scene: Scene) -> None:
    rubbish = [b"Loading...\n", b"[]\n", b"42\n", b'{"id": {}}\n', b"\xff\xfe\n", b'{"half": \n', b"{}\n", b"null\n"]
    lines = ";".join(f"sys.stdout.buffer.write({line!r})" for line in rubbish)
    odd = [b'{"id": 77, "error": "no"}\n', b'{"id": 99, "result": 1}\n', b'{"method": "session/update"}\n']
    more = ";".join(f"sys.stdout.buffer.write({line!r})" for line in odd)
    scene.agent.does("implementer", f"{lines};{more};sys.stdout.buffer.flush(); done()")
    told = scene.call()
    assert [event["event"] for event in told if event["event"] == "noise"] == ["noise"] * len(rubbish)
    assert scene.last["event"] == "ended"


def test_a_request_that_nobody_serves_is_refused_and_the_turn_goes_on(scene: Scene) -> None:
    asked = 'ask("terminal/create", command="ls")["code"], ask("session/request_permission", options=3)["code"]'
    scene.agent.does("implementer", f'write(HERE / "got", json.dumps([{asked}])); done()')
    scene.call()
    assert json.loads((scene.agent.folder / "got").read_text()) == [-32601, -32602]
    assert scene.last["event"] == "ended"


def test_an_error_is_told_with_what_was_asked(scene: Scene) -> None:
    scene.agent.does("implementer", 'fail(-32603, "Internal error: boom", {"details": "more"})')
    scene.call()
    assert scene.last == {
        "event": "failed",
        "doing": "session/prompt",
        "code": -32603,
        "message": "Internal error: boom",
        "data": {"details": "more"},
    }


def test_another_version_of_the_protocol_is_not_spoken(scene: Scene) -> None:
    scene.agent.does("initialize", "reply(protocolVersion=2)")
    scene.call()
    said = ENGLISH(scene.last["message"], **scene.last["data"])
    assert (scene.last["doing"], said) == ("initialize", "it speaks version 2 of the protocol")


@pytest.mark.spec("RUN-13")
def test_an_agent_that_waits_for_a_limit_in_silence_is_not_waited_for(scene: Scene) -> None:
    words = "AI_APICallError: Rate limit reached, try again in 90 seconds"
    scene.agent.does("implementer", f'print({words!r}, file=sys.stderr, flush=True); receive(); stop("cancelled")')
    began = time.monotonic()
    told = scene.call(patience_seconds=0.5)
    assert time.monotonic() - began >= 0.5
    assert [event["text"] for event in told if event["event"] == "complaint"] == [words]
    assert (scene.last["event"], scene.last["code"], scene.last["message"]) == ("failed", 429, words)
    assert scene.agent.requests("session/cancel") != []


def test_an_agent_that_works_on_behind_a_limit_is_left_alone(scene: Scene) -> None:
    complain = 'print("429 Too Many Requests", file=sys.stderr, flush=True)'
    scene.agent.does("implementer", f'{complain}; time.sleep(0.2); say("Once more."); time.sleep(1); tool("x"); done()')
    scene.call(patience_seconds=0.6)
    assert scene.last["event"] == "ended"


def test_a_session_needs_an_id(scene: Scene) -> None:
    scene.agent.does("session/new", "reply(sessionId=7)")
    scene.call()
    assert (scene.last["event"], scene.last["doing"]) == ("failed", "session/new")


def test_what_nobody_reads_is_not_handed_on(scene: Scene) -> None:
    raw = 'rawOutput={"x": "y" * 3_000_000}, rawInput={"z": 1}'
    image = 'update("agent_message_chunk", content={"type": "image", "data": "x" * 3_000_000})'
    scene.agent.does("implementer", f'tool("make", text="o" * 3_000_000, {raw}); {image}; say("e" * 600_000); done()')
    scene.call()
    assert scene.last["event"] == "ended"
    sizes = [len(json.dumps(update)) for update in scene.updates]
    assert max(sizes) < 600_000
    assert sizes[1] < 30_000


def test_a_program_that_is_not_there_is_told(scene: Scene) -> None:
    assert scene.call(argv=[str(scene.cwd / "nothing")]) == [
        {"event": "not_started", "problem": f"{scene.cwd}/nothing: No such file or directory"}
    ]


def test_it_is_a_program_that_imports_nothing_from_the_worktree(scene: Scene) -> None:
    (scene.cwd / "acp.py").write_text("raise SystemExit('planted')")
    (scene.cwd / "json.py").write_text("raise SystemExit('planted')")
    order = {"argv": ["/nonexistent"], "cwd": str(scene.cwd)}
    done = subprocess.run(
        [sys.executable, "-P", "-m", "aiflow.adapters.agents.acp.client"],
        input=json.dumps(order).encode(),
        cwd=scene.cwd,
        env={name: os.environ[name] for name in ("PATH", "HOME")},
        capture_output=True,
        check=True,
    )
    assert json.loads(done.stdout)["event"] == "not_started"
    assert done.stderr == b""
