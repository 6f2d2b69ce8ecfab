"""How two commits differ: read from the repository alone, so that no worktree is needed."""

from __future__ import annotations

import re
from itertools import chain, islice
from typing import TYPE_CHECKING

from aiflow.adapters.git.repository_facts import readable
from aiflow.domain.runs.worktree import Comparison, FileDiff

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from aiflow.adapters.git.git_cli import Git

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_PAIR = re.compile(rb"([0-9a-f]{40}|[0-9a-f]{64}) ([0-9a-f]{40}|[0-9a-f]{64})\n")
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


def compare_sizes(git: Git, pairs: Sequence[tuple[str, str]]) -> tuple[tuple[FileDiff, ...] | None, ...]:
    """Return which files differ in each pair of commits, with two calls of git in all; None if one is gone."""
    trees = _trees(git, {commit for pair in pairs for commit in pair if _COMMIT.fullmatch(commit)})
    wanted = [(trees.get(old), trees.get(new)) for old, new in pairs]
    asked = "".join(f"{old} {new}\n" for old, new in dict.fromkeys(wanted) if old and new).encode()
    found = _by_pair(git.run("diff-tree", "--stdin", *_HOW, "--numstat", "-z", stdin=asked).out) if asked else {}
    return tuple(found.get((old, new), ()) if old and new else None for old, new in wanted)


def _trees(git: Git, commits: set[str]) -> dict[str, str]:
    """Return the tree of each commit that is there."""
    named = sorted(commits)
    if not named:
        return {}
    asked = "".join(f"{commit}^{{tree}}\n" for commit in named).encode()
    told = git.run("cat-file", "--batch-check=%(objectname)", stdin=asked).out.decode("ascii", "replace").splitlines()
    return {commit: tree for commit, tree in zip(named, told, strict=True) if _COMMIT.fullmatch(tree)}


def _by_pair(out: bytes) -> dict[tuple[str, str], tuple[FileDiff, ...]]:
    """Read what `diff-tree --stdin` says: before the items of a pair a line with its trees, which no item begins as."""
    items, found = iter(out.split(b"\0")), dict[tuple[str, str], tuple[FileDiff, ...]]()
    pair = ("", "")
    for item in items:
        rest = item
        while (head := _PAIR.match(rest)) is not None:
            pair, rest = (head[1].decode(), head[2].decode()), rest[head.end() :]
        if rest:
            found[pair] = (*found.get(pair, ()), *_files(chain([rest], _moved(rest, items))))
    return found


def _moved(item: bytes, items: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the two paths that follow on the item of a moved file."""
    return islice(items, 2 if item.endswith(b"\t") else 0)


def _files(items: Iterator[bytes]) -> Iterator[FileDiff]:
    """Read the output of `--numstat -z`: lines and path in one item, for a moved file each path in a separate item."""
    for item in items:
        added, deleted, path = item.split(b"\t", 2)
        is_moved = not path
        old_path, new_path = (next(items), next(items)) if is_moved else (None, path)
        is_binary = added == b"-"
        lines = (0, 0) if is_binary else (int(added), int(deleted))
        yield FileDiff(readable(new_path), *lines, is_binary, readable(old_path) if old_path is not None else None)
