"""The model server and the real programs understand each other: what every test of a real agent builds on."""

from __future__ import annotations

import contextlib
import http.client
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from e2e.model_server import ModelServer
from e2e.model_turns import (
    Answer,
    Asked,
    Cut,
    Edit,
    Garble,
    Hang,
    Read,
    Refuse,
    Reply,
    Say,
    Shell,
    Slow,
    Trouble,
    Write,
    at_first,
    done,
    in_order,
    plan,
    story,
    verdict,
)
from e2e.real_agents import STUB_KEY, RealHome, processes_left

TURNS: tuple[Reply, ...] = (
    Shell("printf 'made\\n' > made.txt"),
    Write("notes.txt", "one\ntwo\n"),
    Read("notes.txt"),
    Edit("notes.txt", "two", "three"),
    Answer({"status": "done", "summary": "all of it"}),
)
PROPERTIES = {"status": {"type": "string"}, "summary": {"type": "string"}}
SCHEMA = {"type": "object", "properties": PROPERTIES, "required": [*PROPERTIES], "additionalProperties": False}
ALLOWED = "Bash,Write,Read,Edit"


def claude(schema: str) -> list[str]:
    return [
        *("claude", "-p", "--output-format", "json", "--permission-mode", "dontAsk", "--max-turns", "9"),
        *("--allowedTools", ALLOWED, "--json-schema", schema),
    ]


