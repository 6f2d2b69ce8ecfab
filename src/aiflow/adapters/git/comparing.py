"""How two commits differ: read from the repository alone, so that no worktree is needed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from aiflow.adapters.git.repository_facts import readable
from aiflow.domain.runs.worktree import Comparison, FileDiff

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiflow.adapters.git.git_cli import Git

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_HOW = ("-r", "-M", "--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none")


def compare(git: Git, old: str, new: str) -> Comparison | None:
    """Return how two commits differ; None if one of them is gone, or was never one."""
    if not (_COMMIT.fullmatch(old) and _COMMIT.fullmatch(new)):  # from a file that somebody may have edited
        return None
    asked = "".join(f"{commit}^{{tree}}\n" for commit in (old, new)).encode()
    if b" missing" in git.run("cat-file", "--batch-check", stdin=asked).out:
        return None
    if old == new:
        return Comparison()
    numbers = git.run("diff-tree", *_HOW, "--numstat", "-z", old, new).items
    patch = git.run("diff-tree", *_HOW, "-p", "--src-prefix=a/", "--dst-prefix=b/", old, new).out
    return Comparison(tuple(_files(iter(numbers))), readable(patch))


def _files(items: Iterator[bytes]) -> Iterator[FileDiff]:
    """Read what `--numstat -z` says: lines and path in one item, of a moved file both paths in items of their own."""
    for item in items:
        added, deleted, path = item.split(b"\t", 2)
        is_moved = not path
        old_path, new_path = (next(items), next(items)) if is_moved else (None, path)
        is_binary = added == b"-"
        lines = (0, 0) if is_binary else (int(added), int(deleted))
        yield FileDiff(readable(new_path), *lines, is_binary, readable(old_path) if old_path is not None else None)
