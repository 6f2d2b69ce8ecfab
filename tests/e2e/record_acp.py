"""Record what our ACP client tells of the real `opencode` in each trouble, as fixtures for the tests of its reader.

    cd tests && ../.venv/bin/python -m e2e.record_acp [NAME…]

Each is written to `fixtures/agents/acp/NAME.jsonl`; what is of this machine or of the moment (paths, ids, times, ports)
is replaced, so that recording again changes little. Those whose name begins with `gemini_` were recorded by hand, with
the real `gemini --acp` 0.61.0 in the place of opencode.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiflow.adapters.agents.acp.driver import CLIENT
from aiflow.adapters.agents.acp.programs import known
from e2e.model_server import ModelServer
from e2e.model_turns import Cut, Garble, Hang, Refuse, Say, Script, Shell, Trouble, Write, done, in_order, plan
from e2e.real_agents import STUB_KEY, RealHome

FOLDER = Path(__file__).parents[1] / "fixtures/agents/acp"
ARGV = ("opencode", "acp")
ASKING = '{"permission": {"edit": "ask", "bash": "ask", "external_directory": "ask"}}'


@dataclass(frozen=True)
class Scene:
    """One call: what the model answers, and how the call differs from a plain one of the implementer."""

    script: Script
    order: Mapping[str, Any] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    is_killed: bool = False


def _always(trouble: Trouble, seconds: int = 1) -> Script:
    return lambda _: Refuse(trouble, seconds)


_ASKS = {"OPENCODE_CONFIG_CONTENT": ASKING}
_MAKES = Shell("printf 'made\\n' > made.txt; echo made it")

SCENES: Mapping[str, Scene] = {
    "done": Scene(in_order(done())),
    "worked": Scene(in_order(_MAKES, Write("b.txt", "b\n"), done("Made two"))),
    "planned": Scene(in_order(plan("S01", targets={"paths": []})), {"role": "planner"}),
    "allowed": Scene(in_order(_MAKES, Write("b.txt", "b\n"), done()), {}, _ASKS),
    "refused": Scene(in_order(_MAKES, done()), {"permissions": "deny"}, _ASKS),
    "asked": Scene(in_order(_MAKES, done()), {"permissions": "ask"}, _ASKS),
    "answered": Scene(
        in_order(_MAKES, done()),
        {"permissions": "ask", "answers": [["execute: printf 'made\\n' > made.txt; echo made it", "Allow once"]]},
        _ASKS,
    ),
    "rate_limit": Scene(_always(Trouble.RATE_LIMIT)),
    "silent_limit": Scene(_always(Trouble.RATE_LIMIT, 3600), {"patience_seconds": 3.0}),
    "quota": Scene(_always(Trouble.QUOTA), {"patience_seconds": 3.0}),
    "overloaded": Scene(_always(Trouble.OVERLOADED), {"patience_seconds": 3.0}),
    "server_error": Scene(_always(Trouble.SERVER_ERROR)),
    "unauthorized": Scene(_always(Trouble.UNAUTHORIZED)),
    "forbidden": Scene(_always(Trouble.FORBIDDEN)),
    "billing": Scene(_always(Trouble.BILLING)),
    "bad_request": Scene(_always(Trouble.BAD_REQUEST)),
    "cut": Scene(lambda _: Cut(Say("Half of it and then nothing. " * 9))),
    "garbled": Scene(lambda _: Garble(done())),
    "only_words": Scene(lambda _: Say("I have done it all.")),
    "session_lost": Scene(lambda _: done(), {"session_id": "ses_lost"}),
    "no_such_model": Scene(lambda _: done(), {"model": "stub/none"}),
    "no_such_program": Scene(lambda _: done(), {"argv": ["no-such-program"]}),
    "killed": Scene(in_order(_MAKES, Hang(Say("Working on it. " * 9))), is_killed=True),
}


def main() -> None:
    """Record what is named, or everything."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[1:] or SCENES:
        with tempfile.TemporaryDirectory() as folder:
            began = time.monotonic()
            output = record(SCENES[name], Path(folder))
        (FOLDER / f"{name}.jsonl").write_text(output)
        print(f"{name}: {len(output.splitlines())} lines, {time.monotonic() - began:.0f} s", flush=True)


def record(scene: Scene, folder: Path) -> str:
    """Make a call; return its scrubbed events."""
    cwd = folder / "work"
    cwd.mkdir()
    role = scene.order.get("role", "implementer")
    order = {
        "argv": list(ARGV),
        "cwd": str(cwd),
        "role": role,
        "prompt": f"Do it, {role}",
        "session_id": None,
        "model": "",
        "mode": "",
        "permissions": "auto",
        "answers": [],
        "folders": [],
        "own": [],
        "is_confined": False,
        "patience_seconds": 60.0,
        **scene.order,
    }
    with ModelServer(scene.script) as models:
        home = RealHome(folder / "home", models.url, "opencode")
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", CLIENT],
            cwd=cwd,
            env={
                **home.environ,
                **known(ARGV).variables_for(scene.variables),
                **scene.variables,
                "OPENCODE_DISABLE_MODELS_FETCH": "1",
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdin is not None
        process.stdin.write(json.dumps(order))
        process.stdin.close()
        process.stdin = None
        if scene.is_killed:
            while len(models.turns) < 2:
                time.sleep(0.05)
            time.sleep(1.0)
            subprocess.run(["pkill", "-KILL", "-P", str(process.pid)], check=True)
        output, errors = process.communicate(timeout=300)
    assert (process.returncode, errors) == (0, "")
    return scrub(output, folder)


def scrub(text: str, folder: Path) -> str:
    """Replace what is of this machine or of the moment."""
    assert STUB_KEY not in text
    text = text.replace(str(folder / "home"), "/home/ada").replace(str(folder / "work"), "/work")
    text = text.replace(str(folder), "/state").replace(str(folder)[1:], "state")
    for pattern, instead in _SCRUBBED:
        text = pattern.sub(instead, text)
    ids: dict[str, str] = {}
    text = _ID.sub(lambda found: ids.setdefault(found[0], f"{found[1]}_{len(ids):08d}"), text)
    return "".join(f"{json.dumps(_shorter(json.loads(line)))}\n" for line in text.splitlines())


def _shorter(event: Any) -> Any:
    """Cut long texts, such as stack traces and lists of models, which change with every version."""
    if isinstance(event, dict):
        return {key: _shorter(value) for key, value in event.items()}
    if isinstance(event, list):
        return [_shorter(one) for one in event]
    if isinstance(event, str) and len(event) > 700:
        return f"{event[:700]}…"
    return event


_ID = re.compile(r"\b(ses|msg|call|prt|toolu)_(?!lost)[0-9A-Za-z]+")
_SCRUBBED = (
    (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1:1"),
    (re.compile(r"timestamp=\S+"), "timestamp=2026-11-16T00:00:00.000Z"),
    (re.compile(r"\brun=[0-9a-f]{8}\b"), "run=00000000"),
    (re.compile(r"chunk-\w+\.js:\d+:\d+"), "chunk.js:1:1"),
)


if __name__ == "__main__":
    main()
