"""Settings (CFG): one table, four sources, mistakes with file, key and line."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from aiflow.adapters.toml_settings import find_lines, line_of, load_settings
from aiflow.errors import SettingsError
from aiflow.messages import Texts
from aiflow.settings import BY_NAME, ROLES, TABLE, SettingKind, SettingValue, Source
from aiflow.usecases.project.init import settings_file
from aiflow.usecases.shapes.errors import error_facts

pytestmark = pytest.mark.spec("CFG")


def mistakes(root: Path, text: str = "", environ: dict[str, str] | None = None, flags: tuple[str, ...] = ()) -> Any:
    (root / "aiflow.toml").write_text(text)
    with pytest.raises(SettingsError) as caught:
        load_settings(root, environ or {}, flags)
    return error_facts(caught.value, Texts("en"))["detail"]


def test_everything_has_a_default(tmp_path: Path) -> None:
    settings = load_settings(tmp_path, {})
    assert set(settings.sources.values()) == {Source.DEFAULT}
    assert settings.text("agent.kind") == "claude-code"
    assert settings.integer("locks.ttl_seconds") == 1800


def test_flag_over_environment_over_file_over_default(tmp_path: Path) -> None:
    (tmp_path / "aiflow.toml").write_text("[limits]\nstep_files = 1\nstep_lines = 1\nrole_attempts = 1\n")
    environ = {"AIFLOW_LIMITS_STEP_LINES": "2", "AIFLOW_LIMITS_ROLE_ATTEMPTS": "2"}
    settings = load_settings(tmp_path, environ, ["limits.role_attempts=3"])
    names = ("limits.step_retries", "limits.step_files", "limits.step_lines", "limits.role_attempts")
    assert [settings.integer(name) for name in names] == [3, 1, 2, 3]
    assert [settings.sources[name].value for name in names] == ["default", "file", "environment", "flag"]


def test_a_role_has_its_own_value_or_the_general_one(tmp_path: Path) -> None:
    (tmp_path / "aiflow.toml").write_text(
        '[agent]\nmodel = "big"\n[agent.roles.qa]\nmodel = "small"\nidle_seconds = 5\n'
    )
    settings = load_settings(tmp_path, {})
    assert settings.for_role("planner", "model") == "big"
    assert settings.for_role("qa", "model") == "small"
    assert settings.for_role("qa", "idle_seconds") == 5
    assert settings.for_role("qa", "timeout_seconds") == 1800


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\n\nlangage = 'ja'\n", "aiflow.toml:3: langage: there is no such setting; did you mean language?"),
        (
            "[agent]\n# c\nkind = 'gpt'\n",
            "aiflow.toml:3: agent.kind: 'gpt' is not one of claude-code, codex, acp, command, demo",
        ),
        ("[limits]\nstep_files = '20'\n", "aiflow.toml:2: limits.step_files: has to be a whole number, not '20'"),
        ("[limits]\nrole_attempts = 0\n", "aiflow.toml:2: limits.role_attempts: 0 is not in the range 1 … 1000000000"),
        ("[queue]\npoll_ms = 1\n", "aiflow.toml:2: queue.poll_ms: 1 is not in the range 50 … 1000000000"),
        ("[server]\nport = 99999\n", "aiflow.toml:2: server.port: 99999 is not in the range 0 … 65535"),
        ("[worktree]\n\ncopy = [\n  1,\n]\n", "aiflow.toml:3: worktree.copy: has to be a list of strings, not [1]"),
        ("agent = 'codex'\n", "aiflow.toml:1: agent: is a section: write [agent]"),
        ("commit_requests = 1\n", "aiflow.toml:1: commit_requests: has to be true or false, not 1"),
        ("[limits]\nstep_lines = true\n", "aiflow.toml:2: limits.step_lines: has to be a whole number, not True"),
        ("[agent]\nkind = \n", "aiflow.toml:2: not valid TOML: Invalid value"),
        ('x = """\n', "aiflow.toml: not valid TOML: Unterminated string"),
        ("[agent.roles.boss]\nmodel = ''\n", "aiflow.toml:1: agent.roles.boss: there is no such setting"),
        (
            "[github]\nlanguage = 'ja'\n",
            "aiflow.toml:2: github.language: language belongs above the first [section]; here it is under [github]",
        ),
        (
            "[limits]\nrun_cost_usd = nan\n",
            "aiflow.toml:2: limits.run_cost_usd: nan is not in the range 0 … 1000000000",
        ),
    ],
)
def test_a_mistake_names_file_line_and_key(tmp_path: Path, text: str, expected: str) -> None:
    assert mistakes(tmp_path, text).startswith(expected)


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    told = mistakes(tmp_path, "a = 1\nb = 2\n", {"AIFLOW_AGENT_KIND": "x"}, ("accept=maybe", "nothing=1"))
    assert [line.split(":")[0] for line in told.splitlines()] == [
        "aiflow.toml",
        "aiflow.toml",
        "AIFLOW_AGENT_KIND",
        "-c",
        "-c",
    ]


def test_a_flag_needs_a_value(tmp_path: Path) -> None:
    assert mistakes(tmp_path, flags=("accept",)) == "-c: accept: write KEY=VALUE"