def call(home: RealHome, cwd: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv,
        cwd=cwd,
        env=home.environ,
        input="Do it, implementer\n",
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def check(models: ModelServer, home: RealHome, cwd: Path) -> None:
    """What holds whichever program asked."""
    assert (cwd / "made.txt").read_text() == "made\n"
    assert (cwd / "notes.txt").read_text() == "one\nthree\n"
    assert [len(asked.results) for asked in models.turns] == [0, 1, 2, 3, 4]
    assert {asked.role for asked in models.turns} == {"implementer"}
    assert {asked.folder for asked in models.turns} == {str(cwd)}
    assert all("Do it, implementer" in asked.prompt and asked.keys for asked in models.turns)
    assert STUB_KEY not in repr(models.asked)
    assert processes_left(str(home.folder)) == []


def test_claude_does_what_the_script_says(models: ModelServer, real_home: RealHome, repository: Path) -> None:
    real_home.install("claude")
    models.script = story(implementer=TURNS)
    answered = call(real_home, repository, *claude(json.dumps(SCHEMA)))
    assert json.loads(answered.stdout)["structured_output"] == {"status": "done", "summary": "all of it"}
    check(models, real_home, repository)


def test_codex_does_what_the_script_says(models: ModelServer, real_home: RealHome, repository: Path) -> None:
    real_home.install("codex")
    models.script = story(implementer=TURNS)
    schema = real_home.write("schema.json", json.dumps(SCHEMA))
    options = ("--json", "-c", 'sandbox_mode="workspace-write"', "--output-schema", str(schema), "-")
    answered = call(real_home, repository, "codex", "exec", *options)
    events = [json.loads(line) for line in answered.stdout.splitlines()]
    assert json.loads(events[-2]["item"]["text"]) == {"status": "done", "summary": "all of it"}
    assert events[-1]["type"] == "turn.completed"
    check(models, real_home, repository)


@pytest.mark.faults
@pytest.mark.soak
def test_opencode_does_what_the_script_says(models: ModelServer, real_home: RealHome, repository: Path) -> None:
    real_home.install("opencode")
    models.script = story(implementer=TURNS)
    answered = call(real_home, repository, "opencode", "run", "--format", "json", "Do it, implementer")
    texts = [
        event["part"]["text"] for event in map(json.loads, answered.stdout.splitlines()) if event["type"] == "text"
    ]
    assert json.loads(texts[-1]) == {"status": "done", "summary": "all of it"}
    check(models, real_home, repository)


def ask(models: ModelServer, prompt: str = "Be the planner", seconds: float = 5.0, **more: Any) -> tuple[int, str]:
    """Ask as a program does, but by hand: the status and what came."""
    tools = [{"type": "function", "name": "exec_command"}]
    body = {"model": "m", "stream": True, "tools": tools, "input": [{"role": "user", "content": prompt}], **more}
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", models.port, timeout=seconds)) as connection:
        connection.request("POST", "/v1/responses", json.dumps(body), {"Authorization": f"Bearer {STUB_KEY}"})
        with connection.getresponse() as answer:
            return answer.status, answer.read().decode(errors="replace")


def said(answer: tuple[int, str]) -> Any:
    """The item that was answered."""
    events = [json.loads(line[6:]) for line in answer[1].splitlines() if line.startswith("data: ")]
    assert events[-1]["type"] == "response.completed"
    return events[-1]["response"]["output"][0]


@pytest.mark.parametrize(
    ("trouble", "status", "word"),
    [
        (Trouble.RATE_LIMIT, 429, "rate_limit_exceeded"),
        (Trouble.QUOTA, 429, "usage_limit_reached"),
        (Trouble.UNAUTHORIZED, 401, "invalid_api_key"),
        (Trouble.FORBIDDEN, 403, "access"),
        (Trouble.BILLING, 429, "insufficient_quota"),
        (Trouble.SERVER_ERROR, 500, "server_error"),
        (Trouble.OVERLOADED, 503, "overloaded"),
        (Trouble.BAD_REQUEST, 400, "Invalid"),
        (Trouble.TOO_LONG, 400, "context_length_exceeded"),
    ],
)
def test_every_trouble_has_its_status(models: ModelServer, trouble: Trouble, status: int, word: str) -> None:
    models.script = in_order(Refuse(trouble), Refuse(trouble, in_stream=True))
    refused, failed = ask(models), ask(models)
    assert (refused[0], failed[0]) == (status, 200)
    assert word in refused[1]
    assert word in failed[1]


def test_a_stream_is_cut_garbled_slow_or_hangs(models: ModelServer) -> None:
    models.script = in_order(Cut(), Garble(Say("hello")), Slow(Say("late"), 0.2), Hang(Say("never")), Hang())
    with pytest.raises(http.client.IncompleteRead):
        ask(models)
    garbled = ask(models)[1]
    assert "no event" in garbled
    assert "hello" in garbled
    assert said(ask(models))["content"][0]["text"] == "late"
    for _ in range(2):
        with pytest.raises(TimeoutError):
            ask(models, seconds=0.2)


def test_a_role_is_seen_in_the_schema_or_in_the_prompt(models: ModelServer) -> None:
    models.script = story(planner=[plan("S01")], implementer=[done()], qa=[verdict("too long")])
    assert "S01" in said(ask(models))["content"][0]["text"]
    schema = {"type": "object", "properties": {"verdict": {"type": "string"}}}
    judged = ask(models, "Be the planner", text={"format": {"type": "json_schema", "schema": schema}})
    assert "too long" in said(judged)["content"][0]["text"]
    assert [asked.role for asked in models.turns] == ["planner", "qa"]


def test_a_program_that_asks_again_gets_the_same_turn(models: ModelServer) -> None:
    models.script = at_first([Refuse(Trouble.SERVER_ERROR)], story(planner=[Shell("true"), plan()]))
    assert ask(models)[0] == 500
    assert [said(ask(models))["name"] for _ in range(2)] == ["exec_command"] * 2
    assert len(models.prompts) == 1


def test_questions_of_the_programs_own_do_not_reach_the_script(models: ModelServer) -> None:
    def refuse(_: Asked) -> Reply:
        raise AssertionError

    models.script = refuse
    assert said(ask(models, "Find a title", tools=[]))["content"][0]["text"] == "A title"
    assert models.turns == []
    assert len(models.asked) == 1
