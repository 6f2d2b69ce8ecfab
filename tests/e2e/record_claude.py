"""Record what the real `claude` says in each trouble, as fixtures for the tests of its reader.

    cd tests && ../.venv/bin/python -m e2e.record_claude [NAME…]

Each is written to `fixtures/agents/claude-code/NAME.jsonl` and, if the program said anything there, `NAME.stderr`; what is
of this machine or of the moment (paths, ids, times, ports) is replaced, so that recording again changes little.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from aiflow.adapters.agents.claude.arguments import ClaudeTerms, arguments
from aiflow.adapters.agents.claude.environment import VARIABLES
from aiflow.domain.agents.answers import Role
from e2e.model_server import ModelServer
from e2e.model_turns import Cut, Garble, Hang, Refuse, Say, Script, Shell, Trouble, Write, done, in_order, plan
from e2e.real_agents import STUB_KEY, RealHome

FOLDER = Path(__file__).parents[1] / "fixtures/agents/claude-code"
LOST = "11111111-2222-4333-8444-555555555555"
RESET = 1893456000
_FREE = ClaudeTerms(Role.IMPLEMENTER)


@dataclass(frozen=True)
class Scene:
    """One call: what the model answers, what the call is allowed, and how it is disturbed."""

    script: Script
    terms: ClaudeTerms = _FREE
    argv: tuple[str, ...] = ()
    signal: int = 0
    set_up: Callable[[RealHome], object] = lambda _: None


def _always(trouble: Trouble, *, in_stream: bool = False) -> Script:
    return lambda _: Refuse(trouble, 1, in_stream=in_stream)


def _log_out(home: RealHome) -> None:
    home.write(".claude/settings.json", "{}")


_OUTSIDE = "../outside.txt"

SCENES: Mapping[str, Scene] = {
    "done": Scene(in_order(Say("I look first."), done())),
    "worked": Scene(
        in_order(Shell("printf 'made\\n' > made.txt; echo made it"), Write("b.txt", "b\n"), done("Made two"))
    ),
    "planned": Scene(in_order(plan("S01", targets={"paths": []})), ClaudeTerms(Role.PLANNER)),
    "denied": Scene(in_order(Write(_OUTSIDE, "x"), done())),
    "no_tool": Scene(in_order(Shell("echo x > x.txt"), plan("S01", targets={"paths": []})), ClaudeTerms(Role.PLANNER)),
    "rate_limit": Scene(_always(Trouble.RATE_LIMIT)),
    "rate_limit_in_stream": Scene(_always(Trouble.RATE_LIMIT, in_stream=True)),
    "quota": Scene(_always(Trouble.QUOTA), set_up=RealHome.subscribe_claude),
    "overloaded": Scene(_always(Trouble.OVERLOADED)),
    "server_error": Scene(_always(Trouble.SERVER_ERROR)),
    "unauthorized": Scene(_always(Trouble.UNAUTHORIZED)),
    "login_expired": Scene(_always(Trouble.UNAUTHORIZED), set_up=RealHome.subscribe_claude),
    "logged_out": Scene(_always(Trouble.UNAUTHORIZED), set_up=_log_out),
    "forbidden": Scene(_always(Trouble.FORBIDDEN)),
    "billing": Scene(_always(Trouble.BILLING)),
    "bad_request": Scene(_always(Trouble.BAD_REQUEST)),
    "cut": Scene(lambda _: Cut(Say("Half of it and then nothing. " * 9))),
    "garbled": Scene(lambda _: Garble(done())),
    "max_turns": Scene(lambda _: Shell("true"), ClaudeTerms(Role.IMPLEMENTER, max_turns=2)),
    "budget": Scene(lambda _: Shell("true"), ClaudeTerms(Role.IMPLEMENTER, cost_usd=0.001)),
    "schema_violated": Scene(lambda _: plan("S01")),
    "only_words": Scene(lambda _: Say("I have done it all.")),
    "session_lost": Scene(lambda _: done(), ClaudeTerms(Role.IMPLEMENTER, session_id=LOST)),
    "session_not_one": Scene(lambda _: done(), ClaudeTerms(Role.IMPLEMENTER, session_id="no session")),
    "bad_flag": Scene(lambda _: done(), argv=("--no-such-flag",)),
    "interrupted": Scene(lambda _: Hang(Say("Working on it. " * 9)), signal=signal.SIGINT),
    "terminated": Scene(lambda _: Hang(Say("Working on it. " * 9)), signal=signal.SIGTERM),
    "killed": Scene(in_order(Shell("echo one"), Hang(Say("Working on it. " * 9))), signal=signal.SIGKILL),
}


def main() -> None:
    """Record what is named, or everything."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[1:] or SCENES:
        with tempfile.TemporaryDirectory() as folder:
            output, errors, code = record(SCENES[name], Path(folder))
        (FOLDER / f"{name}.jsonl").write_text(output)
        (FOLDER / f"{name}.stderr").unlink(missing_ok=True)
        if errors.strip():
            (FOLDER / f"{name}.stderr").write_text(errors)
        print(f"{name}: exit code {code}, {len(output.splitlines())} lines")


