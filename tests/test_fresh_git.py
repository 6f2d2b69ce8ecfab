"""What the tests' repositories are made of is what git makes, as git itself sees it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import fresh_git

FILES = {".gitignore": "/runs/\n", "app.txt": "app\n", "a/b.md": "b\n", "a-b": "", "a.c": "c\n", "a/d/ü": "ü\n"}


def _git(root: Path, *args: str) -> str:
    done = subprocess.run(["git", *args], cwd=root, check=True, capture_output=True, text=True)
    return done.stdout + done.stderr


def _fill(root: Path) -> Path:
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    with (root / ".git/config").open("a") as config:
        config.write(fresh_git.CONFIG)
    return root


def test_a_first_commit_is_the_one_that_git_makes(tmp_path: Path) -> None:
    ours, gits = tmp_path / "ours", tmp_path / "gits"
    ours.mkdir()
    fresh_git.make_repository(ours)
    subprocess.run(["git", "init", "-q", "-b", "main", str(gits)], check=True)
    assert fresh_git.commit_first(_fill(ours), FILES, "first")
    # Asked before git writes the index anew: nothing is damaged, and no file has to be read to be known as unchanged.
    assert "error" not in _git(ours, "fsck", "--strict")
    assert _git(ours, "diff-files") == ""
    _git(_fill(gits), "add", "-A")
    _git(gits, "commit", "-qm", "first")
    for command in (
        ("ls-files", "--stage"),
        ("log", "--format=%T %an %ae %cn %ce %B %D"),
        ("reflog", "--format=%gs"),
        ("config", "--local", "--list"),
        ("status", "--porcelain=v2", "--branch", "--untracked-files=all"),
    ):
        said = [_git(root, *command) for root in (ours, gits)]
        if command[0] == "status":
            said = [text.partition("# branch.head")[2] for text in said]  # the commits' times may differ
        assert said[0] == said[1]


def test_what_has_commits_already_is_left_to_git(tmp_path: Path) -> None:
    fresh_git.make_repository(tmp_path)
    assert fresh_git.commit_first(_fill(tmp_path), FILES, "first")
    assert not fresh_git.commit_first(tmp_path, FILES, "second")


def test_another_branch_is_left_to_git(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "-b", "other", str(tmp_path)], check=True)
    assert not fresh_git.commit_first(_fill(tmp_path), FILES, "first")
