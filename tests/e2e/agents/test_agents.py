"""`aiflow agents`, the doctor's look at them, and how `init` chooses one (AGT-1, DOC-1), with the real programs."""

from __future__ import annotations

import os
import signal
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest

from aiflow.cli.terminal.layout import display_width
from conftest import Program
from e2e.bench import Bench, tree_of
from e2e.model_server import ModelServer
from e2e.model_turns import Refuse, Trouble, plan, story
from e2e.real_agents import STUB_KEY, RealHome, processes_left, without_extra
from interfaces.test_cli import in_terminal
from waiting import wait_until

JA = {"AIFLOW_LANG": "ja"}


@pytest.fixture
def home(tmp_path: Path) -> RealHome:
    """A home where no agent is on the PATH yet, nor any of this machine's."""
    made = RealHome(tmp_path / "home", "http://127.0.0.1:9")
    made.leave_only("git", "sh", "touch", "sleep")
    return made


@pytest.fixture
def aiflow(repository: Path, home: RealHome) -> Program:
    program = Program(repository)
    program.environ = {**home.environ, "AIFLOW_LANG": "en"}
    return program


def by_name(answer: Any) -> dict[str, Any]:
    """The agents by program, those without one by kind."""
    return {each["program"] or each["kind"]: each for each in answer["agents"]}


def configure(repository: Path, text: str) -> None:
    (repository / "aiflow.toml").write_text(text)


# --- the list --------------------------------------------------------------------------------------------------------


@pytest.mark.spec("AGT-1", "CLI")
def test_the_list_says_what_is_installed_logged_in_and_used(repository: Path, home: RealHome, aiflow: Program) -> None:
    home.install("claude")
    home.install("codex")
    configure(repository, '[agent]\nkind = "codex"\n[agent.roles.qa]\nkind = "claude-code"\n')
    before = tree_of(repository)
    found = by_name(aiflow.json("agents"))
    assert list(found) == ["claude", "codex", "opencode", "gemini", "command", "demo"]
    assert set(found["codex"]) == {
        *("kind", "program", "argv", "is_installed", "path", "version", "login", "login_by", "roles"),
        *("reason_code", "install", "log_in"),
    }
    assert found["codex"]["roles"] == ["planner", "implementer"]
    assert found["claude"]["roles"] == ["qa"]
    assert {name: each["login"] for name, each in found.items() if each["is_installed"]} == {
        "claude": "in",
        "codex": "in",
        "demo": "not_needed",
    }
    assert found["claude"]["path"] == str(home.bin / "claude")
    assert found["claude"]["version"].startswith("2.")
    shown = aiflow("agents").stdout
    assert "logged in (ANTHROPIC_API_KEY)" in shown
    assert "→ npm install -g opencode-ai" in shown
    assert STUB_KEY not in shown + str(found)
    assert tree_of(repository) == before, "it only reads"
    assert processes_left(str(home.folder)) == []


@pytest.mark.spec("AGT-1", "CLI")
def test_without_any_agent_it_says_how_to_get_each(repository: Path, aiflow: Program) -> None:
    english = aiflow("agents", code=3).stdout
    assert "No coding agent is installed. Install one and log in:" in english
    for command in (
        "npm install -g @anthropic-ai/claude-code  &&  claude auth login",
        "npm install -g @openai/codex  &&  codex login",
        "npm install -g opencode-ai  &&  opencode auth login",
        "npm install -g @google/gemini-cli  &&  gemini",
    ):
        assert command in english
    japanese = aiflow("agents", code=3, env=JA).stdout
    assert "コーディングエージェントがインストールされていません" in japanese
    assert "npm install -g @openai/codex" in japanese
    found = by_name(aiflow.json("agents", code=3))
    assert found["claude"]["reason_code"] == "AGENT_NOT_FOUND"
    assert found["demo"]["is_installed"]


