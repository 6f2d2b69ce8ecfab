"""Files of a worktree that are too large for a commit (RUN-3): found by their size alone, before git reads any of them.

Git would read a file of gigabytes and write it into its objects before anybody could refuse it. Such files are left out
of everything that is staged, and so of a step's commit, of the kept commit of an unfinished step and of its patch.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import TYPE_CHECKING

from aiflow.adapters.git.repository_facts import readable
from aiflow.adapters.git.worktrees.staging import is_below, joined
from aiflow.domain.runs.worktree import LargeFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from aiflow.adapters.git.git_cli import Git

Sizes = dict[bytes, int]


def find_large(git: Git, most_bytes: int, copied: Iterable[str], links: list[bytes]) -> Sizes:
    """Return the files over a limit (0: none) that are new or changed since the index was filled, with their sizes.

    Ignored and copied files are no part of a step, nor is what lies in submodules (`links`).
    """
    found = dict(_larger(os.fsencode(git.cwd), most_bytes, links)) if most_bytes else {}
    if not found:
        return {}
    listed = git.run("ls-files", "-t", "-c", "-m", "-z").items
    tracked = {entry[2:] for entry in listed}
    changed = {entry[2:] for entry in listed if entry.startswith(b"C ")} & found.keys()
    ours = [os.fsencode(name) for name in copied]
    new = {path for path in found if path not in tracked and not is_below(path, ours)}
    ignored = set(git.run("check-ignore", "-z", "--stdin", stdin=joined(new), ok=(0, 1)).items) if new else set()
    return {path: found[path] for path in sorted(changed | (new - ignored))}


def _larger(root: bytes, most_bytes: int, links: list[bytes]) -> Iterator[tuple[bytes, int]]:
    """Walk through a worktree by the sizes of its files; links are not followed, git folders left out."""
    folders = [b""]
    while folders:
        folder = folders.pop()
        try:
            entries = list(os.scandir(root + b"/" + folder))
        except OSError:  # gone meanwhile, or closed to us: git says what is wrong with it
            continue
        for entry in entries:
            if entry.name == b".git":
                continue
            if entry.is_dir(follow_symlinks=False):
                path = folder + entry.name
                folders += [path + b"/"] if path not in links else []
            elif entry.is_file(follow_symlinks=False) and (size := _size(entry)) > most_bytes:
                yield folder + entry.name, size


def _size(entry: os.DirEntry[bytes]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_size
    except OSError:
        return 0


def as_facts(large: Sizes) -> tuple[LargeFile, ...]:
    """Return such files as the rest of the program knows them."""
    return tuple(LargeFile(readable(path), size) for path, size in large.items())


def tree_with(git: Git, index: str, large: Sizes) -> str:
    """Write the index as a tree that changes whenever a large file does: its size and time replace it.

    It only serves to see whether somebody changed the worktree (RUN-7); the index itself stays as it is.
    """
    if not large:
        return git.run("write-tree").word
    with tempfile.TemporaryDirectory(prefix="aiflow-") as folder:
        own = {"GIT_INDEX_FILE": os.path.join(folder, "index")}
        shutil.copyfile(index, own["GIT_INDEX_FILE"])
        lines = []
        for path, size in large.items():
            mark = f"{size} bytes, {_changed_at(git.cwd, path)}\n".encode()
            blob = git.run("hash-object", "-w", "--stdin", stdin=mark).out.strip()
            lines.append(b"100644 " + blob + b"\t" + path)
        git.run("update-index", "--replace", "-z", "--index-info", stdin=joined(lines), environ=own)
        return git.run("write-tree", environ=own).word


def _changed_at(root: str, path: bytes) -> int:
    try:
        return os.lstat(os.path.join(os.fsencode(root), path)).st_mtime_ns
    except OSError:
        return 0
