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

from aiflow.adapters.git.cleaning.leftovers import GONE, RUN_ID, Places, find_remains
from aiflow.adapters.git.git_cli import Git
from aiflow.adapters.git.git_files import clear_ref_lock, read_ref
from aiflow.adapters.git.merging.checkouts import find_uses, what_rewrites
from aiflow.adapters.git.worktrees.making_and_removing import forget_worktree, free_name, remove_tree, set_up_list
from aiflow.adapters.git.worktrees.unsaved_work import is_mounted_in, state_of
from aiflow.domain.clean.cleaning import Item, ItemKind
from aiflow.domain.clean.leftovers import TreeState
from aiflow.errors import EnvironmentProblemError, as_problem
from aiflow.messages.details import words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aiflow.domain.clean.leftovers import Remains
    from aiflow.domain.runs.worktree import Place

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
        """Return whether git has all of a worktree: its branch, or the commit that keeps an unfinished step."""
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
        if item.kind in (ItemKind.BRANCH, ItemKind.REF):
            return 0
        return _size(item.name)

    def take_away(self, item: Item) -> None:
        """Take a file or folder out of use at once: a folder only gets another name."""
        try:
            if not _GONE_NAME.fullmatch(os.path.basename(item.name)):
                self._put_away(item)
            if item.name.startswith(f"{self._places.runs}/"):
                self._drop_empty()
        except OSError as error:
            raise as_problem(error, error.filename or item.name) from error

    def drop_refs(self, items: Sequence[Item]) -> None:
        """Delete branches and refs that have not moved since they were seen, all of them or none."""
        common = self._common
        there = {ref: item for item in items if read_ref(common, ref := _full_name(item)) != ""}
        if not there:
            return
        self._require_unused(common, frozenset(there))
        for ref in there:
            clear_ref_lock(common, ref)
        lines = [f"delete {ref}\0{item.commit}\0".encode() for ref, item in there.items()]
        self._git.run("update-ref", "--stdin", "-z", stdin=b"".join(lines))

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

    def _require_unused(self, common: str, refs: frozenset[str]) -> None:
        """Refuse a branch that a worktree has checked out by now, or will come back to."""
        for use in (use for use in find_uses(self._git, common) if not use.is_gone):
            used = [ref for ref in refs if use.ref == ref or (use.checkout and what_rewrites(use.checkout, ref))]
            if used:
                problem = words("git.used_at", ref=used[0], path=use.path)
                raise EnvironmentProblemError(reason_code="GIT_FAILED", command="git update-ref -d", problem=problem)

    def _put_away(self, item: Item) -> None:
        """Unlink a file, or give a folder a name that no run has; git forgets a worktree."""
        path = _settled(item.name)
        parent = os.path.dirname(path)
        trees, results, runs = self._places.trees, self._places.results, self._places.runs
        if not _is_plain(path, parent) or not (parent in (trees, results) or parent.startswith(f"{runs}/")):
            raise EnvironmentProblemError(path=path, problem=words("path.leads_elsewhere"))
        if os.path.isdir(path) and is_mounted_in(path):
            raise EnvironmentProblemError(path=path, problem=words("path.mounted"))
        if parent == trees:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(set_up_list(path))
        if os.path.isdir(path):
            name = f"{item.run_id}{GONE}" if parent == trees else f".{item.run_id}{GONE}"
            os.rename(path, free_name(os.path.join(trees if parent == trees else runs, name)))
        elif parent != trees:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        if parent == trees:
            forget_worktree(self._common, path)

    def _drop_empty(self) -> None:
        """Remove the folders of requests without runs; a kill may have left one."""
        for name in _listed(self._places.runs):
            with contextlib.suppress(OSError):  # most have some
                os.rmdir(os.path.join(self._places.runs, name))

    @property
    def _common(self) -> str:
        return self._git.common_dir()


def _full_name(item: Item) -> str:
    return f"refs/heads/{item.name}" if item.kind is ItemKind.BRANCH else item.name


def _settled(path: str) -> str:
    """Name a thing by the folder it is in, links on the way there resolved; the thing itself stays as it is."""
    return os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))


def _is_plain(path: str, folder: str) -> bool:
    """Return whether a path is directly in a folder, with no link on the way."""
    return os.path.realpath(path) == path and os.path.dirname(path) == folder


def _listed(folder: str) -> list[str]:
    return os.listdir(folder) if os.path.isdir(folder) else []


def _empty(path: str) -> None:
    """Remove a folder, also one that tools made read-only; somebody else may be removing it too."""
    if is_mounted_in(path):
        raise EnvironmentProblemError(path=path, problem=words("path.mounted"))
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
