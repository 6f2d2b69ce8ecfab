"""Agent programs on this machine (AGT-1, DOC-1): found, asked, and their logins seen, with the real programs."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aiflow.adapters.agents.call.command import Launch, Surroundings
from aiflow.adapters.agents.chosen import DRIVERS
from aiflow.adapters.agents.finding.installed import InstalledAgents
from aiflow.adapters.agents.finding.logins import seen_login
from aiflow.adapters.processes.environment import minimal
from aiflow.adapters.processes.launch import GuardedProcesses
from aiflow.adapters.secrets import Masker
from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.call import AgentCall, Brief
from aiflow.domain.agents.programs import KNOWN, AgentChoice, AgentProgram, AgentTrouble, KnownProgram, Login
from e2e.real_agents import STUB_KEY, RealHome, processes_left

# What some driver lets through, and what looks like it but is let through by none.
VARIABLES = """
ANTHROPIC_API_KEY CLAUDE_CONFIG_DIR CLAUDE_CODE_USE_BEDROCK AWS_PROFILE CODEX_API_KEY OPENAI_API_KEY MISTRAL_API_KEY
OPENCODE_CONFIG GEMINI_MODEL GOOGLE_CLOUD_PROJECT MY_KEY
"""
STRANGERS = """
ANTHROPIC_TEAM_KEY CLAUDE_CODE_ENTRYPOINT CODEX_INTERNAL OPENAI_TEAM_KEY OPENCODE_SERVER_PASSWORD GEMINI_CLI GOOGLE_X
"""
CLAUDE, CODEX, OPENCODE = AgentChoice("claude-code"), AgentChoice("codex"), AgentChoice("acp", ("opencode", "acp"))


@pytest.fixture
def home(tmp_path: Path) -> RealHome:
    return RealHome(tmp_path / "home", "http://127.0.0.1:9")


def at(home: RealHome, *names: str) -> InstalledAgents:
    return InstalledAgents({**home.environ, "PATH": f"{home.bin}:/usr/bin:/bin"}, str(home.folder), names)


def program(home: RealHome, name: str, text: str) -> Path:
    path = home.write(f"bin/{name}", f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.mark.spec("AGT-1", "DOC-1")
def test_the_real_programs_tell_their_version_and_whether_they_are_logged_in(home: RealHome) -> None:
    home.install("claude")
    home.install("codex")
    claude, codex = at(home).ask([at(home).find(CLAUDE), at(home).find(CODEX)])
    assert (claude.path, codex.path) == (str(home.bin / "claude"), str(home.bin / "codex"))
    assert claude.version is not None
    assert claude.version.startswith("2.")
    assert codex.version is not None
    assert codex.version.startswith("0.")
    assert (claude.login, codex.login) == (Login.IN, Login.IN)
    assert (claude.login_by, codex.login_by) == ("ANTHROPIC_API_KEY", "auth.json")
    assert STUB_KEY[-5:] not in repr((claude, codex)), "codex tells parts of its key"
    (home.folder / ".claude/settings.json").unlink()
    (home.folder / ".codex/auth.json").unlink()
    out = at(home).ask([claude, codex])
    assert [each.login for each in out] == [Login.OUT, Login.OUT]
    assert {each.trouble for each in out} == {AgentTrouble.LOGGED_OUT}
    assert processes_left(str(home.folder)) == []


@pytest.mark.spec("AGT-1", "DOC-1")
def test_looking_starts_nothing(home: RealHome) -> None:
    for known in KNOWN:
        program(home, known.name, f"touch {home.folder}/started")
    found = at(home).survey()
    assert [each.program for each in found] == ["claude", "codex", "opencode", "gemini", "", ""]
    assert all(each.version is None for each in found)
    assert not (home.folder / "started").exists()


@pytest.mark.spec("AGT-1", "DOC-1")
def test_nothing_installed_is_no_error(home: RealHome) -> None:
    found = at(home).ask(at(home).survey())
    assert [each.trouble for each in found] == [*[AgentTrouble.NOT_ON_PATH] * 4, AgentTrouble.NO_ARGV, None]
    assert at(home).find(AgentChoice("acp")).trouble is AgentTrouble.NO_ARGV


@pytest.mark.spec("DOC-1", "AGT-2")
def test_why_a_program_of_ones_own_cannot_be_started(home: RealHome) -> None:
    home.write("mine", "")

    def trouble(*argv: str) -> AgentTrouble | None:
        return at(home).find(AgentChoice("command", argv)).trouble

    assert trouble() is AgentTrouble.NO_ARGV
    assert trouble("no-such-program") is AgentTrouble.NOT_ON_PATH
    assert trouble("./not-there") is AgentTrouble.MISSING
    assert trouble(f"{home.folder}/not-there") is AgentTrouble.MISSING
    assert trouble("./bin") is AgentTrouble.MISSING
    assert trouble("./mine") is AgentTrouble.NOT_EXECUTABLE
    (home.folder / "mine").chmod(0o755)
    assert trouble("./mine", "-v") is None
    assert trouble(str(home.folder / "mine")) is None


@pytest.mark.spec("AGT-1")
def test_the_program_of_claude_code_and_codex_is_not_another_roles_argv(home: RealHome) -> None:
    program(home, "claude", "")
    assert at(home).find(AgentChoice("claude-code", ("opencode", "acp"))).path == str(home.bin / "claude")


@pytest.mark.spec("AGT-1")
def test_a_program_of_ones_own_is_not_started_to_ask_it(home: RealHome) -> None:
    path = program(home, "mine", f"touch {home.folder}/started")
    asked = at(home).find(AgentChoice("command", (str(path),)), asks=True)
    assert (asked.trouble, asked.login) == (None, Login.NOT_NEEDED)
    assert at(home).find(AgentChoice("acp", ("mine", "--acp")), asks=True).trouble is None
    assert not (home.folder / "started").exists()


@pytest.mark.spec("AGT-1", "DOC-1")
def test_a_program_that_does_not_answer_is_ended_with_all_it_started(home: RealHome) -> None:
    program(home, "codex", "sleep 600 & sleep 600")
    program(home, "claude", "exec /no/such/program")
    asked = replace(at(home), ask_seconds=0.3).ask([at(home).find(CODEX), at(home).find(CLAUDE)])
    assert [(each.version, each.login) for each in asked] == [(None, Login.NONE_SEEN)] * 2
    assert processes_left(str(home.folder)) == []


@pytest.mark.spec("AGT-1", "DOC-1")
def test_a_program_that_prints_without_end_is_heard_only_as_far_as_an_answer_goes(home: RealHome) -> None:
    program(home, "claude", "echo 2.1.0; exec yes")
    program(home, "codex", "echo 0.9.1; exec yes >&2")
    asked = replace(at(home), ask_seconds=3600).ask([at(home).find(CLAUDE), at(home).find(CODEX)])
    assert [(each.version, each.trouble) for each in asked] == [(None, AgentTrouble.BROKEN)] * 2
    assert processes_left(str(home.folder)) == []


@pytest.mark.spec("AGT-1", "DOC-1")
@pytest.mark.parametrize(
    "text", ["echo 'Cannot find module x 1.2' >&2; exit 1", "echo 2.1.0; kill -SEGV $$", "sleep 600"]
)
def test_a_program_that_cannot_tell_its_version_is_broken(home: RealHome, text: str) -> None:
    program(home, "claude", text)
    home.environ["ANTHROPIC_API_KEY"] = STUB_KEY
    asked = replace(at(home), ask_seconds=1).find(CLAUDE, asks=True)
    assert (asked.version, asked.trouble, asked.is_installed) == (None, AgentTrouble.BROKEN, False)
    assert asked.mending == "npm install -g @anthropic-ai/claude-code"


@pytest.mark.spec("AGT-1", "DOC-1")
def test_a_program_whose_interpreter_is_gone_is_broken(home: RealHome) -> None:
    program(home, "claude", "").write_text("#!/no/such/node\n")
    assert at(home).find(CLAUDE).trouble is None
    assert at(home).find(CLAUDE, asks=True).trouble is AgentTrouble.BROKEN


@pytest.mark.spec("AGT-1")
def test_an_old_claude_is_not_given_words_for_a_model(home: RealHome) -> None:
    program(home, "claude", f'test "$1" = --version && echo "1.0.128 (Claude Code)" || touch {home.folder}/asked')
    asked = at(home).find(CLAUDE, asks=True)
    assert (asked.version, asked.login) == ("1.0.128", Login.NONE_SEEN)
    assert not (home.folder / "asked").exists()


@pytest.mark.parametrize("answer", ["", "nonsense", "[]", '{"loggedIn": 1}', '{"loggedIn"', '{"other": true}', "null"])
def test_a_claude_that_answers_something_else_is_not_logged_in(home: RealHome, answer: str) -> None:
    program(home, "claude", f"test \"$1\" = --version && echo 2.9.1 || printf '%s' '{answer}'")
    asked = at(home).find(CLAUDE, asks=True)
    assert asked.version == "2.9.1"
    assert asked.login is not Login.IN


@pytest.mark.spec("AGT-4", "SEC")
def test_programs_that_are_asked_get_the_environment_of_an_agent(home: RealHome) -> None:
    program(home, "codex", f'env > "{home.folder}/seen"')
    home.environ |= {"GITHUB_TOKEN": "planted", "CODEX_API_KEY": "", "MY_KEY": "named"}
    at(home, "MY_KEY").find(CODEX, asks=True)
    seen = (home.folder / "seen").read_text()
    assert "planted" not in seen
    assert "MY_KEY=named" in seen
    assert "CODEX_API_KEY=" in seen


@pytest.mark.spec("AGT-4", "DOC-1")
@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.name)
def test_programs_that_are_asked_get_the_variables_of_a_run_and_no_others(known: KnownProgram, home: RealHome) -> None:
    program(home, known.name, f'env > "{home.folder}/seen"')
    home.environ |= dict.fromkeys((VARIABLES + STRANGERS).split(), "here")
    asked = at(home, "MY_KEY")
    asked.find(AgentChoice(known.kind, known.argv), asks=True)
    folder = str(home.folder)
    around = Surroundings(folder, folder, folder, asked.environ, GuardedProcesses(folder), Masker({}))
    call = AgentCall(Role.QA, Brief("RQ-1", "A request", "Do it.", "P1"), "RUN-1", folder, None, (), 1)
    start = DRIVERS[known.kind](Launch(known.argv, 60, 60, ("MY_KEY",)), around).start(call, folder)
    of_run = minimal(asked.environ, (*start.env_names, "MY_KEY"))
    seen = dict(line.partition("=")[::2] for line in (home.folder / "seen").read_text().splitlines())
    assert {name for name in seen if seen[name] == "here"} == {name for name in of_run if of_run[name] == "here"}
    assert "MY_KEY" in seen


@pytest.mark.spec("AGT-4", "DOC-1")
def test_a_key_that_no_run_would_get_is_no_login(home: RealHome) -> None:
    program(home, "codex", "echo 0.9.1")
    provider = 'model_provider = "own"\n[model_providers.own]\nname = "own"\nenv_key = "OPENAI_TEAM_KEY"\n'
    home.write(".codex/config.toml", provider)
    home.environ["OPENAI_TEAM_KEY"] = STUB_KEY
    assert at(home).find(CODEX).login is Login.NONE_SEEN
    assert at(home).find(CODEX, asks=True).login is Login.NONE_SEEN
    assert at(home, "OPENAI_TEAM_KEY").find(CODEX).login is Login.IN


# --- logins, by what lies in files and variables ---------------------------------------------------------------------

KEY = "s3cret-key"


def seen(name: str, home: RealHome, **environ: str) -> tuple[Login, str]:
    found = seen_login(name, {"HOME": str(home.folder), **environ}, str(home.folder / "project"))
    assert KEY not in found.by
    return found.login, found.by


@pytest.mark.spec("DOC-1")
@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("claude", "ANTHROPIC_API_KEY"),
        ("claude", "ANTHROPIC_AUTH_TOKEN"),
        ("claude", "CLAUDE_CODE_OAUTH_TOKEN"),
        ("claude", "CLAUDE_CODE_USE_BEDROCK"),
        ("codex", "CODEX_API_KEY"),
        ("gemini", "GEMINI_API_KEY"),
    ],
)
def test_a_login_by_a_variable(home: RealHome, name: str, variable: str) -> None:
    before = seen(name, home)
    assert before[0] in (Login.NONE_SEEN, Login.UNKNOWN)
    assert seen(name, home, **{variable: KEY}) == (Login.IN, variable)
    assert seen(name, home, **{variable: ""}) == before
    assert seen("claude", home, CLAUDE_CODE_USE_BEDROCK="0")[0] is not Login.IN


@pytest.mark.spec("DOC-1")
@pytest.mark.parametrize(
    ("name", "path", "content", "by"),
    [
        ("claude", ".claude/.credentials.json", {"claudeAiOauth": {"accessToken": KEY}}, "claude.ai"),
        ("claude", ".claude/settings.json", {"env": {"ANTHROPIC_AUTH_TOKEN": KEY}}, "ANTHROPIC_AUTH_TOKEN"),
        ("claude", ".claude/settings.json", {"apiKeyHelper": f"echo {KEY}"}, "apiKeyHelper"),
        ("claude", "project/.claude/settings.json", {"env": {"ANTHROPIC_API_KEY": KEY}}, "ANTHROPIC_API_KEY"),
        ("claude", ".claude.json", {"primaryApiKey": KEY}, "/login"),
        ("codex", ".codex/auth.json", {"OPENAI_API_KEY": KEY}, "auth.json"),
        ("codex", ".codex/auth.json", {"OPENAI_API_KEY": None, "tokens": {"id_token": KEY}}, "ChatGPT"),
        ("opencode", ".local/share/opencode/auth.json", {"anthropic": {"key": KEY}}, "auth.json"),
        ("gemini", ".gemini/oauth_creds.json", {"access_token": KEY}, "Google"),
    ],
)
def test_a_login_in_a_file(home: RealHome, name: str, path: str, content: Any, by: str) -> None:
    before = seen(name, home)
    home.write(path, json.dumps(content))
    assert seen(name, home) == (Login.IN, by)
    odd = ['{"env": [1]}'] if name == "claude" else []
    for broken in ("", "{", "{}", "[]", "null", "\0", "[" * 100_000, *odd):
        home.write(path, broken)
        assert seen(name, home) == before
    (home.folder / path).unlink()
    os.mkfifo(home.folder / path)
    assert seen(name, home) == before


@pytest.mark.spec("DOC-1")
def test_the_folders_that_the_programs_are_told_to_use_count(home: RealHome) -> None:
    home.write("other/.credentials.json", json.dumps({"claudeAiOauth": {"accessToken": KEY}}))
    home.write("other/auth.json", json.dumps({"tokens": {"id_token": KEY}}))
    folder = str(home.folder / "other")
    assert seen("claude", home, CLAUDE_CONFIG_DIR=folder) == (Login.IN, "claude.ai")
    assert seen("codex", home, CODEX_HOME=folder) == (Login.IN, "ChatGPT")


@pytest.mark.spec("DOC-1")
def test_a_key_that_codex_does_not_heed_is_no_login(home: RealHome) -> None:
    assert seen("codex", home, OPENAI_API_KEY=KEY)[0] is Login.NONE_SEEN


@pytest.mark.spec("DOC-1")
def test_a_provider_of_ones_own_needs_its_own_key(home: RealHome) -> None:
    home.write(
        ".codex/config.toml", 'model_provider = "own"\n[model_providers.own]\nname = "own"\nenv_key = "OWN_KEY"\n'
    )
    assert seen("codex", home) == (Login.NONE_SEEN, "OWN_KEY")
    assert seen("codex", home, OWN_KEY=KEY) == (Login.IN, "OWN_KEY")
    home.write(".codex/config.toml", 'model_provider = "own"\n[model_providers.own]\nname = "own"\n')
    assert seen("codex", home) == (Login.NOT_NEEDED, "own")
    home.write(".codex/config.toml", 'cli_auth_credentials_store = "keyring"\n')
    assert seen("codex", home)[0] is Login.UNKNOWN
    home.write(".codex/config.toml", "model_provider = [\n")
    assert seen("codex", home)[0] is Login.NONE_SEEN


@pytest.mark.spec("DOC-1")
def test_codex_is_not_asked_about_what_it_does_not_know(home: RealHome) -> None:
    home.install("codex")
    (home.folder / ".codex/auth.json").unlink()
    home.environ["CODEX_API_KEY"] = KEY
    home.write(".codex/config.toml", "")
    asked = at(home).find(CODEX, asks=True)
    assert (asked.login, asked.trouble) == (Login.IN, None)


def test_an_unknown_program_says_nothing(home: RealHome) -> None:
    assert seen("goose", home) == (Login.UNKNOWN, "")
    found = AgentProgram("acp", "goose", ("goose", "acp"), "/bin/goose")
    assert at(home).ask([found]) == (found,)
    assert replace(found, kind="demo").known is None


@pytest.mark.spec("AGT-5")
def test_a_program_that_is_asked_leaves_nothing_running(tmp_path: Path) -> None:
    program = tmp_path / "bin/claude"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nsetsid sleep 300 >/dev/null 2>&1 &\necho 2.1.0\n")
    program.chmod(0o755)
    agents = InstalledAgents({"PATH": f"{tmp_path}/bin:/usr/bin:/bin", "HOME": str(tmp_path)}, str(tmp_path), ())
    (claude,) = agents.ask([agents.find(AgentChoice("claude-code"))])
    assert claude.version == "2.1.0"
    assert processes_left(str(tmp_path)) == []