def record(scene: Scene, folder: Path) -> tuple[str, str, int]:
    """Make a call; return its scrubbed output and errors, and the exit code."""
    cwd = folder / "work"
    cwd.mkdir()
    with ModelServer(scene.script) as models:
        home = RealHome(folder / "home", models.url, "claude")
        scene.set_up(home)
        tmp = folder / "tmp"
        tmp.mkdir()
        process = subprocess.Popen(
            ["claude", *arguments(scene.terms), *scene.argv],
            cwd=cwd,
            env={**home.environ, **VARIABLES, "TMPDIR": str(tmp), "TZ": "UTC"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            executable=str(home.bin / "claude"),
            text=True,
        )
        if scene.signal:
            assert process.stdin is not None
            process.stdin.write("Do it, implementer\n")
            process.stdin.close()
            process.stdin = None
            while not models.turns or (models.turns[-1].results == () and scene.signal == signal.SIGKILL):
                time.sleep(0.05)
            time.sleep(0.5)
            process.send_signal(scene.signal)
        output, errors = process.communicate(None if scene.signal else "Do it, implementer\n", timeout=60)
    return scrub(output, folder), scrub(errors, folder), process.returncode


def scrub(text: str, folder: Path) -> str:
    """Replace what is of this machine or of the moment."""
    assert STUB_KEY not in text
    text = text.replace(str(folder / "home"), "/home/ada").replace(str(folder), "/state")
    text = text.replace(str(folder).replace("/", "-"), "-state")
    for pattern, instead in _SCRUBBED:
        text = pattern.sub(instead, text)
    ids: dict[str, str] = {}
    return _ID.sub(lambda found: ids.setdefault(found[0], _new_id(found[0], len(ids))), text)


def _new_id(old: str, number: int) -> str:
    if old == LOST:
        return old
    head, underscore, _ = old.partition("_")
    return f"{head}_{number:024d}" if underscore else f"00000000-0000-4000-8000-{number:012d}"


_ID = re.compile(r"\b(?:msg|toolu)_[0-9a-f]{24}\b|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
_SCRUBBED = (
    (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1:1"),
    (re.compile(r"/(\d+)\.sock\b"), "/1.sock"),
    (re.compile(r'("resetsAt":)\d+'), rf"\g<1>{RESET}"),
    (re.compile(r"resets [^\"\\]*?\(UTC\)"), "resets 12am (UTC)"),
    (re.compile(r'("timestamp":")[^"]*'), r"\g<1>2026-11-16T00:00:00.000Z"),
    (re.compile(r'("(?:\w+_ms|retry_delay_ms)":)\d+(?:\.\d+)?'), r"\g<1>1"),
)


if __name__ == "__main__":
    main()
