"""Merging two branches without a worktree (GIT-3): `git merge-tree --write-tree`."""

from __future__ import annotations

import os
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from aiflow.adapters.git.commits import read_commit, stand_in
from aiflow.adapters.git.repository_facts import version_of
from aiflow.errors import EnvironmentProblemError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiflow.adapters.git.git_cli import Git

_USAGE = 129


class Side(NamedTuple):
    """A branch as it stood at a commit."""

    branch: str
    commit: str

    @property
    def label(self) -> str:
        """Name the commit as `git describe --long` would: git reads the id alone, people find the branch in it."""
        return f"{self.branch}-0-g{self.commit}"


class MergedTree(NamedTuple):
    """The result: a tree, and the names of what is in conflict; conflicts in texts are there as markers."""

    tree: str
    conflicts: tuple[bytes, ...] = ()


def merge_trees(git: Git, ours: Side, theirs: Side) -> MergedTree:
    """Merge one side into the other; only objects are written."""
    args = ("merge-tree", "--write-tree", "-z", "--name-only", ours.label, theirs.label)
    done = git.run(*args, ok=(0, 1, _USAGE))
    if done.code == _USAGE:  # the option came with git 2.38
        version = ".".join(map(str, version_of(git)))
        raise EnvironmentProblemError(reason_code="GIT_TOO_OLD", version=version)
    items = done.out.split(b"\0")
    tree = items[0].decode("ascii", "replace")
    if done.code == 0:
        return MergedTree(tree)
    names = list(takewhile(bool, items[1:]))
    # A folder that was split up, for instance, is a conflict of no file; only git's words name it.
    found = names or list(_named_in_words(items[len(names) + 2 :]))
    if not found:
        raise git.problem(args, done)
    return MergedTree(tree, tuple(sorted(set(found))))


def replay(git: Git, base: Side, old: str, new: Side) -> MergedTree:
    """Bring what changed from one commit to another onto a third, as a cherry-pick does, or (swapped) a revert.

    By a history made for it: `merge-tree --merge-base` came with git 2.40 only.
    """
    parted = stand_in(git, read_commit(git, old).tree)
    ours = Side(base.branch, stand_in(git, read_commit(git, base.commit).tree, (parted,)))
    theirs = Side(new.branch, stand_in(git, read_commit(git, new.commit).tree, (parted,)))
    tree, conflicts = merge_trees(git, ours, theirs)
    return MergedTree(tree, tuple(sorted({without_label(name, ours, theirs) for name in conflicts})))


def without_label(name: bytes, *sides: Side) -> bytes:
    """Return a name as the branches have it: what a folder took the place of, git moves to `name~label`."""
    for side in sides:
        name = name.partition(b"~" + os.fsencode(side.label.replace("/", "_")))[0]
    return name


def _named_in_words(items: list[bytes]) -> Iterator[bytes]:
    """Return the paths of git's conflict messages: each is a number of paths, those, its kind, and the text."""
    rest = iter(items)
    for number in takewhile(bytes.isdigit, rest):
        paths = [next(rest, b"") for _ in range(int(number))]
        kind, _text = next(rest, b""), next(rest, b"")
        if kind.startswith(b"CONFLICT"):
            yield from filter(None, paths)