def test_a_line_is_found_also_behind_values_of_several_lines() -> None:
    text = 'a = """\nx = 1\n"""\n[s]\nlist = [\n 1,\n 2,\n]\nx = 1\n[t]\n"quoted key" = 1\ndotted.name = 2\n'
    tomllib.loads(text)
    assert [
        line_of(find_lines(text), name) for name in ("a", "s", "s.list", "s.x", "t.quoted key", "t.dotted.name", "none")
    ] == [
        1,
        4,
        5,
        9,
        11,
        12,
        None,
    ]


def test_every_setting_can_be_set_by_its_variable(tmp_path: Path) -> None:
    samples = {
        SettingKind.TEXT: "x",
        SettingKind.INTEGER: "7",
        SettingKind.NUMBER: "1.5",
        SettingKind.BOOLEAN: "true",
        SettingKind.LIST: "./agent 'two words'",
    }
    for row in TABLE:
        text = next(filter(None, row.choices)) if row.choices else samples[row.kind]
        text = {"store": "aws", "repo": "owner/name", "safe_url": "https://github.example/api/v3"}.get(row.form, text)
        text = f"{row.minimum:g}" if text == "7" and row.minimum > 7 else text
        for variable in row.env_names:
            settings = load_settings(tmp_path, {variable: text})
            assert settings.sources[row.name] is Source.ENVIRONMENT, variable
            assert load_settings(tmp_path, {variable: ""}).sources[row.name] is Source.DEFAULT
    settings = load_settings(tmp_path, {"AIFLOW_AGENT_ARGV": "./agent 'two words'", "AIFLOW_GIT_PUSH": "yes"})
    assert settings.texts("agent.argv") == ("./agent", "two words")
    assert settings.flag("git.push")


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ('["WebFetch","Read"]', ("WebFetch", "Read")),
        (" ['two words', \n 'b',] ", ("two words", "b")),
        ("[]", ()),
        ("WebFetch Read", ("WebFetch", "Read")),
        ("./a [x]", ("./a", "[x]")),
    ],
)
def test_a_list_in_a_flag_or_variable_is_written_as_in_a_shell_or_as_in_the_file(
    tmp_path: Path, text: str, items: tuple[str, ...]
) -> None:
    assert load_settings(tmp_path, {"AIFLOW_AGENT_TOOLS": text}).texts("agent.tools") == items
    assert load_settings(tmp_path, {}, (f"agent.tools={text}",)).texts("agent.tools") == items


@pytest.mark.parametrize("text", ["[WebFetch,Read]", '["a"', "[1, 2]", '["a"]\nkind = "demo"', "[" * 5_000])
def test_a_list_that_begins_as_in_the_file_and_is_none_is_refused(tmp_path: Path, text: str) -> None:
    assert "agent.tools: has to be a list of strings" in mistakes(tmp_path, flags=(f"agent.tools={text}",))


@pytest.mark.parametrize("language", ["en", "ja"])
def test_the_file_that_init_writes_is_read_as_it_was_meant(tmp_path: Path, language: str) -> None:
    values: dict[str, SettingValue] = {row.name: row.default for row in TABLE if row.name != "language"}
    values |= {
        "base_branch": 'a"b',
        "tests.unit": "make 'test' # all",
        "worktree.copy": (".env", "日本"),
        "accept": "auto",
    }
    (tmp_path / "aiflow.toml").write_text(settings_file(Texts(language), values), encoding="utf-8")
    settings = load_settings(tmp_path, {})
    assert {name: settings.values[name] for name in values} == values
    assert {settings.sources[name] for name in values} == {Source.FILE}
    assert settings.sources["language"] is Source.DEFAULT


@pytest.mark.spec("QUE-2")
@pytest.mark.parametrize(
    "store", ["local", "aws", "http://127.0.0.1:8000", "https://[::1]:8000/", "http://store.example"]
)
def test_a_store_is_local_aws_or_a_url(tmp_path: Path, store: str) -> None:
    (tmp_path / "aiflow.toml").write_text(f'[queue]\nstore = "{store}"\n')
    assert load_settings(tmp_path, {}).text("queue.store") == store


@pytest.mark.spec("QUE-2")
@pytest.mark.parametrize(
    "store",
    [
        *("", "Local", "dynamodb", "127.0.0.1:8000", "localhost", "ftp://127.0.0.1", "http://", "http://:8000"),
        *("http://127.0.0.1:eighty", "http://127.0.0.1:0", "http://127.0.0.1:99999", "http://[::1:8000", "http://a b/"),
        *("http://store.example/?key=1", "http://store.example/#a", "http://store.例", "file:///tmp/store"),
    ],
)
def test_anything_else_is_no_store(tmp_path: Path, store: str) -> None:
    told = mistakes(tmp_path, f'# mine\n[queue]\nstore = "{store}"\n')
    assert told.startswith("aiflow.toml:3: queue.store: has to be local, aws or a URL such as")