@pytest.mark.faults
@pytest.mark.spec("AGT-1", "CLI")
def test_it_exits_with_3_only_if_an_agent_that_is_used_cannot_be(
    repository: Path, home: RealHome, aiflow: Program
) -> None:
    home.install("codex")
    aiflow("agents", code=3)  # claude-code, without any settings
    assert "claude is not on the PATH" in aiflow("agents", code=3).stdout
    configure(repository, '[agent]\nkind = "codex"\n')
    aiflow("agents")
    (home.folder / ".codex/auth.json").unlink()
    out = aiflow("agents", code=3).stdout
    assert "AGENT_AUTH_REQUIRED: planner, implementer, qa: codex is not logged in" in out
    assert "→ codex login" in out
    aiflow("agents", "demo")
    aiflow("agents", env={"AIFLOW_AGENT_KIND": "demo"})
    shown = aiflow("agents", env={"AIFLOW_AGENT_KIND": "command", "AIFLOW_AGENT_ARGV": "./mine -v"}, code=3).stdout
    assert "./mine does not exist" in shown
    assert "agent.argv is empty" in aiflow("agents", env={"AIFLOW_AGENT_KIND": "acp"}, code=3).stdout
    assert aiflow("agents", "nonsense", code=2).stdout == ""


@pytest.mark.spec("AGT-1", "CLI")
def test_it_works_outside_a_project(tmp_path: Path, home: RealHome) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    program = Program(outside)
    program.environ = {**home.environ, "AIFLOW_LANG": "en"}
    assert by_name(program.json("agents"))["claude"]["roles"] == []
    assert "No coding agent is installed" in program("agents").stdout
    named = by_name(program.json("agents", env={"AIFLOW_AGENT_KIND": "codex"}, code=3))
    assert named["codex"]["roles"] == ["planner", "implementer", "qa"]
    assert os.listdir(outside) == []


@pytest.mark.spec("AGT-1", "CLI")
def test_a_mistake_in_the_settings_is_told_as_such(repository: Path, aiflow: Program) -> None:
    configure(repository, '[agent]\nkind = "cladue"\n')
    assert aiflow.json("agents", code=2)["error"]["reason_code"] == "SETTINGS_INVALID"


def seen(aiflow: Program, *arguments: str, columns: int, language: str = "en") -> list[str]:
    """The lines that a terminal of this width is given, without colours."""
    shown = in_terminal(aiflow.cwd, *arguments, columns=columns, env={**aiflow.environ, "AIFLOW_LANG": language})
    return click.unstyle(shown).splitlines()


@pytest.mark.spec("AGT-1", "CLI")
@pytest.mark.parametrize("language", ["en", "ja"])
@pytest.mark.parametrize("columns", [60, 80])
def test_where_there_is_no_room_nothing_is_cut_and_commands_can_be_copied(
    aiflow: Program, home: RealHome, columns: int, language: str
) -> None:
    home.install("claude")
    lines = seen(aiflow, "agents", columns=columns, language=language)
    assert any(line.endswith(": planner, implementer, qa") for line in lines)
    for note in ("→ npm install -g @openai/codex", "→ npm install -g @google/gemini-cli", str(home.bin / "claude")):
        assert f"    {note}" in lines
    assert "(ANTHROPIC_API_KEY)" in "".join(lines)
    assert "…" not in "".join(lines)
    assert max(map(display_width, lines), default=0) <= max(columns, display_width(f"    {home.bin}/claude"))


@pytest.mark.spec("AGT-1", "CLI")
def test_where_there_is_room_every_agent_is_a_row(aiflow: Program, home: RealHome) -> None:
    home.install("claude")
    head, first, *others = seen(aiflow, "agents", columns=125)
    assert head.split() == ["AGENT", "PROGRAM", "VERSION", "LOGIN", "ROLES", "NOTE"]
    assert "planner, implementer, qa  /" in first
    assert any("→ npm install -g @openai/codex" in line for line in others)
    assert not any(line.startswith("    →") for line in others)


