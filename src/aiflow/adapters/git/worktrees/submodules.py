"""What changed in the submodules of a worktree (RUN-3): no commit of the run can contain it, so a person must know.

A submodule's own settings may be an agent's: no git of ours reads them. It gets a separate git folder in their place,
with the submodule's objects and no settings at all.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from typing import TYPE_CHECKING

from aiflow.adapters.git.git_cli import Git
from aiflow.adapters.git.git_files import common_dir, git_dir_of
from aiflow.adapters.git.repository_facts import path_of_status, readable
from aiflow.adapters.git.worktrees.staging import is_below
from aiflow.errors import AiflowError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_STATUS = ("status", "--porcelain=v2", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules=all")


def changed_submodules(
    git: Git, links: list[bytes], changed: set[bytes], known: tuple[frozenset[bytes], tuple[str, ...]]
) -> tuple[str, ...]:
    """Return the submodules (`links`) that a step moved or removed (`changed`), or in which it changed something.

    `known` is what tests left in them, and what was copied or set up there: that is not work.
    """
    left, copied = known[0], [os.fsencode(name) for name in known[1]]
    moved = [link for link in links if link in changed]
    for link, paths in changed_inside(git, [link for link in links if link not in changed]).items():
        if any(path not in left and not is_below(path, copied) for path in paths):
            moved.append(link)
    return tuple(sorted(map(readable, moved)))


def untracked_in(git: Git, links: list[bytes]) -> tuple[str, ...]:
    """Return what git neither tracks nor ignores in a worktree, a folder as one, and all that changed in submodules."""
    options = ("--porcelain=v2", "-z", "--untracked-files=normal", "--no-renames", "--ignore-submodules=all")
    made = [item[2:].rstrip(b"/") for item in git.run("status", *options).items if item.startswith(b"? ")]
    inside = [path for paths in changed_inside(git, links).values() for path in paths]
    return tuple(sorted(map(os.fsdecode, (*made, *inside))))


def changed_inside(git: Git, links: Iterable[bytes]) -> dict[bytes, list[bytes]]:
    """Return, for each submodule in which something changed, the paths below the worktree; ignored files are none."""
    wanted = set(links)
    if not wanted:
        return {}
    entries = (entry.partition(b"\t") for entry in git.run("ls-files", "-s", "-z").items)
    commits = {path: facts.split()[1] for facts, _, path in entries if path in wanted}
    found = {link: sorted(_changed_in(git, link, os.fsdecode(commits[link]))) for link in commits}
    return {link: paths for link, paths in found.items() if paths}


def _changed_in(git: Git, link: bytes, commit: str) -> Iterator[bytes]:
    folder = os.path.join(git.cwd, os.fsdecode(link))
    common = common_dir(folder)
    if common is None:  # it was never filled: whatever is there is somebody's
        for place, _, names in os.walk(os.fsencode(folder)):
            yield from (os.path.relpath(os.path.join(place, name), os.fsencode(git.cwd)) for name in names)
        return
    with contextlib.suppress(AiflowError, OSError), tempfile.TemporaryDirectory(prefix="aiflow-") as own:
        for name in ("objects", "refs"):
            os.mkdir(os.path.join(own, name))
        with open(os.path.join(own, "HEAD"), "w", encoding="ascii") as file:
            file.write(f"{commit}\n")
        inside = Git(folder, git.run_id).inside(own, folder)
        known = {"GIT_OBJECT_DIRECTORY": os.path.join(common, "objects")}
        # What its own index knows of the files saves reading them all; one that cannot be used alone is created again.
        with contextlib.suppress(OSError):
            shutil.copy2(os.path.join(git_dir_of(folder) or common, "index"), os.path.join(own, "index"))
        done = inside.run(*_STATUS, environ=known, ok=(0, 128))
        if done.code:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(own, "index"))
            inside.run("read-tree", commit, environ=known)
            done = inside.run(*_STATUS, environ=known)
        paths = (path_of_status(item) for item in done.items)
        yield from (os.path.join(link, path) for path in paths if path is not None)
