"""Agents in their fence (AGT-4, SEC): the user's own programs and the real ones, and what they cannot write."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import without_landlock
from aiflow.adapters.agents.call.command import Launch, Surroundings
from aiflow.adapters.agents.call.fence import raise_fence
from aiflow.adapters.agents.call.own_folders import own_folders
from aiflow.adapters.agents.call.scratch import scratch_folder
from aiflow.adapters.processes import confine
from aiflow.adapters.processes.environment import minimal
from aiflow.adapters.processes.launch import GuardedProcesses
from aiflow.adapters.secrets import Masker
from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.call import AgentCall, Brief
from aiflow.domain.programs import Ended, Program
from e2e.bench import Bench, tree_of
from e2e.leaks import leaks
from e2e.model_server import ModelServer
from e2e.model_turns import Edit, Read, Reply, Say, Shell, Write, in_order
from e2e.real_agents import STUB_KEY, RealHome, processes_left

needs_landlock = pytest.mark.skipif(not confine.is_available(), reason="this kernel has no Landlock")

# Tries to write somewhere, and says in the log what came of it.
_TRY = """
def attempt(path):
    try:
        write(path, 'x')
    except OSError as error:
        print('refused', path, type(error).__name__)
    else:
        print('wrote', path)
"""


# The user's own program, where a sandbox is required


@needs_landlock
@pytest.mark.spec("AGT-4", "SEC")
def test_a_program_of_the_users_is_confined_where_that_is_required(bench: Bench) -> None:
    bench.configure(agent=f'sandbox = "required"\nwritable = ["{bench.agent.folder}"]')
    bench.commit()
    attempts = "attempt(ROOT / 'app.txt'); attempt('mine.txt'); attempt(os.environ['TMPDIR'] + '/t')\n"
    bench.agent.does("planner", _TRY + attempts + "answer({'steps': [{'id': 'S01', 'title': 'T'}]})")
    bench.agent.does("implementer", _TRY + attempts + "print(os.path.dirname(os.environ['TMPDIR'])); done()")
    bench.agent.does("qa", _TRY + attempts + "answer({'verdict': 'pass', 'findings': []})")
    assert bench.run()["state"] == "DONE"
    assert (bench.root / "app.txt").read_text() == "app\n"
    planned, worked = bench.log(0), bench.log(1)
    for log, mine in ((planned, "refused"), (worked, "wrote")):
        assert f"refused {bench.root}/app.txt PermissionError" in log
        assert f"{mine} mine.txt" in log
        assert "wrote " in log
    assert "refused mine.txt" in worked  # by qa
    branch = bench.stage()["branch"]
    assert bench.git("show", f"{branch}:mine.txt") == "x"
    assert list((bench.state / "aiflow/calls").iterdir()) == []


@pytest.mark.spec("AGT-4")
def test_a_program_of_the_users_is_left_alone_otherwise(bench: Bench) -> None:
    bench.agent.does("implementer", "write(HERE / 'elsewhere', 'x'); write('mine.txt', 'x'); done()")
    assert bench.run()["state"] == "DONE"
    assert (bench.agent.folder / "elsewhere").read_text() == "x"


# A machine that confines nobody


def without(bench: Bench, *args: str, code: int | None = None) -> Any:
    """Call aiflow where the kernel has no Landlock."""
    argv = [sys.executable, without_landlock.__file__, sys.executable, "-m", "aiflow", *args, "--json"]
    done = subprocess.run(
        argv, cwd=bench.root, env=bench.aiflow.environ, capture_output=True, text=True, timeout=60, check=False
    )
    assert code in (None, done.returncode), done.stdout + done.stderr
    return json.loads(done.stdout)


def sandbox_check(found: Any) -> dict[str, Any]:
    checks = {check["id"]: check for check in found["checks"]}
    found_here: dict[str, Any] = checks.get("sandbox", {})
    return found_here


@needs_landlock
@pytest.mark.spec("DOC-1", "SEC")
def test_the_doctor_says_what_confines_agents_here(bench: Bench) -> None:
    assert sandbox_check(bench.aiflow.json("doctor")) == {}
    required = ("-c", "agent.sandbox=required")
    assert sandbox_check(bench.aiflow.json(*required, "doctor"))["message"] == (
        "Sandbox: landlock (planner, implementer, qa)"
    )
    off = sandbox_check(bench.aiflow.json("-c", "agent.sandbox=off", "doctor"))
    assert (off["result"], off["reason_code"], "off by agent.sandbox" in off["message"]) == ("WARN", None, True)

    assert sandbox_check(without(bench, "doctor", code=0)) == {}
    failed = sandbox_check(without(bench, *required, "doctor", code=3))
    assert (failed["result"], failed["reason_code"]) == ("FAIL", "AGENT_SANDBOX_MISSING")
    role = ("-c", "agent.roles.qa.kind=claude-code")
    warned = sandbox_check(without(bench, *role, "doctor"))  # whether claude is there or not
    assert (warned["result"], warned["reason_code"]) == ("WARN", None)


@needs_landlock
@pytest.mark.spec("DOC-1", "SEC")
def test_the_doctor_says_which_roles_are_confined_by_what(bench: Bench, tmp_path: Path) -> None:
    bench.aiflow.environ |= RealHome(tmp_path / "home", "http://127.0.0.1:9", "codex").environ
    roles = {"planner.kind": "codex", "implementer.sandbox": "off", "qa.sandbox": "required"}
    flags = [word for name, value in roles.items() for word in ("-c", f"agent.roles.{name}={value}")]
    checks = bench.aiflow.json(*flags, "doctor")["checks"]
    assert [(each["result"], each["message"]) for each in checks if each["id"] == "sandbox"] == [
        ("PASS", "Sandbox: landlock (qa)"),
        ("PASS", "Sandbox: the one built into codex (planner)"),
        ("WARN", "Sandbox: turned off by agent.sandbox (implementer): these agents can write wherever you can"),
    ]
    off = bench.aiflow.json("-c", "agent.kind=codex", "-c", "agent.sandbox=off", "doctor")
    assert "codex brings" not in json.dumps(off), "it has none then"


@needs_landlock
@pytest.mark.spec("SEC", "RUN-7")
def test_no_run_starts_without_a_sandbox_where_one_is_required(bench: Bench) -> None:
    refused = without(bench, "-c", "agent.sandbox=required", "run", "RQ-1", code=3)["error"]
    assert refused["reason_code"] == "AGENT_SANDBOX_MISSING"
    assert any("agent.sandbox" in action for action in refused["actions"])
    assert (bench.agent.calls, bench.run_ids(), bench.status()) == ([], [], "ready")
    assert without(bench, "run", "RQ-1", code=0)["state"] == "DONE"


# The real programs


class Call:
    """One call of a real program in its fence."""

    def __init__(self, home: RealHome, worktree: Path) -> None:
        self.home = home
        self.worktree = worktree
        self.run_id = f"RUN-{os.urandom(6).hex()}"
        self.processes = GuardedProcesses(str(home.folder.parent / "guards"))
        self.said, self.complained = bytearray(), bytearray()

    def __call__(self, *argv: str, role: Role = Role.IMPLEMENTER, **more: Any) -> Ended:
        environ = self.home.environ
        calls = str(self.home.folder / ".local/state/aiflow/calls")
        around = Surroundings(str(self.worktree), "/results", calls, environ, self.processes, Masker({}))
        call = AgentCall(role, Brief("RQ-1", "t", "b", "P1", ()), self.run_id, str(self.worktree), None, (), 1)
        self.said.clear()
        with scratch_folder(calls) as scratch:
            fence = raise_fence(call, scratch, own_folders(argv, environ), Launch(argv, 60, 60, **more), around)
            given = minimal(environ, (), fence.variables)
            program = Program(argv, str(self.worktree), given, self.run_id, 60, 60, b"Do it\n", fence.writable)
            return self.processes.run(program, self.said.extend, lambda: False, self.complained.extend)


CLAUDE = (
    *("claude", "-p", "--output-format", "json", "--permission-mode", "dontAsk", "--max-turns", "20"),
    *("--allowedTools", "Bash,Write,Read,Edit"),
)


@pytest.fixture
def call(real_home: RealHome, repository: Path) -> Call:
    return Call(real_home, repository)


@needs_landlock
@pytest.mark.spec("AGT-4", "SEC")
def test_claude_works_in_the_worktree_and_changes_nothing_else(models: ModelServer, call: Call, tmp_path: Path) -> None:
    home, outside = call.home, tmp_path / "outside"
    home.install("claude")
    outside.mkdir()
    (outside / "precious.txt").write_text("precious\n")
    (call.worktree / "out").symlink_to(outside)
    own = home.folder / ".claude"
    # From a file: of a command line claude itself guesses what it is about, and refuses some of it.
    escapes = f"""
        echo x > {outside}/precious.txt; rm -f {outside}/precious.txt; echo x > out/new; ln {outside}/precious.txt h
        echo '{{}}' > {own}/settings.json; mkdir {own}/commands; echo x > ~/.bashrc; echo x > /tmp/{call.run_id}
        echo x > $CLAUDE_CODE_SHELL_PREFIX; echo tried all
    """
    (call.worktree / "escape.sh").write_text(escapes)
    before = tree_of(outside), (own / "settings.json").read_bytes()
    turns: tuple[Reply, ...] = (
        Shell("echo made > made.txt; echo t > $TMPDIR/t && cat $TMPDIR/t; (sleep 0.1; echo late > late.txt) & wait"),
        Write("notes.txt", "one\ntwo\n"),
        Read("notes.txt"),
        Edit("notes.txt", "two", "three"),
        Shell("sh escape.sh"),
        Write(f"{outside}/written.txt", "x"),
        Write("out/through.txt", "x"),
        Say("done"),
    )
    models.script = in_order(*turns)
    assert call(*CLAUDE).exit_code == 0, (call.said, call.complained)
    result = json.loads(call.said)
    assert (result["is_error"], result["result"]) == (False, "done")
    tried = models.turns[-1].results[4]
    assert (tried.count("ermission denied"), "tried all" in tried) == (8, True), tried
    assert (call.worktree / "made.txt").read_text() == "made\n"
    assert (call.worktree / "late.txt").read_text() == "late\n"
    assert (call.worktree / "notes.txt").read_text() == "one\nthree\n"
    assert (tree_of(outside), (own / "settings.json").read_bytes()) == before
    assert not (own / "commands").exists()
    assert not (home.folder / ".bashrc").exists()
    assert not Path(f"/tmp/{call.run_id}").exists()
    assert not (call.worktree / "h").exists()
    assert processes_left(call.run_id) == []

    # What it keeps of a session can be gone on with.
    models.script = in_order(Say("again"))
    assert call(*CLAUDE, "--resume", result["session_id"]).exit_code == 0, call.complained
    assert json.loads(call.said)["result"] == "again"
    assert len(models.turns[-1].body["messages"]) > 10


@needs_landlock
@pytest.mark.spec("AGT-4", "SEC")
def test_claude_as_planner_or_reviewer_only_reads(models: ModelServer, call: Call) -> None:
    call.home.install("claude")
    (call.worktree / "app.txt").write_text("app\n")
    change = (
        "cat app.txt; git status; echo x > app.txt; rm -f app.txt; touch new; sed -i s/a/b/ app.txt; echo tried all\n"
    )
    (call.worktree / "change.sh").write_text(change)
    before = tree_of(call.worktree)
    turns = (
        Shell("sh change.sh"),
        Write("new.txt", "x"),
        Read("app.txt"),
        Edit("app.txt", "app", "other"),
        Say("done"),
    )
    models.script = in_order(*turns)
    assert call(*CLAUDE, role=Role.QA).exit_code == 0, (call.said, call.complained)
    assert json.loads(call.said)["result"] == "done"
    tried = models.turns[-1].results[0]
    assert (tried.startswith("app"), tried.count("ermission denied"), "tried all" in tried) == (True, 4, True), tried
    assert tree_of(call.worktree) == before


@needs_landlock
@pytest.mark.faults
@pytest.mark.spec("AGT-4", "SEC")
def test_opencode_works_in_the_worktree_and_changes_nothing_else(
    models: ModelServer, call: Call, tmp_path: Path
) -> None:
    call.home.install("opencode")
    settings = call.home.folder / ".config/opencode/opencode.json"
    before = settings.read_bytes()
    models.script = in_order(
        Shell(f"echo made > made.txt; echo x > {tmp_path}/outside.txt; echo x > {settings}; echo x > ~/.bashrc"),
        Write("notes.txt", "one\n"),
        Say("done"),
    )
    ended = call("opencode", "run", "--format", "json", "Do it, implementer")
    assert ended.exit_code == 0, (call.said, call.complained)
    assert ((call.worktree / "made.txt").read_text(), (call.worktree / "notes.txt").read_text()) == ("made\n", "one\n")
    assert not (tmp_path / "outside.txt").exists()
    assert (settings.read_bytes(), (call.home.folder / ".bashrc").exists()) == (before, False)
    assert processes_left(call.run_id) == []


# Secrets


@pytest.mark.spec("SEC", "AGT-4")
def test_a_planted_secret_is_nowhere_in_what_aiflow_writes(bench: Bench) -> None:
    key, token = "planted-key-7f3a91c0", "ghp_" + "Pl4nted" * 5
    (bench.agent.folder / "credentials").write_text(f"token: {token}\n")
    bench.configure(agent='env = ["PLANTED_API_KEY"]')
    bench.commit()
    tell = "secret = os.environ['PLANTED_API_KEY']; token = (HERE / 'credentials').read_text().split()[1]\n"
    say = tell + "print(secret, token); print(f'curl -H \"Authorization: Bearer {secret}\"', file=sys.stderr)\n"
    bench.agent.does(
        "planner", say + "answer({'steps': [{'id': 'S01', 'title': f'Use {token}', 'instructions': secret}]})"
    )
    bench.agent.does("implementer", say + "write('x', 'x'); done(f'set {secret} and {token}')")
    bench.agent.does("qa", say + "answer({'verdict': 'fail', 'findings': [f'{token} {secret}']})", attempt=1)
    bench.agent.does("qa", say + "answer({'status': 'needs_input', 'question': f'{secret} or {token}?'})", attempt=2)
    bench.aiflow.environ |= {"PLANTED_API_KEY": key}
    said = bench.aiflow("run", "RQ-1", code=5)
    assert bench.errors()["reason_code"] == "NEEDS_CLARIFICATION"
    assert "***" in bench.log(1)
    assert leaks(bench, key, token) == []
    assert not {key, token} & {*said.stdout.split(), *said.stderr.split()}
    bench.agent.does("implementer", say + "sys.exit(3)")
    bench.aiflow("resume", "RQ-1", "--answer", f"use {token}", code=5)
    assert leaks(bench, key) == []


@pytest.mark.parametrize("form", ["{}", "x{}y", '"{}"', "base64"])
def test_a_leak_is_seen(bench: Bench, form: str) -> None:
    import base64

    secret = STUB_KEY
    folder = bench.root / "runs/RQ-1/RUN-1/logs"
    folder.mkdir(parents=True)
    text = base64.b64encode(f"Bearer {secret}".encode()).decode() if form == "base64" else form.format(secret)
    (folder / "step-1.log").write_text(f"before {text} after")
    assert leaks(bench, "something else", secret) == [str(folder / "step-1.log")]
    assert leaks(bench, "something else") == []
