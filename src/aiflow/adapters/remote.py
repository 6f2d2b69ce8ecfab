"""Pushing a run's branch (GIT-1): only if the settings say so, never by force."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.adapters.git_cli import Git

if TYPE_CHECKING:
    from aiflow.domain.place import Place


class GitRemote:
    """The remote `origin` of one checkout."""

    def __init__(self, root: str, *, hooks: bool = False) -> None:
        self._root = root
        self._hooks = hooks

    def push(self, place: Place) -> None:
        """Push a run's branch as it is; twice does no harm."""
        git = Git(self._root, place.run_id, hooks=self._hooks)
        git.run("push", "--quiet", "origin", f"refs/heads/{place.branch}:refs/heads/{place.branch}")
