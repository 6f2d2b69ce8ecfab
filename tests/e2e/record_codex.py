"""Records what the real codex says in each case, as fixtures for the tests of its reader.

    PYTHONPATH=tests .venv/bin/python -m e2e.record_codex [NAME…]

Each case gives `tests/fixtures/agents/codex/NAME.jsonl` and, where codex wrote errors, `NAME.stderr`: byte for byte
but for paths, ports, ids and times of the machine they were recorded on.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from aiflow.adapters.agents.call.command import Launch, Surroundings
from aiflow.adapters.agents.codex.agent import CodexDriver
from aiflow.adapters.processes.environment import minimal
from aiflow.adapters.processes.launch import GuardedProcesses
from aiflow.adapters.secrets import Masker
from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.call import AgentCall, Brief
from e2e.model_server import ModelServer
from e2e.model_turns import (
    Answer,
    Cut,
    Garble,
    Hang,
    Refuse,
    Say,
    Script,
    Shell,
    Trouble,
    UseTool,
    Write,
    done,
    in_order,
    plan,
)
from e2e.real_agents import RealHome

FOLDER = Path(__file__).parents[1] / "fixtures/agents/codex"
THREAD = "00000000-0000-7000-8000-000000000001"


@dataclass(frozen=True)
class Case:
    """What the model answers, and what else is so."""

    script: Script
    role: Role = Role.IMPLEMENTER
    session: str | None = None
    is_continued: bool = False
    seconds: float | None = None
    prepare: Callable[[RealHome], object] = lambda _: None


def _always(reply: Refuse | Cut | Garble | Hang) -> Case:
    return Case(lambda _: reply)


def _no_key(home: RealHome) -> None:
    config = home.folder / ".codex/config.toml"
    config.write_text(config.read_text().replace("requires_openai_auth = true", 'env_key = "MY_MODEL_KEY"'))


def _bad_settings(home: RealHome) -> None:
    config = home.folder / ".codex/config.toml"
    config.write_text(f"model_reasoning_effort = 7\n{config.read_text()}")


_ESCALATED = {"cmd": "id", "sandbox_permissions": "require_escalated", "justification": "please"}
CASES = {
    "done": Case(in_order(Shell("echo hi > a.txt; cat a.txt"), Write("b.txt", "b\n"), Shell("ls nowhere"), done())),
    "planned": Case(in_order(Shell("ls"), plan()), Role.PLANNER),
    "resumed": Case(in_order(Shell("true"), Say("half"), done()), is_continued=True),
    "wrong_shape": Case(in_order(Answer({"state": "finished"}))),
    "words_only": Case(in_order(Say("I have done it."))),
    "refused": Case(
        in_order(Write("../out.txt", "x\n"), UseTool("exec_command", _ESCALATED), Shell("rm -rf x"), Say("I may not."))
    ),
    "refused_but_done": Case(in_order(Write("a.txt", "x\n"), plan()), Role.PLANNER),
    "rate_limit": _always(Refuse(Trouble.RATE_LIMIT)),
    "rate_limit_in_stream": _always(Refuse(Trouble.RATE_LIMIT, 3, in_stream=True)),
    "plan_used_up": _always(Refuse(Trouble.QUOTA, 90_000)),
    "billing": _always(Refuse(Trouble.BILLING)),
    "unauthorized": _always(Refuse(Trouble.UNAUTHORIZED)),
    "forbidden": _always(Refuse(Trouble.FORBIDDEN)),
    "server_error": _always(Refuse(Trouble.SERVER_ERROR)),
    "overloaded": _always(Refuse(Trouble.OVERLOADED)),
    "bad_request": _always(Refuse(Trouble.BAD_REQUEST)),
    "too_long": _always(Refuse(Trouble.TOO_LONG, in_stream=True)),
    "cut": _always(Cut()),
    "garbled": _always(Garble()),
    "killed": replace(_always(Hang()), seconds=2.0),
    "thread_lost": Case(in_order(), session=f"{THREAD}+0,0,0"),
    "missing_variable": Case(in_order(), prepare=_no_key),
    "bad_settings": Case(in_order(), prepare=_bad_settings),
}


def main(names: list[str]) -> None:
    """Record the named cases, or all."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in names or CASES:
        with tempfile.TemporaryDirectory() as folder:
            said, errors = record(CASES[name], Path(folder))
        for suffix, data in (("jsonl", said), ("stderr", errors)):
            path = FOLDER / f"{name}.{suffix}"
            path.write_bytes(data)
            if not data:
                path.unlink()
        print(name, len(said), len(errors))


def record(case: Case, folder: Path) -> tuple[bytes, bytes]:
    """Run codex as aiflow does, and return what it wrote."""
    work, scratch = folder / "work", folder / "scratch"
    work.mkdir()
    scratch.mkdir()
    with ModelServer(case.script) as models:
        home = RealHome(folder / "home", models.url, "codex")
        case.prepare(home)
        masker = Masker({})
        around = Surroundings(
            str(work), str(scratch), str(scratch), home.environ, GuardedProcesses(str(folder / "guards")), masker
        )
        driver = CodexDriver(Launch((), 60, 60), around)
        brief = Brief("RQ-1", "A request", "Do it.", "P1", ())
        call = AgentCall(case.role, brief, "RUN-1", str(work), None, (), 1, session_id=case.session)
        said, errors = _run(driver, call, home, scratch, case.seconds)
        if case.is_continued:
            events = driver.events(call)
            for line in said.splitlines():
                events.read(line)
            said, errors = _run(driver, replace(call, session_id=events.told.session_id), home, scratch, None)
        return _scrub(said, folder, models.port), _scrub(errors, folder, models.port)


def _run(
    driver: CodexDriver, call: AgentCall, home: RealHome, scratch: Path, seconds: float | None
) -> tuple[bytes, bytes]:
    start = driver.start(call, str(scratch))
    environ = minimal(home.environ, start.env_names, {"TMPDIR": str(scratch)})
    process = subprocess.Popen(
        start.argv, cwd=call.cwd, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        return process.communicate(start.stdin, timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()


def _scrub(data: bytes, folder: Path, port: int) -> bytes:
    for path in {str(folder), os.path.realpath(folder)}:
        data = data.replace(path.encode(), b"/home/user")
    data = data.replace(f"127.0.0.1:{port}".encode(), b"127.0.0.1:8080")
    data = re.sub(rb"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", THREAD.encode(), data)
    data = re.sub(rb"\d{4}-\d\d-\d\dT[\d:.]+Z", b"2026-01-02T03:04:05.678901Z", data)
    return re.sub(rb"at [A-Z][a-z]{2} \d+[a-z]{2}, \d{4} \d+:\d\d [AP]M", b"at Jan 3rd, 2026 4:05 AM", data)


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        main(sys.argv[1:])