@pytest.mark.spec("AGT-1", "CLI")
def test_without_any_agent_each_command_is_on_a_line_of_its_own_at_60_columns(aiflow: Program) -> None:
    lines = seen(aiflow, "agents", columns=60)
    assert "  opencode     npm install -g opencode-ai  &&" in lines
    assert "               opencode auth login" in lines
    assert "  Codex        npm install -g @openai/codex  &&  codex login" in lines
    assert sum("@openai/codex" in line for line in lines) == 1, "told below the table only"
    assert sum("not installed" in line for line in lines) == 4


@pytest.mark.spec("AGT-1", "CLI")
def test_what_an_agent_says_keeps_its_gutter_where_it_is_broken(
    repository: Path, aiflow: Program, home: RealHome
) -> None:
    words = " ".join(["word"] * 30)
    home.write("bin/mine", f'#!/bin/sh\necho "{words}"\necho "{{}}" > "$AIFLOW_RESULT"\n').chmod(0o755)
    configure(repository, '[agent]\nkind = "command"\nargv = ["mine"]\n')
    said = [line for line in seen(aiflow, "agents", "--check", columns=60) if "word" in line]
    assert len(said) == 3
    assert all(line.startswith("  │ word") and len(line) <= 60 for line in said)
    assert f"  │ {words}\n" in aiflow("agents", "--check", code=5).stdout, "whole in a pipe"


# --- a call to try it ------------------------------------------------------------------------------------------------


@pytest.mark.spec("AGT-1", "CLI")
def test_a_check_calls_the_agent_once_and_shows_what_it_says(repository: Path, aiflow: Program) -> None:
    before = tree_of(repository)
    shown = aiflow("agents", "demo", "--check").stdout
    assert "Calling demo" in shown
    assert "[demo]" in shown
    assert "PASS  It answered after" in shown
    [checked] = aiflow.json("agents", "demo", "--check")["checks"]
    assert (checked["kind"], checked["result"], checked["reason_code"]) == ("demo", "PASS", None)
    assert 0 < checked["seconds"] < 30
    assert set(checked) == {
        *("kind", "program", "result", "reason_code", "detail", "seconds"),
        *("input_tokens", "output_tokens", "cost_usd"),
    }
    assert tree_of(repository) == before


@pytest.mark.spec("AGT-1", "AGT-3", "CLI")
def test_a_check_of_an_agent_that_does_not_work_says_why(repository: Path, aiflow: Program, home: RealHome) -> None:
    path = home.write("bin/mine", '#!/bin/sh\necho "no plan today"\necho "{}" > "$AIFLOW_RESULT"\n')
    path.chmod(0o755)
    configure(repository, '[agent]\nkind = "command"\nargv = ["mine"]\n')
    shown = aiflow("agents", "--check", code=5).stdout
    assert "│ no plan today" in shown
    assert "FAIL  JSON_SCHEMA_INVALID" in shown
    path.write_text("#!/bin/sh\nexit 7\n")
    [checked] = aiflow.json("agents", "--check", code=5)["checks"]
    assert (checked["reason_code"], checked["detail"]) == ("AGENT_FAILED", "exit code 7")
    path.unlink()
    missing = aiflow("agents", "--check", code=3, env=JA).stdout
    assert "AGENT_NOT_FOUND: エージェントを起動できません" in missing
    assert "mine が PATH にありません" in missing


FAKE_CODEX = """#!/bin/sh
case "$*" in
--version) echo "codex-cli 0.98.0";;
"login status") echo "Not logged in" >&2; exit 1;;
*) echo '{"type": "turn.failed", "error": {"message": "stream disconnected: Connection failed"}}'; exit 1;;
esac
"""


