"""Scripted programs that speak the Agent Client Protocol: each does what a table says, and writes down what it was told.

For what no real program can be made to do, and for tests that shall be quick; the real one is opencode.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

# What it does at a request is a piece of Python, run in its worktree with these words at hand.
_PROGRAM = """#!{python} -IS
import json, os, sys, time

number = 0


class Late:
    \"\"\"A module that is imported when it is used: most scripts use none of these.\"\"\"

    def __init__(self, name):
        self.name = name

    def __getattr__(self, word):
        return getattr(__import__(self.name), word)


pathlib, signal, subprocess = map(Late, ("pathlib", "signal", "subprocess"))


class Place(str):
    \"\"\"A path, as `pathlib` has it, which is imported for more than joining only.\"\"\"

    def __truediv__(self, name):
        return Place(os.path.join(self, name))

    def __getattr__(self, word):
        return getattr(pathlib.Path(self), word)


HERE = Place({folder!r})


def read(name):
    with open(HERE / name, encoding="utf-8") as file:
        return file.read()


def send(**message):
    print(json.dumps({{"jsonrpc": "2.0", **message}}), flush=True)


def receive():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    message = json.loads(line)
    with open(HERE / "heard.jsonl", "a") as file:
        file.write(json.dumps(message | {{"pid": os.getpid(), "environ": dict(os.environ)}}) + "\\n")
    return message


def ask(method, **params):
    \"\"\"Ask the client something, and return its result, or its error.\"\"\"
    global number
    number += 1
    send(id=f"own-{{number}}", method=method, params={{"sessionId": session, **params}})
    while True:
        message = receive()
        if message.get("id") == f"own-{{number}}":
            return message.get("result", message.get("error"))
        if message.get("method") == "session/cancel":
            stop("cancelled")


def update(which, **more):
    send(method="session/update", params={{"sessionId": session, "update": {{"sessionUpdate": which, **more}}}})


def say(text, **more):
    update("agent_message_chunk", content={{"type": "text", "text": text}}, **more)


def tool(title, kind="execute", status="completed", text="", **more):
    global number
    number += 1
    content = [{{"type": "content", "content": {{"type": "text", "text": text}}}}]
    update("tool_call", toolCallId=str(number), title="tool", kind=kind, status="pending")
    update("tool_call_update", toolCallId=str(number), title=title, status=status, content=content, **more)


OPTIONS = [
    {{"optionId": "once", "kind": "allow_once", "name": "Allow once"}},
    {{"optionId": "always", "kind": "allow_always", "name": "Always allow"}},
    {{"optionId": "no", "kind": "reject_once", "name": "Reject"}},
]


def may(title, kind="execute", options=OPTIONS, **more):
    \"\"\"Ask for a permission; return the option that was chosen, or None.\"\"\"
    call = {{"toolCallId": "t", "title": title, "kind": kind, "status": "pending", **more}}
    outcome = ask("session/request_permission", toolCall=call, options=options)["outcome"]
    return outcome.get("optionId")


def write(path, text):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def answer(value):
    say(json.dumps(value))
    stop()


def done(summary="It is done"):
    answer({{"status": "done", "summary": summary}})


class Stop(Exception):
    pass


def stop(reason="end_turn", **more):
    send(id=current, result={{"stopReason": reason, **more}})
    raise Stop


def fail(code, message, data=None):
    send(id=current, error={{"code": code, "message": message, "data": data}})
    raise Stop


def reply(**result):
    send(id=current, result=result)
    raise Stop


session = "session-1"
while True:
    message = receive()
    current, method, params = message.get("id"), message.get("method"), message.get("params") or {{}}
    if current is None:
        continue
    session = params.get("sessionId", session)
    table = json.loads(read("table.json"))
    texts = [part.get("text", "") for part in params.get("prompt", [])]
    prompt = texts[0] if texts else ""
    found = {{name: prompt.find(name) for name in ("planner", "implementer", "qa", "reviewer")}}
    role = min((name for name in found if found[name] >= 0), key=found.get, default="").replace("reviewer", "qa")
    if method == "session/prompt" and prompt.startswith("You are still"):
        role = read(session)
    elif role:
        write(HERE / session, role)
    name = role if method == "session/prompt" else method
    try:
        exec(table[name])
        stop()
    except Stop:
        pass
"""

_IMPLEMENT = 'write("made.txt", "made\\n"); tool("write made.txt", "edit"); done()'
_REVIEW = 'answer({"verdict": "pass", "findings": []})'
_HELLO = """reply(protocolVersion=1, agentInfo={"name": "scripted", "version": "1"},
    agentCapabilities={"loadSession": True},
    authMethods=[{"id": "log-in", "name": "Log in", "description": "Run `scripted login`"}])"""
_PLAN = {"steps": [{"id": "S01", "title": "Do S01", "instructions": "Write made.txt"}]}
_NEW = 'reply(sessionId=f"session-{os.getpid()}")'


class AcpAgent:
    """One such program; without further rules it plans one step, writes a file in it, and passes it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "acp-agent.py"
        folder.mkdir(parents=True, exist_ok=True)
        self.path.write_text(_PROGRAM.format(python=sys.executable, folder=str(folder)))
        self.path.chmod(0o755)
        self._table = {
            "initialize": _HELLO,
            "session/new": _NEW,
            "session/load": "reply()",
            "session/set_mode": "reply()",
            "session/set_model": "reply()",
            "session/set_config_option": "reply(configOptions=[])",
            "planner": f"answer(json.loads({json.dumps(_PLAN)!r}))",
            "implementer": _IMPLEMENT,
            "qa": _REVIEW,
        }
        self._save()

    def does(self, what: str, code: str) -> None:
        """Let it do this in a role, or at a method."""
        self._table[what] = code
        self._save()

    def code(self, what: str) -> str:
        """What it does by now."""
        return self._table[what]

    def _save(self) -> None:
        (self.folder / "table.json").write_text(json.dumps(self._table))

    @property
    def heard(self) -> list[dict[str, Any]]:
        """Everything the client sent, oldest first."""
        path = self.folder / "heard.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def requests(self, method: str) -> list[dict[str, Any]]:
        """The parameters of the client's requests of one method."""
        return [message.get("params", {}) for message in self.heard if message.get("method") == method]
