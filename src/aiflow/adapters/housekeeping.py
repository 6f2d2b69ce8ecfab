"""Taking away what runs left (GIT-5): only what carries a run's name, only in this checkout's own places.

A folder first gets another name, in one step, and only then is emptied: killed in between, a half-emptied worktree is
never taken for one with changes, and the next clean knows what it was about.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from dataclasses import replace
from typing import TYPE_CHECKING

from aiflow.adapters.git_cli import Git
from aiflow.adapters.git_files import clear_ref_lock, common_dir, read_ref
from aiflow.adapters.remains import GONE, RUN_ID, Places, find_remains
from aiflow.adapters.repository_facts import commit_of
from aiflow.adapters.unsaved_work import is_mounted_in, state_of
from aiflow.adapters.worktree_making import forget_worktree, free_name, remove_tree
from aiflow.domain.cleaning import Item, Kind
from aiflow.domain.remains import TreeState
from aiflow.errors import EnvironmentProblemError, as_problem

if TYPE_CHECKING:
    from aiflow.domain.place import Place
    from aiflow.domain.remains import Remains

_GONE_NAME = re.compile(rf"\.?({RUN_ID}){re.escape(GONE)}(?:-\d+)?")
# Somebody else may be emptying the same folder; each stumbles over what the other took.
_ROUNDS = 100


class LocalHousekeeping:
    """The `Housekeeping` port, for one checkout and its state folder."""

    def __init__(self, root: str, state: str) -> None:
        self._git = Git(root)
        self._places = Places(os.path.realpath(root), os.path.realpath(state))

    def survey(self, base_branches: frozenset[str]) -> Remains:
        """Find all that is left of runs, with a few calls of git; merged is what one of these branches has."""
        return find_remains(self._git, self._places, base_branches)

    def state_of(self, place: Place, kept: str | None) -> TreeState:
        """Tell whether git has all of a worktree: its branch, or the commit that keeps an unfinished step."""
        path = _settled(place.path)
        if not os.path.lexists(path):
            return TreeState.MISSING
        if not _is_plain(path, self._places.trees):
            return TreeState.ELSEWHERE
        try:
            return state_of(self._git, self._common, replace(place, path=path), kept)
        except OSError as error:
            raise as_problem(error, error.filename or path) from error

    def size_of(self, item: Item) -> int:
        """Return how many bytes deleting a thing frees: what has another link elsewhere frees nothing."""
        if item.kind in (Kind.BRANCH, Kind.REF):
            return 0
        return _size(item.name)

    def take_away(self, item: Item) -> None:
        """Take a thing out of use at once: a ref is deleted, a folder only gets another name."""
        try:
            if item.kind is Kind.BRANCH:
                self._delete_branch(item)
            elif item.kind is Kind.REF:
                self._delete_ref(item)
            elif not _GONE_NAME.fullmatch(os.path.basename(item.name)):
                self._put_away(item)
        except OSError as error:
            raise as_problem(error, error.filename or item.name) from error

    def clear_away(self, run_id: str) -> None:
        """Delete the folders of a run that were taken away; that may take its time."""
        for folder in (self._places.trees, self._places.runs):
            try:
                for name in _listed(folder):
                    match, path = _GONE_NAME.fullmatch(name), os.path.join(folder, name)
                    if match and match[1] == run_id and not os.path.islink(path):
                        _empty(path)
            except OSError as error:
                raise as_problem(error, error.filename or folder) from error

    def _delete_branch(self, item: Item) -> None:
        """Delete a branch that still stands where it was seen; git itself refuses one that is used somewhere."""
        now = commit_of(self._git, item.name, self._common)
        if now not in (None, item.commit):
            command = f"git branch -D {item.name}"
            raise EnvironmentProblemError(reason_code="GIT_FAILED", command=command, problem="it has moved")
        if now is not None:
            clear_ref_lock(self._common, f"refs/heads/{item.name}")
            self._git.run("branch", "--quiet", "-D", "--", item.name)

    def _delete_ref(self, item: Item) -> None:
        if read_ref(self._common, item.name) != "":
            clear_ref_lock(self._common, item.name)
            self._git.run("update-ref", "-d", item.name, item.commit or "")

    def _put_away(self, item: Item) -> None:
        """Unlink a file, or give a folder a name that no run has; git forgets a worktree."""
        path = _settled(item.name)
        parent = os.path.dirname(path)
        trees, results, runs = self._places.trees, self._places.results, self._places.runs
        if not _is_plain(path, parent) or not (parent in (trees, results) or parent.startswith(f"{runs}/")):
            raise EnvironmentProblemError(path=path, problem="it leads elsewhere")
        if os.path.isdir(path):
            if is_mounted_in(path):
                raise EnvironmentProblemError(path=path, problem="something is mounted there")
            name = f"{item.run_id}{GONE}" if parent == trees else f".{item.run_id}{GONE}"
            os.rename(path, free_name(os.path.join(trees if parent == trees else runs, name)))
            if parent != trees:
                with contextlib.suppress(OSError):  # it was not the last one
                    os.rmdir(parent)
        elif parent != trees:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        if parent == trees:
            forget_worktree(self._common, path)

    @property
    def _common(self) -> str:
        asked = ("rev-parse", "--path-format=absolute", "--git-common-dir")
        return common_dir(self._git.cwd) or self._git.run(*asked).word


def _settled(path: str) -> str:
    """Name a thing by the folder it is in, links on the way there resolved; the thing itself stays as it is."""
    return os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))


def _is_plain(path: str, folder: str) -> bool:
    """Tell whether a path is directly in a folder, with no link on the way."""
    return os.path.realpath(path) == path and os.path.dirname(path) == folder


def _listed(folder: str) -> list[str]:
    return os.listdir(folder) if os.path.isdir(folder) else []


def _empty(path: str) -> None:
    """Remove a folder, also one that tools made read-only; somebody else may be removing it too."""
    if is_mounted_in(path):
        raise EnvironmentProblemError(path=path, problem="something is mounted there")
    for _ in range(_ROUNDS):
        with contextlib.suppress(FileNotFoundError):
            remove_tree(path)
            break


def _size(path: str) -> int:
    """Count the blocks of a file or of everything in a folder; no link is followed."""
    total = 0
    pending = [path]
    while pending:
        each = pending.pop()
        with contextlib.suppress(FileNotFoundError, PermissionError):
            status = os.lstat(each)
            is_folder = stat.S_ISDIR(status.st_mode)
            total += status.st_blocks * 512 if is_folder or status.st_nlink == 1 else 0
            if is_folder:
                pending += [entry.path for entry in os.scandir(each)]
    return total