@pytest.mark.spec("AGT-1", "AGT-4", "CLI")
def test_a_check_of_one_that_is_logged_out_says_that_and_what_it_ran_into(
    repository: Path, aiflow: Program, home: RealHome
) -> None:
    home.write("bin/codex", FAKE_CODEX).chmod(0o755)
    configure(repository, '[agent]\nkind = "codex"\n')
    shown = aiflow("agents", "--check", code=3).stdout
    assert "FAIL  AGENT_AUTH_REQUIRED" in shown
    assert "codex is not logged in" in shown
    assert "      stream disconnected: Connection failed" in shown
    assert "→ codex login" in shown


@pytest.mark.spec("AGT-1", "DOC-1", "CLI")
def test_a_provider_whose_variable_no_run_gets_leads_to_the_setting(
    repository: Path, aiflow: Program, home: RealHome
) -> None:
    words = "Missing environment variable: `MY_KEY`."
    home.write("bin/codex", FAKE_CODEX.replace("stream disconnected: Connection failed", words)).chmod(0o755)
    own = 'model_provider = "mine"\n[model_providers.mine]\nname = "mine"\nenv_key = "MY_KEY"\n'
    home.write(".codex/config.toml", own)
    configure(repository, '[agent]\nkind = "codex"\n')
    env = {"MY_KEY": "set, and not given on"}
    listed, checked = aiflow("agents", env=env).stdout, aiflow("agents", "--check", code=3, env=env).stdout
    for shown in (listed, checked):
        assert "→ set MY_KEY, and list it in agent.env" in shown
        assert "codex login" not in shown
    warning = next(each for each in aiflow.json("doctor", code=6, env=env)["checks"] if each["id"] == "agent")
    assert "needs MY_KEY" in warning["message"]
    assert warning["fix"] == "aiflow settings agent.env"


@pytest.mark.spec("AGT-1", "AGT-5", "CLI")
def test_a_check_can_be_stopped_and_leaves_nothing(bench: Bench, home: RealHome) -> None:
    bench.aiflow.environ |= home.environ
    path = home.write("bin/mine", f'#!/bin/sh\ntouch "{home.folder}/hangs"\nsleep 600 &\nsleep 600\n')
    path.chmod(0o755)
    bench.configure(argv=["mine"])
    process = bench.start("agents", "--check")
    wait_until((home.folder / "hangs").exists)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "CANCELLED" not in out, "there is no run"
    assert "Stopping the agent" in errors
    assert "Aborted" in errors
    assert processes_left(str(home.folder)) == []


@pytest.mark.faults
@pytest.mark.spec("AGT-1", "AGT-3", "CLI")
@pytest.mark.parametrize(
    ("kind", "program"),
    [("claude-code", "claude"), ("codex", "codex"), pytest.param("acp", "opencode", marks=pytest.mark.soak)],
)
def test_a_check_really_calls_the_program(
    models: ModelServer, tmp_path: Path, repository: Path, kind: str, program: str
) -> None:
    home = RealHome(tmp_path / "home", models.url, program)
    aiflow = Program(repository)
    aiflow.environ = {**home.environ, "AIFLOW_LANG": "en"}
    models.script = story(planner=[plan()])
    before = tree_of(repository)
    answer = aiflow.json("agents", kind, "--check")
    [checked] = answer["checks"]
    assert (checked["program"], checked["result"]) == (program, "PASS")
    assert (checked["input_tokens"], checked["output_tokens"]) == (100, 7)
    assert len(models.turns) == 1
    assert "This is only a check that you can be called" in models.turns[0].prompt
    models.script = lambda _: Refuse(Trouble.UNAUTHORIZED)
    shown = aiflow("agents", kind, "--check", code=3).stdout
    assert "FAIL  AGENT_AUTH_REQUIRED: The agent is not logged in" in shown
    assert "auth login" in shown if program != "codex" else "codex login" in shown
    assert STUB_KEY not in shown
    assert tree_of(repository) == before
    assert processes_left(str(home.folder)) == []