def test_a_password_in_the_address_of_a_store_is_not_shown(tmp_path: Path) -> None:
    told = mistakes(tmp_path, flags=("queue.store=http://me:hunter2@store.example:8000",))
    assert told.endswith("not '…@store.example:8000'")


@pytest.mark.spec("SEC")
@pytest.mark.parametrize(
    "url",
    [
        *("http://github.example", "http://127.0.0.1.example", "https://", "github.example", "https://a b/"),
        *("https://me:hunter2@github.example/api/v3", "https://github.example/?a=1", "ftp://localhost"),
    ],
)
def test_a_token_is_sent_to_https_or_this_machine_only(tmp_path: Path, url: str) -> None:
    told = mistakes(tmp_path, flags=(f"github.api_url={url}",))
    assert "github.api_url: has to be an address that begins with https://" in told
    assert "hunter2" not in told
    for good in ("https://github.example/api/v3", "http://127.0.0.1:4000", "http://[::1]:1/x", ""):
        assert load_settings(tmp_path, {}, (f"github.api_url={good}",)).text("github.api_url") == good


@pytest.mark.spec("ISS-1")
@pytest.mark.parametrize(
    "repo", ["name", "a/b/c", "a/..", "a/.", "/b", "a/", "a b/c", "../c", "a/b?c", "a%2f/b", "https://github.com/a/b"]
)
def test_a_repository_is_an_owner_and_a_name(tmp_path: Path, repo: str) -> None:
    told = mistakes(tmp_path, flags=(f"github.repo={repo}",))
    assert "github.repo: has to be owner/name" in told
    assert load_settings(tmp_path, {}, ("github.repo=my-org/.github",)).text("github.repo") == "my-org/.github"


@pytest.mark.spec("QUE-5")
@pytest.mark.parametrize("name", ["my project", "-a", ".a", "a/b", "日本", "a" * 65, "a\\n"])
def test_a_namespace_has_to_fit_into_keys_and_file_names(tmp_path: Path, name: str) -> None:
    told = mistakes(tmp_path, f'namespace = "{name}"\n')
    assert told.startswith("aiflow.toml:1: namespace: has to be letters, digits")
    (tmp_path / "aiflow.toml").write_text(f'namespace = "{"a" * 64}"\n')
    assert load_settings(tmp_path, {"AIFLOW_NAMESPACE": "stable.2-x_y"}).text("namespace") == "stable.2-x_y"


# What the clauses speak of without naming it: variables to pass on, an idle limit (AGT-4), hooks and signing (GIT-1).
ADDED = {
    *("agent.env", "tests.env", "tests.idle_seconds", "git.hooks", "git.sign"),
    *(
        "agent.sandbox",
        "agent.writable",
        "agent.tools",
        "agent.max_turns",
        "agent.linger_seconds",
        "limits.run_tokens",
        "limits.run_agent_calls",
        "limits.run_minutes",
    ),
    *("agent.mode", "agent.permissions"),
    *("agent.linger_seconds", "limits.run_tokens", "limits.run_agent_calls", "limits.run_minutes"),
    *("limits.session_tokens", "limits.session_agent_calls"),
    *("clean.after_days", "clean.runs_after_days", "notify.command", "notify.timeout_seconds"),
}


def test_the_names_are_those_of_the_specification() -> None:
    spec = (Path(__file__).parents[2] / "docs/spec.md").read_text()
    block = spec.split("```toml\n")[1].split("```")[0]

    def flatten(tables: dict[str, Any], prefix: str = "") -> dict[str, Any]:
        flat: dict[str, Any] = {}
        for key, value in tables.items():
            flat |= flatten(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
        return flat

    named = flatten(tomllib.loads(block))
    ours = {name for name in BY_NAME if not any(f".{role}." in name for role in ROLES)} | {"agent.roles.planner.model"}
    assert set(named) == ours - ADDED
    examples = {
        "namespace",
        "base_branch",
        "language",
        "agent.argv",
        "tests.unit",
        "worktree.setup",
        "worktree.copy",
        "github.repo",
    }
    for name, value in named.items():
        if name not in examples:
            assert BY_NAME[name].default == (tuple(value) if isinstance(value, list) else value), name


@pytest.mark.spec("REQ-2")
@pytest.mark.parametrize("folder", ["requests", "requests/", "docs/requests", ".requests", "依頼", "a b"])
def test_the_folder_of_the_requests_is_any_below_the_root(tmp_path: Path, folder: str) -> None:
    assert load_settings(tmp_path, {"AIFLOW_REQUESTS_DIR": folder}).requests_dir == folder.rstrip("/")


@pytest.mark.spec("REQ-2")
@pytest.mark.parametrize(
    "folder",
    [
        "",
        "/",
        ".",
        "..",
        "/requests",
        "../requests",
        "a//b",
        "./a",
        "a/../b",
        ".git",
        ".Git/x",
        ".aiflow/x",
        "runs",
        "a\\b",
    ],
)
def test_a_folder_of_requests_outside_the_repository_or_in_its_state_is_refused(tmp_path: Path, folder: str) -> None:
    told = mistakes(tmp_path, flags=(f"requests_dir={folder}",))
    assert told.startswith("-c: requests_dir: has to be a folder below the repository's root")
