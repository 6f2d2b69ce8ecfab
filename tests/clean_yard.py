"""A checkout with runs that are over, made by hand: real git, real files, the real engine, no agent."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from aiflow.adapters.git.worktrees.worktrees import GitWorkspaces
from aiflow.domain.agents.call import Brief
from aiflow.domain.clean.cleaning import ItemKind
from aiflow.domain.lifecycle import RunState
from aiflow.domain.runs.run import Happening, Run, RunError
from aiflow.domain.runs.worktree import Place, branch_name
from aiflow.messages import Texts
from aiflow.usecases.clean.clean_up import Cleaned, CleanWish, clean_up, plan_clean_up, rules_for
from aiflow.usecases.engine import Engine, Voice
from aiflow.wiring import build_engine, project_at, read_settings
from builders import write_request

NOW = datetime.now(UTC)


def git(cwd: Path | str, *args: str, code: int = 0) -> str:
    """Call git as the user does."""
    done = subprocess.run(["git", *args], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == code, f"git {args}: {done.stdout}{done.stderr}"
    return done.stdout.strip()


def everything_in(*folders: Path) -> dict[str, tuple[int, int, bytes]]:
    """Every file and folder, git's own too, with its mode, its time and its content."""
    found = {}
    for top in folders:
        for folder, folders_in, files in os.walk(top):
            for name in (".", *files, *folders_in):
                path = Path(folder, name)
                status = path.lstat()
                content = os.readlink(path).encode() if path.is_symlink() else b""
                content = path.read_bytes() if path.is_file() and not path.is_symlink() else content
                found[os.path.normpath(path)] = (status.st_mode, status.st_mtime_ns, content)
    return found


class Yard:
    """A repository whose runs are over."""

    def __init__(self, root: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in [name for name in os.environ if name.startswith(("GIT_", "AIFLOW"))]:
            monkeypatch.delenv(name)
        people = {f"GIT_{who}_{what}": "ada@localhost" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        own = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "XDG_STATE_HOME": str(folder / "state")}
        for name, value in {**people, **own}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr("aiflow.adapters.git.git_files._REF_LOCK_SECONDS", 0.1)
        self.root, self.state = root, folder / "state"
        (root / ".gitignore").write_text("/runs/\n/.aiflow/\n*.ignored\n")
        (root / "app.txt").write_text("app\n")
        (root / "requests").mkdir()
        git(root, "add", "-A")
        git(root, "commit", "-qm", "first")
        self.count = 0

    @property
    def engine(self) -> Engine:
        """The engine of another process: nothing is remembered."""
        project = project_at(str(self.root))
        return build_engine(project, read_settings(str(self.root), ()), project.journal, Voice(Texts("en")))

    @property
    def trees(self) -> Path:
        """The folder of the worktrees."""
        return Path(self.engine.workshop.worktree_path("RUN")).parent

    def git(self, *args: str, code: int = 0) -> str:
        """Call git in the repository."""
        return git(self.root, *args, code=code)

    def run(
        self,
        request_id: str = "RQ-1",
        *,
        status: str | None = "done",
        state: str = "DONE",
        reason: str | None = None,
        days: float = 30,
        merged: bool = True,
        commits: bool = True,
        **fields: Any,
    ) -> Run:
        """Make a run that ended so many days ago, with its worktree, its branch and a commit."""
        self.count += 1
        if status is not None:
            write_request(self.root, request_id, None, priority="P1", status=status)
        when = NOW - timedelta(days=days)
        run_id = f"RUN-{when:%Y%m%d-%H%M%S}-{self.count:06x}"
        path = self.engine.workshop.worktree_path(run_id)
        place = Place(run_id, path, branch_name(request_id, run_id), "main", self.git("rev-parse", "main"))
        GitWorkspaces(str(self.root), run_id).prepare(place, place.base_commit)
        if commits:
            Path(path, f"{run_id}.txt").write_text("work\n")
            git(path, "add", "-A")
            git(path, "commit", "-qm", f"work of {run_id}")
            if merged:
                self.git("merge", "-q", "--no-ff", "-m", f"Merge {run_id}", place.branch)
        error = None if state == "DONE" else RunError(reason or "CANCELLED", "")
        known = Run(request_id, run_id, place, when, RunState(state), error=error, is_prepared=True)
        run = replace(known, history=(Happening(when, "ENDED"),), **fields)
        self.engine.runs.create(run, Brief(request_id, "", "", "P1"))
        return run

    def folder(self, run: Run) -> Path:
        """A run's own files."""
        return self.root / "runs" / run.request_id / run.run_id

    def keep(self, run: Run, kind: str = "wip", name: str = "S01") -> str:
        """Keep something under a ref of a run, as an unfinished step does."""
        ref = f"refs/aiflow/{kind}/{run.run_id}/{name}"
        tree = self.git("rev-parse", f"{run.place.branch}^{{tree}}")
        self.git("update-ref", ref, self.git("commit-tree", tree, "-m", "Kept"))
        return ref

    def clean(self, *names: str, days: int | None = None, unmerged: bool = False) -> Cleaned:
        """`aiflow clean`, by another process."""
        engine, wish = self.engine, CleanWish(frozenset(names), days, unmerged)
        rules = rules_for(engine, wish)
        return clean_up(engine, plan_clean_up(engine, wish, rules), rules)

    def refs(self) -> list[str]:
        """Every ref that is ours."""
        return self.git("for-each-ref", "--format=%(refname)", "refs/heads/aiflow", "refs/aiflow").splitlines()

    def entries(self) -> list[str]:
        """The worktrees that git knows, the main one apart."""
        lines = self.git("worktree", "list", "--porcelain").splitlines()
        return [line.removeprefix("worktree ") for line in lines if line.startswith("worktree ")][1:]


def told(cleaned: Cleaned, what: str = "removed") -> set[tuple[ItemKind, str]]:
    """What went (or was kept), and why."""
    return {(item.kind, str(item.why)) for item in getattr(cleaned, what)}
