"""The project's own folder: where its root is, and the files that `init` makes there."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from aiflow.adapters.atomic_files import create_file, guarded, is_inside, replace_file, state_dir, translated
from aiflow.errors import EnvironmentProblemError
from aiflow.settings import FILE_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def find_root(start: Path | str) -> str:
    """Find the nearest project at or above a folder: an `aiflow.toml` or a repository; else a `requests/` here."""
    here = _existing_folder(start)
    for folder in _upwards(here):
        if os.path.exists(f"{folder}/{FILE_NAME}") or os.path.exists(f"{folder}/.git"):
            _refuse_worktree(folder)
            return folder
    if os.path.isdir(f"{here}/requests"):
        return here
    raise EnvironmentProblemError(reason_code="PROJECT_NOT_FOUND", path=here)


def _refuse_worktree(folder: str) -> None:
    """Send who is in a run's worktree to the project itself: its backlog is there, not in the run's copy of it."""
    if not os.path.basename(folder).startswith("RUN-") or not os.path.isfile(f"{folder}/.git"):
        return
    with translated(folder), open(f"{folder}/.git", encoding="utf-8", errors="surrogateescape") as file:
        project = file.read().removeprefix("gitdir:").strip().partition("/.git/worktrees/")[0]
    raise EnvironmentProblemError(reason_code="PROJECT_NOT_FOUND", path=folder, commands=(f"cd {project}",))


def find_repository(start: Path | str) -> str:
    """Find the git repository at or above a folder."""
    here = _existing_folder(start)
    for folder in _upwards(here):
        if os.path.exists(f"{folder}/.git"):
            return folder
    raise EnvironmentProblemError(reason_code="NOT_A_REPOSITORY", path=here)


def _upwards(folder: str) -> Iterator[str]:
    """Yield a folder and everything above it."""
    yield folder
    while (above := os.path.dirname(folder)) != folder:
        folder = above
        yield folder


def _existing_folder(start: Path | str) -> str:
    with translated(start):
        folder = os.path.realpath(start, strict=True)
    if not os.path.isdir(folder):
        raise EnvironmentProblemError(reason_code="PROJECT_NOT_FOUND", path=folder)
    return folder


class ProjectFolder:
    """Makes files in a project, never over existing ones."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def make_state_folder(self, name: str) -> Path:
        """Return a folder of the checkout's own state, made if missing."""
        with translated(self._root):
            return state_dir(self._root, name)

    def create(self, path: str, text: str) -> bool:
        """Create a file with its folders; False if it exists already."""
        target = self._root / path
        with translated(target):
            if not is_inside(self._root, target):
                raise EnvironmentProblemError(reason_code="REQUESTS_DIR_MISSING", path=str(target.parent))
            if os.path.lexists(target):
                return False
            target.parent.mkdir(parents=True, exist_ok=True)
            return create_file(target, text.encode("utf-8"), state_dir(self._root, "tmp"))

    def add_lines(self, path: str, lines: tuple[str, ...]) -> tuple[str, ...]:
        """Add the lines that a text file lacks, in its own line endings; return those added."""
        target = (self._root / path).resolve()
        with translated(target), guarded(state_dir(self._root, "locks") / "project.guard"):
            before = target.read_bytes() if target.exists() else b""
            eol = b"\r\n" if b"\r\n" in before else b"\n"
            present = {line.strip().strip(b"/") for line in before.splitlines()}
            missing = tuple(line for line in lines if line.encode().strip(b"/") not in present)
            if missing:
                gap = eol if before and not before.endswith(b"\n") else b""
                after = before + gap + b"".join(line.encode() + eol for line in missing)
                replace_file(target, after, state_dir(self._root, "tmp"), expected=before if target.exists() else None)
        return missing
