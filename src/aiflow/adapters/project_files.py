"""The project's own folder: where its root is, and the files that `init` makes there."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from aiflow.adapters.files.atomic_files import STATE_DIR, create_file, is_inside, refuse_link, state_dir, translated
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
    from aiflow.domain.next_action import shell

    raise EnvironmentProblemError(reason_code="PROJECT_NOT_FOUND", path=folder, commands=(shell(f"cd {project}"),))


# Where aiflow keeps what it believes.
_PARTS = ("locks", "control", "guards", "activity", "tmp")
STATE_FOLDERS = ("runs", STATE_DIR, *(f"{STATE_DIR}/{name}" for name in _PARTS))


def refuse_linked_state(root: str) -> None:
    """Refuse links in the place of our own folders: a branch may have brought them, and they may lead anywhere."""
    for name in STATE_FOLDERS:
        with translated(root):
            refuse_link(f"{root}/{name}")


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
