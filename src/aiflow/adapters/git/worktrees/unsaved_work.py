"""Whether git has all of a worktree (GIT-5); looking writes neither its index nor an object.

Ignored files and what was copied or set up there are not work. Everything else must be in the branch, or in the
commit that keeps what an unfinished step left.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from typing import TYPE_CHECKING

from aiflow.adapters.git.git_files import find_checkout, read_line
from aiflow.adapters.git.repository_facts import path_of_status, readable
from aiflow.adapters.git.worktrees.making_and_removing import branch_ref, may_hold_work
from aiflow.adapters.git.worktrees.staging import copied_paths, is_below
from aiflow.domain.clean.leftovers import TreeState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiflow.adapters.git.git_cli import Git
    from aiflow.adapters.git.git_files import GitCheckout
    from aiflow.domain.runs.worktree import Place

_STATUS = ("status", "--porcelain=v2", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules=none")
_MOUNTS = "/proc/self/mountinfo"


def state_of(git: Git, common: str, place: Place, kept: str | None) -> TreeState:
    """Look at a worktree's folder, which is there, no link and in its place."""
    if not os.path.isdir(place.path):
        return TreeState.UNKNOWN
    if (foreign := what_is_foreign(place.path, common)) is not None:
        return foreign
    checkout = find_checkout(place.path, common)
    if checkout is None:
        return TreeState.UNKNOWN if may_hold_work(place.path) else TreeState.SAVED
    if os.path.lexists(os.path.join(checkout.git_dir, "locked")):
        return TreeState.HELD
    return _state(git, checkout, place, kept)


def _state(git: Git, checkout: GitCheckout, place: Place, kept: str | None) -> TreeState:
    """Look into a worktree that git knows."""
    if checkout.under_way():
        return TreeState.UNDER_WAY
    inside = git.inside(checkout.git_dir, checkout.path)
    if checkout.head() != branch_ref(place) and not _is_on_branch(inside, branch_ref(place)):
        return TreeState.OTHER_BRANCH
    copied = [os.fsencode(name) for name in copied_paths(place.copied)]
    is_saved = _has_all(inside, copied, kept) and not any(_has_own_commits(git, each) for each in _modules(checkout))
    return TreeState.SAVED if is_saved else TreeState.UNSAVED


def what_is_foreign(path: str, common: str) -> TreeState | None:
    """Name what in a worktree's folder is no part of it, and must not go with it."""
    if is_mounted_in(path):
        return TreeState.MOUNTED
    return TreeState.NESTED if _has_nested(path, common) else None


def is_mounted_in(path: str) -> bool:
    """Return whether something else is mounted at a path or below it: that must not be emptied."""
    try:
        with open(_MOUNTS, "rb") as file:
            points = [os.fsdecode(_unescaped(line.split()[4])) for line in file]
    except OSError:  # no Linux
        return any(os.path.ismount(os.path.join(folder, "")) for folder, _, _ in os.walk(path))
    real = os.path.realpath(path)
    return any(point == real or point.startswith(f"{real}/") for point in points)


def _has_nested(path: str, common: str) -> bool:
    """Return whether another worktree of the repository is inside this one: agents make some, in ignored folders."""
    entries = os.path.join(common, "worktrees")
    for name in os.listdir(entries) if os.path.isdir(entries) else ():
        other = os.path.dirname(read_line(os.path.join(entries, name, "gitdir")) or "")
        if other.startswith(f"{path}/") and os.path.isdir(other):
            return True
    return False


def _unescaped(word: bytes) -> bytes:
    for code, char in ((b"\\040", b" "), (b"\\011", b"\t"), (b"\\012", b"\n"), (b"\\134", b"\\")):
        word = word.replace(code, char)
    return word


def _is_on_branch(git: Git, ref: str) -> bool:
    """Return whether the worktree is on its branch, or detached at a commit that the branch has."""
    head = git.run("symbolic-ref", "-q", "HEAD", ok=(0, 1)).word
    if head:
        return head == ref
    return git.run("merge-base", "--is-ancestor", "HEAD", ref, ok=(0, 1, 128)).code == 0


def _has_all(git: Git, copied: list[bytes], kept: str | None) -> bool:
    """Return whether index and files are as the branch has them, or as the kept commit does."""
    changed = [item for item in git.run(*_STATUS).items if _is_work(item, copied)]
    if not changed:
        return not _hides_changes(git) or _is_laid_out(git, "HEAD", copied)
    if kept is None:
        return False
    is_staged = any(item[:1] in b"1u" and item[2:3] != b"." for item in changed)
    if is_staged and git.run("diff-index", "--cached", "--quiet", kept, "--", ok=(0, 1)).code:
        return False
    return _is_laid_out(git, kept, copied)


def _is_work(item: bytes, copied: list[bytes]) -> bool:
    path = path_of_status(item)
    return path is not None and not (item.startswith(b"?") and is_below(path, copied))


def _hides_changes(git: Git) -> bool:
    """Return whether git was told to look away from a file that is there (`update-index --assume-unchanged`)."""
    entries = git.run("ls-files", "-v", "-z").items
    is_there = (
        entry[:1] == b"S" and os.path.lexists(os.path.join(os.fsencode(git.cwd), entry[2:])) for entry in entries
    )
    return any(entry[:1].islower() for entry in entries) or any(is_there)


def hidden_changes(git: Git) -> tuple[str, ...]:
    """Return the changed files of a worktree from which git was told to look away."""
    if not _hides_changes(git):
        return ()
    with _own_index(git, "HEAD") as own:
        items = git.run(*_STATUS, environ=own).items
    changed = (path_of_status(item) for item in items if item.startswith(b"1") and item[3:4] != b".")
    return tuple(sorted(readable(path) for path in changed if path is not None))


@contextlib.contextmanager
def _own_index(git: Git, commit: str) -> Iterator[dict[str, str]]:
    """Return a separate index, filled from a commit, in which nothing was staged or hidden."""
    with tempfile.TemporaryDirectory(prefix="aiflow-") as folder:
        own = {"GIT_INDEX_FILE": os.path.join(folder, "index")}
        git.run("-c", "core.splitIndex=false", "read-tree", commit, environ=own)
        yield own


def _is_laid_out(git: Git, commit: str, copied: list[bytes]) -> bool:
    """Return whether the files are those of a commit, by a separate index in which nothing was staged."""
    with _own_index(git, commit) as own:
        items = git.run(*_STATUS, environ=own).items
    changed = [item for item in items if _is_work(item, copied)]
    return not any(item.startswith(b"?") or item[3:4] != b"." for item in changed)


def _modules(checkout: GitCheckout) -> Iterator[str]:
    """Find the repositories of submodules that only this worktree has."""
    for folder, folders, files in os.walk(os.path.join(checkout.git_dir, "modules")):
        if "HEAD" in files and "objects" in folders:
            folders[:] = [name for name in folders if name == "modules"]
            yield folder


def _has_own_commits(git: Git, module: str) -> bool:
    """Return whether a submodule's repository has commits that came from nowhere else."""
    words = ("rev-list", "-n", "1", "--all", "HEAD", "--not", "--remotes", "--tags")
    done = git.run(f"--git-dir={module}", *words, ok=(0, 128))
    return done.code != 0 or bool(done.word)
