"""A repository that real git made once, copied for each test: to make it anew is a good part of what a test costs."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

# A commit of the test's own looks for what to tidy up afterwards, in a process more.
QUIET = ("-c", "maintenance.auto=false", "-c", "gc.auto=0")


def git(cwd: Path | str, *args: str, code: int = 0) -> str:
    """Call git as a user does, and check its exit code."""
    done = subprocess.run(["git", *QUIET, *args], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == code, f"git {args}: {done.stdout}{done.stderr}"
    return done.stdout.strip()


def be_ada(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have nothing of the user's git but a name."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "Ada")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "ada@example.com")


def make_template(folder: Path, fill: Callable[[Path], None]) -> Path:
    """Make `repository` in a folder, filled by a test's own hand and committed."""
    root = folder / "repository"
    git(folder, "init", "-q", "-b", "main", "--template=", str(root))
    (root / ".git/info").mkdir()
    fill(root)
    git(root, "add", "-A")
    git(root, "commit", "-qm", "first")
    git(root, "repack", "-adq")  # a folder for each object is what takes longest to copy
    return folder


def copy_template(template: Path, folder: Path) -> Path:
    """Copy a template with the worktrees beside its repository, as if they had been made in this folder."""
    shutil.copytree(template, folder, symlinks=True, dirs_exist_ok=True)
    root = folder / "repository"
    places = [root]
    for entry in root.glob(".git/worktrees/*"):
        pointer = Path((entry / "gitdir").read_text().strip().replace(str(template), str(folder)))
        (entry / "gitdir").write_text(f"{pointer}\n")
        pointer.write_text(f"gitdir: {entry}\n")
        places.append(pointer.parent)
    for place in places:  # the copies are other files than those that git has looked at
        git(place, "update-index", "-q", "--refresh")
    return root


def head_of(where: Path) -> str:
    """Return the commit that a checkout of a branch stands at, without asking git."""
    dot_git = where / ".git"
    git_dir = dot_git if dot_git.is_dir() else Path(dot_git.read_text().strip().removeprefix("gitdir: "))
    head = (git_dir / "HEAD").read_text().strip()
    common = git_dir / (git_dir / "commondir").read_text().strip() if (git_dir / "commondir").exists() else git_dir
    ref = common / head.removeprefix("ref: ")
    return ref.read_text().strip() if head.startswith("ref: ") and ref.exists() else git(where, "rev-parse", "HEAD")


def contents(root: Path, commit: str) -> dict[str, str]:
    """Return every file of a commit with its text, by two calls of git however many there are."""
    listed = git(root, "ls-tree", "-r", "-z", commit).split("\0")
    entries = [(name, words.split()) for words, _, name in (item.partition("\t") for item in listed) if name]
    blobs = [(name, oid) for name, (_, kind, oid) in entries if kind == "blob"]
    asked = "".join(f"{oid}\n" for _, oid in blobs).encode()
    told = subprocess.run(["git", "cat-file", "--batch"], cwd=root, input=asked, capture_output=True, check=True).stdout
    found = {}
    for name, _ in blobs:
        head, _, told = told.partition(b"\n")
        size = int(head.split()[2])
        found[name], told = told[:size].decode("utf-8", "surrogateescape").strip(), told[size + 1 :]
    return found