# --- the doctor ------------------------------------------------------------------------------------------------------


@pytest.mark.spec("DOC-1")
def test_the_doctor_warns_of_a_login_it_does_not_see_and_asks_the_program_if_it_has_time(
    bench: Bench, home: RealHome
) -> None:
    home.install("claude")
    bench.aiflow.environ |= home.environ
    (bench.root / "aiflow.toml").write_text("")

    def agent(*args: str, code: int = 0) -> Any:
        checks = bench.aiflow.json("doctor", *args, code=code)["checks"]
        return next(check for check in checks if check["id"] == "agent")

    assert agent()["result"] == agent("--full")["result"] == "PASS"
    assert agent()["evidence"] == []
    assert agent("--full")["evidence"][0].startswith(f"{home.bin}/claude 2.")
    (home.folder / ".claude/settings.json").unlink()
    quick, full = agent(), agent("--full", code=3)
    assert (quick["result"], full["result"]) == ("WARN", "FAIL")
    assert quick["reason_code"] == full["reason_code"] == "AGENT_AUTH_REQUIRED"
    assert quick["fix"] == full["fix"] == "claude auth login"
    (home.bin / "claude").unlink()
    gone = agent(code=3)
    assert (gone["result"], gone["reason_code"]) == ("FAIL", "AGENT_NOT_FOUND")
    assert gone["fix"] == "npm install -g @anthropic-ai/claude-code"
    assert "claude is not on the PATH" in gone["message"]


@pytest.mark.spec("DOC-1")
def test_each_role_is_looked_at_and_what_is_the_same_is_told_once(bench: Bench, home: RealHome) -> None:
    bench.aiflow.environ |= home.environ
    bench.configure(agent="[agent.roles.qa]\nargv = ['no-such-reviewer']\n")
    checks = [each for each in bench.aiflow.json("doctor", code=3)["checks"] if each["id"] == "agent"]
    assert [check["result"] for check in checks] == ["PASS", "FAIL"]
    assert checks[1]["message"] == "qa: no-such-reviewer is not on the PATH"
    assert checks[1]["fix"] == "aiflow agents"


@pytest.mark.spec("DOC-1", "RUN-7", "ERR-1")
def test_a_run_without_its_agent_is_refused_with_what_to_do_in_ones_own_language(bench: Bench, home: RealHome) -> None:
    bench.aiflow.environ |= home.environ
    (bench.root / "aiflow.toml").write_text('[agent]\nkind = "codex"\n')
    english = bench.aiflow("run", "RQ-1", code=3).stderr
    assert "AGENT_NOT_FOUND: The agent cannot be started" in english
    assert "codex is not on the PATH" in english
    assert "→ Install what is missing: `npm install -g @openai/codex`" in english
    assert "claude-code" not in english
    assert "`aiflow agents`" in english
    japanese = bench.aiflow("run", "RQ-1", code=3, env=JA).stderr
    assert "codex が PATH にありません" in japanese
    assert "is not on the PATH" not in japanese
    assert bench.status() == "ready"
    assert bench.locks() == []


# --- init ------------------------------------------------------------------------------------------------------------


def settings(repository: Path) -> dict[str, Any]:
    """The [agent] table that is really set."""
    return dict(tomllib.loads((repository / "aiflow.toml").read_text()).get("agent", {}))


@pytest.mark.spec("AGT-1", "CFG")
def test_init_sets_the_agent_that_is_installed(repository: Path, aiflow: Program, home: RealHome) -> None:
    home.install("codex")
    home.install("claude")
    assert aiflow.json("init")["agent"] == {"kind": "claude-code", "program": "claude"}
    assert settings(repository) == {"kind": "claude-code"}
    (repository / "aiflow.toml").unlink()
    (home.folder / ".claude/settings.json").unlink()
    assert aiflow.json("init")["agent"]["kind"] == "codex", "claude is not logged in"
    (repository / "aiflow.toml").unlink()
    (home.bin / "codex").unlink()
    shown = aiflow("init").stdout
    assert "Agent: claude-code (claude)" in shown
    assert "It does not seem to be logged in yet:  claude auth login" in shown
    assert by_name(aiflow.json("agents", code=3))["claude"]["roles"] == ["planner", "implementer", "qa"]


