"""How codex is called (AGT-1, AGT-4): what it may do is said at every call."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiflow.adapters.agents.call.command import Launch, Surroundings
from aiflow.adapters.agents.codex.agent import CodexDriver, servers_of
from aiflow.adapters.agents.codex.arguments import FEATURES_OFF, CodexTerms, arguments
from aiflow.adapters.agents.codex.session import CodexThread, named, session_of
from aiflow.adapters.processes.launch import GuardedProcesses
from aiflow.adapters.secrets import Masker
from aiflow.domain.agents.answer_schema import SCHEMAS
from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.call import AgentCall, Brief
from aiflow.domain.agents.usage import Usage

THREAD = "01a1e371-c68c-7fe2-8fc6-738f2ad90db4"
SESSION = CodexThread(THREAD, Usage(input_tokens=200, cached_tokens=50, output_tokens=14))
TERMS = CodexTerms(Role.IMPLEMENTER, "/work/tree")


def config_of(argv: tuple[str, ...]) -> dict[str, Any]:
    """Read the settings back that an argument vector gives, as codex does: each value is TOML."""
    pairs = [argv[place + 1] for place, word in enumerate(argv) if word == "-c"]
    return {key: tomllib.loads(f"value = {value}")["value"] for key, _, value in (p.partition("=") for p in pairs)}


@pytest.mark.spec("AGT-4")
@pytest.mark.parametrize("session", [None, SESSION])
@pytest.mark.parametrize(
    ("role", "mode"), [(Role.IMPLEMENTER, "workspace-write"), (Role.PLANNER, "read-only"), (Role.QA, "read-only")]
)
def test_every_call_names_its_sandbox(role: Role, mode: str, session: CodexThread | None) -> None:
    argv = arguments(replace(TERMS, role=role), "/s.json", session)
    config = config_of(argv)
    assert config["sandbox_mode"] == mode
    assert config["approval_policy"] == "never"
    assert config["sandbox_workspace_write"] == {
        "writable_roots": [],
        "network_access": False,
        "exclude_slash_tmp": True,
        "exclude_tmpdir_env_var": False,
    }
    assert config["notify"] == []
    assert config["web_search"] == "disabled"
    assert config["allow_login_shell"] is False
    assert config["projects"] == {"/work/tree": {"trust_level": "untrusted"}}
    assert all(config[f"features.{name}"] is False for name in FEATURES_OFF)
    assert "--ignore-rules" in argv
    assert not any(word.startswith("--dangerously") for word in argv)


@pytest.mark.spec("AGT-1")
def test_a_new_thread_and_one_that_goes_on() -> None:
    new = arguments(TERMS, "/s.json", None)
    assert new[:3] == ("exec", "--json", "--skip-git-repo-check")
    assert new[-3:] == ("--output-schema", "/s.json", "-")
    assert "-m" not in new
    again = arguments(replace(TERMS, model="gpt-x"), "/s.json", SESSION)
    assert again[:2] == ("exec", "resume")
    assert again[-2:] == (THREAD, "-")
    assert again[again.index("-m") + 1] == "gpt-x"


def test_settings_widen_it_and_nothing_else_does() -> None:
    terms = replace(TERMS, tools=("network", "web_search", "mcp__docs"), servers=("docs", "mail"), writable=("/cache",))
    config = config_of(arguments(terms, "/s.json", None))
    assert config["sandbox_workspace_write"]["network_access"] is True
    assert config["sandbox_workspace_write"]["writable_roots"] == ["/cache"]
    assert config["web_search"] == "live"
    assert config["mcp_servers"] == {
        "docs": {"enabled": True, "default_tools_approval_mode": "approve"},
        "mail": {"enabled": False},
    }
    assert config_of(arguments(replace(TERMS, is_sandboxed=False), "/s.json", None))["sandbox_mode"] == (
        "danger-full-access"
    )
    assert "mcp_servers" not in config_of(arguments(TERMS, "/s.json", None))


def test_commands_are_told_no_keys() -> None:
    policy = config_of(arguments(replace(TERMS, hidden=("MY_KEY",)), "/s", None))["shell_environment_policy"]
    assert {"OPENAI_API_KEY", "CODEX_API_KEY", "CODEX_ACCESS_TOKEN", "MY_KEY"} <= set(policy["exclude"])
    assert policy["ignore_default_excludes"] is False


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_any_name_is_written_as_toml(name: str) -> None:
    config = config_of(arguments(replace(TERMS, cwd=name, servers=(name,)), "/s", None))
    assert list(config["projects"]) == list(config["mcp_servers"]) == [name]


def test_a_session_is_its_thread_and_what_it_used() -> None:
    assert named(SESSION) == f"{THREAD}+200,50,14"
    assert session_of(named(SESSION)) == SESSION
    assert session_of(THREAD) == CodexThread(THREAD, Usage())
    for name in (
        None,
        "",
        "nonsense",
        "--last",
        f"{THREAD}\n",
        f"{THREAD}+1",
        f"{THREAD} --dangerously",
        THREAD.upper(),
    ):
        assert session_of(name) is None


@pytest.fixture
def driver(tmp_path: Path) -> CodexDriver:
    """Give a driver for a user with a home of their own."""
    (tmp_path / ".codex").mkdir()
    environ = {"HOME": str(tmp_path), "PATH": str(tmp_path / "bin")}
    folder = str(tmp_path)
    around = Surroundings(folder, folder, folder, environ, GuardedProcesses(str(tmp_path)), Masker({}))
    launch = Launch((), 60, 60, ("MY_KEY", "PLAIN"), "gpt-x", writable=("~/cache", "own"), tools=("network",))
    return CodexDriver(launch, around)


def call_in(folder: Path, session_id: str | None = None) -> AgentCall:
    """Make a reviewer's call."""
    brief = Brief("RQ-1", "A request", "Do it.", "P1")
    return AgentCall(Role.QA, brief, "RUN-1", str(folder), None, (), 1, session_id=session_id)


