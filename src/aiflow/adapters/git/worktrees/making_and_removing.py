"""Making and removing worktrees (GIT-1, GIT-3), also what a killed `git worktree add` left behind."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from typing import TYPE_CHECKING

from aiflow.adapters.git.git_files import clear_ref_lock, is_same_path, read_line
from aiflow.adapters.git.repository_facts import commit_of
from aiflow.adapters.git.worktrees.listing import list_worktrees, patiently
from aiflow.errors import AiflowError, EnvironmentProblemError, as_problem
from aiflow.messages.details import words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiflow.adapters.git.git_cli import Git
    from aiflow.domain.runs.worktree import Place

# Twice -f: a killed `worktree add` leaves an entry that is locked.
_ADD = ("worktree", "add", "--quiet", "-f", "-f")


def make_worktree(git: Git, common: str, place: Place, tip: str) -> str:
    """Make the worktree in place of whatever is there, and return its commit."""
    return patiently(lambda: _make(git, common, place, tip))


def _make(git: Git, common: str, place: Place, tip: str) -> str:
    _remove(place.path, (git.cwd, common))
    _forget_half_made(common, place.path)
    clear_ref_lock(common, branch_ref(place))
    stands_at = commit_of(git, place.branch, common)
    if stands_at is None:
        git.run(*_ADD, "--no-track", "-b", place.branch, place.path, tip)
        return tip
    _refuse_elsewhere(git, place)
    git.run(*_ADD, place.path, place.branch)
    return stands_at


def lay_out(git: Git, common: str, path: str, commit: str) -> None:
    """Lay a commit out in a worktree of its own, detached, in place of whatever an earlier one left there."""

    def add() -> None:
        remove_worktree(git, common, path)
        git.run(*_ADD, "--detach", path, commit)

    patiently(add)


def remove_worktree(git: Git, common: str, path: str) -> None:
    """Remove a worktree with all that is in it and with git's entry of it; one that is not there is no trouble."""
    _remove(path, (git.cwd, common), keeps_work=False)
    forget_worktree(common, path)


def forget_worktree(common: str, path: str) -> None:
    """Remove git's entry of a worktree whose folder is gone; `git worktree prune` would remove those of others too."""
    entries = os.path.join(common, "worktrees")
    try:
        for entry in list(_entries_of(entries, path)):
            remove_tree(entry)
    except OSError as error:
        raise as_problem(error, error.filename or entries) from error
    with contextlib.suppress(OSError):  # the last one is gone, as git leaves it
        os.rmdir(entries)


def _forget_half_made(common: str, path: str) -> None:
    """Remove git's entry of a worktree that a killed git only began: without `commondir` git can list no worktree."""
    for entry in list(_entries_of(os.path.join(common, "worktrees"), path)):
        if not read_line(os.path.join(entry, "commondir")):
            remove_tree(entry)


def set_up_list(path: str) -> str:
    """Return the file next to a worktree that lists what set-up made in it; it is removed before the worktree."""
    return f"{path}.set-up"


def branch_ref(place: Place) -> str:
    """Return the ref of a run's branch."""
    return f"refs/heads/{place.branch}"


def _refuse_elsewhere(git: Git, place: Place) -> None:
    """Refuse a branch that somebody has checked out elsewhere: our commits would move it under their feet."""
    path = ""
    for item in map(os.fsdecode, list_worktrees(git).items):
        path = item.removeprefix("worktree ") if item.startswith("worktree ") else path
        is_other = os.path.exists(path) and os.path.realpath(path) != os.path.realpath(place.path)
        if item == f"branch {branch_ref(place)}" and is_other:
            problem = words("git.checked_out_at", branch=place.branch, path=path)
            raise EnvironmentProblemError(reason_code="GIT_FAILED", command="git worktree add", problem=problem)


def _entries_of(entries: str, path: str) -> Iterator[str]:
    """Find what git knows of a worktree by its path; a half-made entry has none yet, only a name like its folder's."""
    name_of_it = re.compile(re.escape(os.path.basename(path)) + r"\d*")
    for name in os.listdir(entries) if os.path.isdir(entries) else ():
        entry = os.path.join(entries, name)
        known = read_line(os.path.join(entry, "gitdir"))
        is_half_made = not known and read_line(os.path.join(entry, "locked")) == "initializing"
        is_there = known and is_same_path(os.path.join(entry, known), os.path.join(path, ".git"))
        if is_there or (is_half_made and name_of_it.fullmatch(name)):
            yield entry


def _remove(path: str, precious: tuple[str, ...], *, keeps_work: bool = True) -> None:
    """Remove what is left of our worktree's folder, and only that."""
    real = os.path.realpath(path)
    if any(os.path.commonpath([os.path.realpath(each), real]) == real for each in precious):
        raise AiflowError(path=path)
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(set_up_list(path))
        if os.path.islink(path) or os.path.isfile(path):
            os.unlink(path)
        elif os.path.isdir(path) and keeps_work and may_hold_work(path):
            os.rename(path, free_name(f"{path}.aside"))
        elif os.path.isdir(path):
            remove_tree(path)
    except OSError as error:
        raise as_problem(error, error.filename or path) from error


def may_hold_work(path: str) -> bool:
    """Return whether a folder that git knows no more has files an agent or a person made: those are only put aside."""
    locked = os.path.join((read_line(os.path.join(path, ".git")) or "").removeprefix("gitdir: "), "locked")
    is_half_made = read_line(locked) == "initializing"
    return not is_half_made and any(name != ".git" for name in os.listdir(path))


def free_name(name: str) -> str:
    """Return a name that nothing has: this one, or the same with a number."""
    numbered = (f"{name}-{number}" for number in range(2, 10_000))
    return next(each for each in (name, *numbered) if not os.path.lexists(each))


def remove_tree(path: str) -> None:
    """Remove a folder, even one that tools made read-only, or deeper than the longest possible path.

    The contents of a subfolder are moved up before it is removed, so this never descends to any depth.
    """
    _open_up(path)
    top = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        names, number = os.listdir(top), 0
        while names:
            name = names.pop()
            if not _is_folder(name, top):
                os.unlink(name, dir_fd=top)
                continue
            inside = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=top)
            try:
                for each in os.listdir(inside):
                    if not _is_folder(each, inside):
                        os.unlink(each, dir_fd=inside)
                        continue
                    number += 1
                    moved = f".aiflow-removed-{os.getpid()}-{number}-{os.urandom(4).hex()}"
                    os.rename(each, moved, src_dir_fd=inside, dst_dir_fd=top)
                    names.append(moved)
            finally:
                os.close(inside)
            os.rmdir(name, dir_fd=top)
    finally:
        os.close(top)
    os.rmdir(path)


def _is_folder(name: str, within: int) -> bool:
    """Return whether something is a folder, no link to one; if so it is opened up."""
    mode = os.stat(name, dir_fd=within, follow_symlinks=False).st_mode
    if stat.S_ISDIR(mode) and mode & stat.S_IRWXU != stat.S_IRWXU:
        os.chmod(name, mode | stat.S_IRWXU, dir_fd=within)
    return stat.S_ISDIR(mode)


def _open_up(folder: str) -> None:
    mode = os.lstat(folder).st_mode
    if stat.S_ISDIR(mode) and mode & stat.S_IRWXU != stat.S_IRWXU:
        os.chmod(folder, mode | stat.S_IRWXU)
