"""How claude is called: what each role may do is said at every call, resumed or not."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from aiflow.adapters.agents.call.command import Launch, Surroundings
from aiflow.adapters.agents.call.fence import HIDDEN, SHELL_PREFIX, write_wrapper
from aiflow.adapters.agents.call.stream import Start
from aiflow.adapters.agents.claude.agent import ClaudeDriver, is_as_in
from aiflow.adapters.agents.claude.arguments import ClaudeTerms, arguments
from aiflow.adapters.agents.claude.environment import env_names, hidden_names
from aiflow.adapters.processes.launch import GuardedProcesses
from aiflow.adapters.secrets import Masker
from aiflow.domain.agents.answer_schema import SCHEMAS
from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.call import AgentCall, Brief
from aiflow.domain.agents.ceilings import Budget

SESSION = "0f8c5d3e-1111-4222-8333-444455556666"


def value(argv: tuple[str, ...], flag: str) -> str:
    """What follows a flag."""
    assert argv.count(flag) == 1, flag
    return argv[argv.index(flag) + 1]


def values(argv: tuple[str, ...], flag: str) -> list[str]:
    """Everything that follows a flag, up to the next."""
    rest = argv[argv.index(flag) + 1 :]
    end = next((number for number, word in enumerate(rest) if word.startswith("--")), len(rest))
    return list(rest[:end])


@pytest.mark.spec("AGT-1", "AGT-4")
@pytest.mark.parametrize("session_id", [None, SESSION])
@pytest.mark.parametrize("role", Role)
def test_permissions_are_said_at_every_call(role: Role, session_id: str | None) -> None:
    argv = arguments(ClaudeTerms(role, session_id=session_id, writable=("/state/tmp",)))
    assert argv[:5] == ("-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages")
    assert value(argv, "--permission-mode") == "dontAsk"
    reading = ["Read", "Glob", "Grep"]
    commands = [] if role is Role.PLANNER else ["Bash"]
    is_writer = role is Role.IMPLEMENTER
    tools = [*reading, *(["Edit", "Write", "NotebookEdit"] if is_writer else []), *commands]
    assert value(argv, "--tools").split(",") == tools
    rules = [*reading, *commands, *(["Edit(./**)", "Edit(//state/tmp/**)"] if is_writer else [])]
    assert values(argv, "--allowedTools") == rules
    assert "--strict-mcp-config" in argv
    assert json.loads(value(argv, "--json-schema")) == SCHEMAS[role]
    assert json.loads(value(argv, "--settings")) == {"disableAllHooks": True, "sandbox": {"enabled": False}, "env": {}}
    assert ("--resume" in argv, SESSION in argv) == (session_id is not None, session_id is not None)
    assert not {"--dangerously-skip-permissions", "--model", "--max-turns", "--max-budget-usd"} & set(argv)


@pytest.mark.spec("AGT-1", "AGT-4")
def test_what_the_settings_say_is_passed_on() -> None:
    tools = ("WebFetch", "Bash(git log:*)", "Bash(git show:*)", "mcp__docs")
    terms = ClaudeTerms(Role.PLANNER, model="opus", max_turns=7, cost_usd=1 / 3, tools=tools, variables={"A": "1"})
    argv = arguments(terms)
    assert (value(argv, "--model"), value(argv, "--max-turns")) == ("opus", "7")
    assert value(argv, "--max-budget-usd") == "0.3333"
    assert value(argv, "--tools") == "Read,Glob,Grep,WebFetch,Bash"
    assert values(argv, "--allowedTools") == ["Read", "Glob", "Grep", *tools]
    assert "--strict-mcp-config" not in argv
    assert json.loads(value(argv, "--settings"))["env"] == {"A": "1"}
    assert value(arguments(ClaudeTerms(Role.QA, cost_usd=0.0)), "--max-budget-usd") == "0.0001"  # it takes no zero


@pytest.mark.spec("AGT-4", "SEC")
@pytest.mark.parametrize("role", [Role.QA, Role.PLANNER])
def test_a_reader_has_no_commands_where_the_kernel_does_not_keep_them_from_writing(role: Role) -> None:
    argv = arguments(ClaudeTerms(role, is_confined=False))
    assert value(argv, "--tools").split(",") == values(argv, "--allowedTools") == ["Read", "Glob", "Grep"]


def test_a_sandbox_of_the_users_own_stays_where_the_kernel_has_none() -> None:
    free = json.loads(value(arguments(ClaudeTerms(Role.IMPLEMENTER, is_confined=False)), "--settings"))
    assert "sandbox" not in free


def test_settings_that_an_agent_wrote_do_not_count() -> None:
    assert value(arguments(ClaudeTerms(Role.QA)), "--setting-sources") == "user,project,local"
    assert value(arguments(ClaudeTerms(Role.QA, is_project_trusted=False)), "--setting-sources") == "user"


@pytest.mark.parametrize(
    ("root", "worktree", "is_trusted"),
    [
        ({}, {}, True),
        ({".claude/settings.json": "{}"}, {}, True),
        ({".claude/settings.json": "{}"}, {".claude/settings.json": "{}", "CLAUDE.md": "x"}, True),
        ({}, {".claude/settings.json": "{}"}, False),
        ({".claude/settings.json": "{}"}, {".claude/settings.json": "{ }"}, False),
        ({".mcp.json": "{}"}, {".mcp.json": "{}", ".claude/settings.local.json": "{}"}, False),
        ({}, {".mcp.json": "{}"}, False),
        ({}, {".claude": "no folder"}, True),
    ],
)
def test_the_projects_settings_count_as_they_are_in_the_users_checkout(
    tmp_path: Path, root: dict[str, str], worktree: dict[str, str], is_trusted: bool
) -> None:
    for name, files in (("root", root), ("worktree", worktree)):
        (tmp_path / name).mkdir()
        for path, text in files.items():
            (tmp_path / name / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name / path).write_text(text)
    assert is_as_in(str(tmp_path / "root"), str(tmp_path / "worktree")) is is_trusted


def test_settings_that_cannot_be_read_are_not_trusted(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".mcp.json")
    assert not is_as_in(str(tmp_path), str(tmp_path))


@pytest.mark.spec("AGT-4", "SEC")
def test_a_clouds_keys_are_given_only_where_the_model_is_there() -> None:
    aws = {"AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"}
    assert {"ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CONFIG_DIR"} <= set(env_names(aws))
    assert not aws & set(env_names(aws))
    assert aws | {"CLAUDE_CODE_USE_BEDROCK"} <= set(env_names({*aws, "CLAUDE_CODE_USE_BEDROCK"}))
    regions = env_names({"CLAUDE_CODE_USE_VERTEX", "VERTEX_REGION_CLAUDE_X"})
    assert {"VERTEX_REGION_CLAUDE_X", "GOOGLE_APPLICATION_CREDENTIALS"} <= set(regions)
    assert "ANTHROPIC_FOUNDRY_API_KEY" in env_names({"CLAUDE_CODE_USE_FOUNDRY"})


@pytest.mark.spec("SEC")
def test_keys_are_claudes_alone_unless_the_settings_share_them() -> None:
    hidden = hidden_names(env_names({"CLAUDE_CODE_USE_BEDROCK"}), ["AWS_SECRET_ACCESS_KEY"])
    assert {"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "AWS_SESSION_TOKEN"} <= set(hidden)
    assert "CLAUDE_CODE_MESSAGING_TOKEN" in hidden
    assert not {"AWS_SECRET_ACCESS_KEY", "ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL", "PATH"} & set(hidden)


@pytest.fixture
def start(tmp_path: Path) -> Callable[..., Start]:
    """Give a function that starts a call of a role."""
    for name in ("root", "worktree", "scratch"):
        (tmp_path / name).mkdir()
    environ = {"HOME": str(tmp_path / "home"), "PATH": str(tmp_path), "ANTHROPIC_API_KEY": "k" * 9}
    processes = GuardedProcesses(str(tmp_path / "guards"))
    around = Surroundings(str(tmp_path / "root"), str(tmp_path), str(tmp_path), environ, processes, Masker(environ))

    def begin(launch: Launch | None = None, **more: object) -> Start:
        brief = Brief("RQ-1", "Title", "Body", "P1", ())
        call = AgentCall(Role.QA, brief, "RUN-1", str(tmp_path / "worktree"), None, (), 1, **more)  # type: ignore[arg-type]
        driver = ClaudeDriver(launch or Launch((), 60, 60), around)
        return driver.start(call, str(tmp_path / "scratch"))

    return begin


@pytest.mark.spec("RUN-4", "AGT-4")
def test_a_session_is_resumed_with_what_is_new(start: Callable[..., Start]) -> None:
    first = start()
    assert b"Body" in first.stdin
    again = start(session_id=f"{SESSION}+540", budget=Budget(cost_usd=2))
    assert b"Body" not in again.stdin
    assert (value(again.argv, "--resume"), value(again.argv, "--max-budget-usd")) == (SESSION, "2.0000")
    odd = start(session_id="--dangerously-skip-permissions")
    assert "--resume" not in odd.argv
    assert b"Body" in odd.stdin


@pytest.mark.spec("SEC")
def test_no_key_stands_in_the_arguments_and_settings_cannot_lift_the_wrapper(start: Callable[..., Start]) -> None:
    begun = start()
    assert begun.argv[0] == "claude"
    assert "kkkkkkkkk" not in " ".join(begun.argv)
    env = json.loads(value(begun.argv, "--settings"))["env"]
    assert env[SHELL_PREFIX] == begun.variables[SHELL_PREFIX]
    assert Path(env[SHELL_PREFIX]).stat().st_mode & 0o777 == 0o700
    assert "ANTHROPIC_API_KEY" in env[HIDDEN].split()


def test_instructions_that_claude_does_not_read_by_itself_are_named(
    start: Callable[..., Start], tmp_path: Path
) -> None:
    (tmp_path / "worktree/CLAUDE.md").write_text("x")
    assert b"CLAUDE.md" not in start().stdin
    (tmp_path / "worktree/.mcp.json").write_text("{}")
    begun = start()
    assert b"instructions for whoever works on it in `CLAUDE.md`" in begun.stdin
    assert value(begun.argv, "--setting-sources") == "user"


@pytest.mark.spec("SEC")
def test_commands_do_not_see_what_is_hidden(tmp_path: Path) -> None:
    import subprocess

    wrapper = write_wrapper(str(tmp_path / "shell"))
    environ = {"A_KEY": "secret", "OTHER": "told", HIDDEN: "A_KEY B_KEY", "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [wrapper, 'echo "$A_KEY|$OTHER|$AIFLOW_HIDDEN"; exit 3'],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("|told|\n", 3)
