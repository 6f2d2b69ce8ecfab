"""What `init` wants to know of a repository: its branch, its files, and what is in the folder of the requests."""

from __future__ import annotations

import os
import shutil

from aiflow.adapters.files.atomic_files import read_regular
from aiflow.adapters.git.git_cli import Git
from aiflow.adapters.git.repository_facts import readable, tracked_in

MAX_FILE_BYTES = 1_000_000


class ProjectLook:
    """Looks at a repository without changing anything."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._git = Git(root)

    def branch(self) -> str:
        """Return the branch that is checked out, be it without a commit; empty if HEAD is detached."""
        return self._git.run("symbolic-ref", "--quiet", "--short", "HEAD", ok=(0, 1)).word

    def names(self, folder: str) -> frozenset[str]:
        """Return the names of what is in a folder; none if there is no such folder."""
        try:
            return frozenset(os.listdir(os.path.join(self._root, folder)))
        except OSError:
            return frozenset()

    def files(self, folder: str) -> frozenset[str]:
        """Return the files that a worktree would have in a folder and one level below (`src`: two), by their paths."""
        git = Git(os.path.join(self._root, folder))
        wanted = (":(glob)*", ":(glob)*/*", ":(glob)src/*/*.py")
        listed = git.run("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *wanted)
        return frozenset(map(readable, listed.items))

    def tracked(self, folder: str) -> tuple[str, ...]:
        """Return the files that git tracks in a folder, and in folders below it, by their paths from the root."""
        return tracked_in(self._git, folder)

    def read(self, path: str) -> str:
        """Return a file's text; nothing if it cannot be read."""
        try:
            return read_regular(os.path.join(self._root, path), MAX_FILE_BYTES).decode("utf-8", "replace")
        except OSError:
            return ""

    @staticmethod
    def has_program(name: str) -> bool:
        """Return whether a program is installed."""
        return shutil.which(name) is not None
