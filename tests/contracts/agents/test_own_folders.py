"""What agent programs keep for themselves (AGT-4): enough to work, and no more."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from aiflow.adapters.agents.call.own_folders import own_folders, program_name


@pytest.mark.parametrize(
    ("argv", "name"),
    [
        ("opencode acp", "opencode"),
        ("/usr/local/bin/gemini --acp", "gemini"),
        ("npx -y @google/gemini-cli@1.2 --acp", "gemini"),
        ("npx @zed-industries/claude-code-acp", "claude"),
        ("env FOO=bar node --no-warnings ./dist/my-agent.mjs", "my-agent"),
        ("uvx kimi-cli acp", "kimi-cli"),
        ("bun x goose", "goose"),
        ("npx", ""),
        ("", ""),
    ],
)
def test_a_program_is_known_by_its_name_whoever_starts_it(argv: str, name: str) -> None:
    assert program_name(argv.split()) == name


@pytest.mark.spec("AGT-4")
def test_each_program_has_its_own_folders_which_are_made(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path)}

    def folders_of(*argv: str, **more: str) -> set[str] | None:
        folders = own_folders(argv, environ | more)
        assert all(map(os.path.isdir, folders or ()))
        return None if folders is None else {os.path.relpath(folder, tmp_path) for folder in folders}

    assert folders_of("claude") == {".claude"}
    assert folders_of("claude", CLAUDE_CONFIG_DIR=str(tmp_path / "mine")) == {"mine"}
    assert folders_of("npx", "-y", "@zed-industries/claude-code-acp") == {".claude"}
    assert folders_of("gemini", "--acp") == {".gemini"}
    assert folders_of("opencode", "acp") == {f".{name}/opencode" for name in ("local/share", "local/state", "cache")}
    assert (tmp_path / ".config/opencode").is_dir()
    assert folders_of("opencode", XDG_DATA_HOME=f"{tmp_path}/data", XDG_STATE_HOME="no/path") == {
        *("data/opencode", ".local/state/opencode", ".cache/opencode")
    }
    assert folders_of("/somewhere/codex", "exec") is None
    assert folders_of("codex-acp") is None


def test_of_another_program_only_what_is_there_already(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path)}
    assert own_folders(("goose", "acp"), environ) == ()
    assert own_folders(("npx",), environ) == ()
    assert list(tmp_path.iterdir()) == []
    (tmp_path / ".goose").write_text("a file")
    (tmp_path / ".local/share/goose").mkdir(parents=True)
    assert own_folders(("goose", "acp"), environ) == (str(tmp_path / ".local/share/goose"),)


def test_a_folder_that_cannot_be_made_is_left_to_the_program(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    assert own_folders(("claude",), {"HOME": str(tmp_path / "home")}) == (str(tmp_path / "home/.claude"),)