@pytest.mark.spec("AGT-1", "CFG")
def test_init_knows_how_an_acp_program_is_started(repository: Path, aiflow: Program, home: RealHome) -> None:
    home.install("opencode")
    assert aiflow.json("init")["agent"] == {"kind": "acp", "program": "opencode"}
    assert settings(repository) == {"kind": "acp", "argv": ["opencode", "acp"]}
    aiflow("settings")


@pytest.mark.spec("AGT-1", "CFG")
def test_init_without_an_agent_leaves_it_out_and_says_how_to_get_one(repository: Path, aiflow: Program) -> None:
    shown = aiflow("init").stdout
    assert "No coding agent is installed" in shown
    assert "npm install -g @anthropic-ai/claude-code" in shown
    assert settings(repository) == {}
    aiflow("new", "First", "--ready", "-b", "x")
    assert aiflow.json("next")["stats"]["runnable"] == 1
    aiflow("list")
    aiflow("forecast")
    subprocess.run(["git", "add", "-A"], cwd=repository, check=True)


@pytest.mark.spec("AGT-1", "CFG")
@pytest.mark.parametrize(
    ("table", "word"),
    [
        ({"kind": "codex"}, "It is not installed yet:  npm install -g @openai/codex"),
        ({"kind": "acp", "argv": ["opencode", "acp"]}, "npm install -g opencode-ai"),
        ({"kind": "command"}, "Set agent.argv in aiflow.toml"),
        ({"kind": "demo"}, "Agent: demo (aiflow)"),
    ],
)
def test_init_sets_the_agent_that_a_person_names(
    repository: Path, aiflow: Program, home: RealHome, table: dict[str, Any], word: str
) -> None:
    home.install("claude")
    shown = aiflow("init", "--agent", table["kind"]).stdout
    assert word in shown
    assert settings(repository) == table
    again = aiflow("init", "--agent", "claude-code")
    assert 'Set agent.kind = "claude-code" there yourself' in again.stderr
    assert aiflow("init", "--agent", table["kind"]).stderr == "", "it is set already"
    assert settings(repository) == table


@pytest.mark.spec("AGT-1", "CFG")
def test_a_program_s_name_chooses_its_kind(repository: Path, aiflow: Program, home: RealHome) -> None:
    home.install("claude")
    home.install("opencode")
    assert aiflow.json("init", "--agent", "gemini")["agent"] == {"kind": "acp", "program": "gemini"}
    assert settings(repository) == {"kind": "acp", "argv": ["gemini", "--acp"]}
    kept = aiflow("init", "--agent", "opencode").stderr
    assert 'Set agent.argv = ["opencode", "acp"] there yourself' in kept
    assert 'Set agent.kind = "claude-code" there yourself' in aiflow("init", "--agent", "claude").stderr
    assert "opencode" in aiflow("init", "--agent", "nonsense", code=2).stderr


@pytest.mark.spec("AGT-1", "CFG")
def test_init_says_that_only_a_part_of_aiflow_is_missing(
    repository: Path, aiflow: Program, home: RealHome, tmp_path: Path
) -> None:
    home.install("opencode")
    without = {"PYTHONPATH": without_extra(tmp_path)}
    shown = aiflow("init", "--agent", "opencode", env=without).stdout
    assert "Agent: acp (opencode)" in shown
    told = shown.partition("Kind acp needs a part of aiflow that is not installed yet:  ")[2]
    assert "/bin/pip install -e " in told.splitlines()[0]
    assert "It is not installed yet" not in shown
