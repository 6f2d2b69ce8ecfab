"""A git repository in memory: commits are trees that never change, branches are names, worktrees are files by path."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.runs.worktree import FileChange

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from aiflow.domain.runs.merge import CutOffMove

Tree = dict[str, bytes]
MAIN = "main"
HEADS = "refs/heads/"


class MemoryCommit(NamedTuple):
    """What a commit says."""

    tree: str
    parents: tuple[str, ...]
    message: str


@dataclass
class MemoryWorktree:
    """Files laid out: on a branch, or (None) detached; `index` is what was collected of them, if anything was."""

    files: Tree
    branch: str | None
    index: str | None = None


@dataclass
class MemoryRepository:
    """A repository with one branch that a person has checked out (`head`), and the worktrees of runs."""

    commits: dict[str, MemoryCommit] = field(default_factory=dict)
    trees: dict[str, Tree] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)
    worktrees: dict[str, MemoryWorktree] = field(default_factory=dict)
    gone: dict[str, list[str]] = field(default_factory=dict)
    dirty: tuple[str, ...] = ()
    head: str = MAIN
    cut_off: CutOffMove | None = None
    obeyed: dict[str, str] = field(default_factory=dict)

    @classmethod
    def with_files(cls, files: Mapping[str, bytes]) -> MemoryRepository:
        """Make a repository whose main branch has these files, in its first commit."""
        repository = cls()
        first = repository.make_commit(repository.keep_tree(files), (), "First\n")
        repository.refs[f"{HEADS}{MAIN}"] = first
        return repository

    def keep_tree(self, files: Mapping[str, bytes]) -> str:
        """Keep files as a tree, and return its name: the same files are the same tree."""
        digest = hashlib.sha1(usedforsecurity=False)
        for path in sorted(files):
            digest.update(path.encode() + b"\0" + files[path] + b"\0\0")
        name = digest.hexdigest()
        self.trees.setdefault(name, dict(files))
        return name

    def make_commit(self, tree: str, parents: Iterable[str], message: str) -> str:
        """Make a commit; no branch moves."""
        commit = MemoryCommit(tree, tuple(parents), message)
        number = len(self.commits)  # two commits are two, also with the same content
        name = hashlib.sha1(f"{number}{commit}".encode(), usedforsecurity=False).hexdigest()
        self.commits[name] = commit
        return name

    def branch(self, name: str) -> str | None:
        """Return a branch's commit."""
        return self.refs.get(f"{HEADS}{name}")

    def resolve(self, name: str) -> str | None:
        """Return the commit that a commit's or a ref's name means."""
        return name if name in self.commits else self.refs.get(name)

    def files_of(self, name: str) -> Tree:
        """Return the files of a tree, a commit or a ref."""
        commit = self.resolve(name)
        return self.trees[self.commits[commit].tree if commit is not None else name]

    def leads_to(self, old: str, new: str) -> bool:
        """Return whether one commit leads to another; one that is gone leads nowhere."""
        wanted, start = self.resolve(old), self.resolve(new)
        return wanted is not None and start is not None and wanted in self.history(start)

    def history(self, commit: str) -> dict[str, None]:
        """Return a commit and all that lead to it, the nearest first."""
        seen: dict[str, None] = {}
        pending = [commit]
        while pending:
            name = pending.pop(0)
            if name not in seen:
                seen[name] = None
                pending += self.commits[name].parents
        return seen

    def parted(self, one: str, other: str) -> str | None:
        """Return the commit at which two parted."""
        behind = self.history(other)
        return next((name for name in self.history(one) if name in behind), None)


def differing_paths(old: Mapping[str, bytes], new: Mapping[str, bytes]) -> list[str]:
    """Return the paths in which two trees differ."""
    return sorted(path for path in {*old, *new} if old.get(path) != new.get(path))


def file_change(path: str, old: Mapping[str, bytes], new: Mapping[str, bytes]) -> FileChange:
    """Count the lines that a file gained and lost."""
    before, after = (tree.get(path, b"").splitlines() for tree in (old, new))
    kept = sum(line in before for line in after)
    return FileChange(path, len(after) - kept, max(0, len(before) - kept))


def diff_text(old: Mapping[str, bytes], new: Mapping[str, bytes]) -> str:
    """Write what changed from one tree to another, file by file."""
    parts = []
    for path in differing_paths(old, new):
        parts += [f"diff --git a/{path} b/{path}"]
        parts += [f"-{line}" for line in old.get(path, b"").decode("utf-8", "replace").splitlines()]
        parts += [f"+{line}" for line in new.get(path, b"").decode("utf-8", "replace").splitlines()]
    return "".join(f"{line}\n" for line in parts)