def test_a_call_has_its_schema_and_its_prompt(driver: CodexDriver, tmp_path: Path) -> None:
    (tmp_path / ".codex/config.toml").write_text('[mcp_servers.docs]\ncommand = "x"\n')
    start = driver.start(call_in(tmp_path), str(tmp_path))
    schema_path = start.argv[start.argv.index("--output-schema") + 1]
    assert json.loads(Path(schema_path).read_text()) == SCHEMAS[Role.QA]
    assert "Do it." in start.stdin.decode()
    assert "AGENTS.md" not in start.stdin.decode()
    assert start.writable is None  # codex brings its own sandbox, which could not be set up inside another
    config = config_of(start.argv)
    assert config["mcp_servers"] == {"docs": {"enabled": False}}
    assert "MY_KEY" in config["shell_environment_policy"]["exclude"]
    assert "PLAIN" not in config["shell_environment_policy"]["exclude"]
    assert {"OPENAI_API_KEY", "CODEX_HOME"} <= set(start.env_names)
    assert start.argv[start.argv.index("-m") + 1] == "gpt-x"
    assert config["sandbox_workspace_write"]["network_access"] is True
    assert config["sandbox_workspace_write"]["writable_roots"] == [f"{tmp_path}/cache", f"{tmp_path}/own"]


@pytest.mark.spec("AGT-4")
def test_without_a_home_in_the_environment_the_users_counts_and_not_the_folder_one_is_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder, server in (("here", "branch"), ("home", "user")):
        (tmp_path / folder / ".codex").mkdir(parents=True)
        (tmp_path / folder / ".codex/config.toml").write_text(f'[mcp_servers.{server}]\ncommand = "x"\n')
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert list(servers_of({}, "/none")) == ["user"]


def test_a_thread_that_goes_on_is_told_what_is_new(driver: CodexDriver, tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Be brief.")
    new, again = (driver.start(call_in(tmp_path, name), str(tmp_path)) for name in ("not-a-thread", named(SESSION)))
    assert "resume" not in new.argv
    assert "AGENTS.md" in new.stdin.decode()
    assert again.argv[1:3] == ("exec", "resume")
    assert "Do it." not in again.stdin.decode()
    assert "AGENTS.md" not in again.stdin.decode()


def test_servers_are_those_of_the_user_and_of_the_machine(tmp_path: Path) -> None:
    environ = {"CODEX_HOME": str(tmp_path)}
    assert list(servers_of(environ, str(tmp_path / "none.toml"))) == []
    (tmp_path / "config.toml").write_text("[mcp_servers.mine]\n[mcp_servers.'odd name']\n")
    (tmp_path / "system.toml").write_text("[mcp_servers.ours]\n")
    assert list(servers_of(environ, str(tmp_path / "system.toml"))) == ["mine", "odd name", "ours"]
    for broken in ("mcp_servers = 7", "= [", "\xff"):
        (tmp_path / "config.toml").write_text(broken, "latin-1")
        assert list(servers_of(environ, str(tmp_path / "none.toml"))) == []


@pytest.mark.spec("AGT-4")
def test_codexs_own_sandbox_lets_the_implementers_tools_write_their_caches(tmp_path: Path) -> None:
    caches = str(tmp_path / "caches")
    environ = {"HOME": str(tmp_path), "PATH": ""}
    folder = str(tmp_path)
    around = Surroundings(folder, folder, folder, environ, GuardedProcesses(folder), Masker({}), caches)
    driver = CodexDriver(Launch((), 60, 60), around)
    start = driver.start(replace(call_in(tmp_path), role=Role.IMPLEMENTER), folder)
    assert config_of(start.argv)["sandbox_workspace_write"]["writable_roots"] == [caches]
    assert start.variables["UV_CACHE_DIR"] == f"{caches}/uv"
    reads = driver.start(call_in(tmp_path), folder)
    assert (config_of(reads.argv)["sandbox_workspace_write"]["writable_roots"], reads.variables) == ([], {})
