"""What set-up made in a worktree (GIT-4): written down right after it, so that a merge is tested with that and no more.

Ignored files are in no commit: whatever an agent put or changed there would help a merge through its tests that fails
them everywhere else. Files are known by what `lstat` says, no link is followed, and nothing is opened.
"""

from __future__ import annotations

import contextlib
import os
import stat
import zlib
from typing import TYPE_CHECKING

from aiflow.adapters.git.worktrees.making_and_removing import remove_tree, set_up_list
from aiflow.adapters.git.worktrees.staging import is_below, is_sparse, joined
from aiflow.adapters.git.worktrees.unsaved_work import what_is_foreign

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from aiflow.adapters.git.git_cli import Git

Marks = dict[bytes, bytes]  # by path: type, mode, size and times of a file, the target of a link
_FOLDER = b"folder "


def note_set_up(git: Git, copied: Iterable[str], *, is_known: bool) -> None:
    """Write down all that git does not track, without what was copied; or forget it, where others made some of it."""
    path = set_up_list(git.cwd)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    if not is_known:
        return
    apart = [os.fsencode(name) for name in copied]
    marks, _ = _look(git, apart)
    data = joined([joined(apart).hex().encode(), *(item for pair in marks.items() for item in pair)])
    with open(path, "xb") as file:  # cut off in the middle it cannot be unpacked, and counts as missing
        file.write(zlib.compress(data, 1))


def is_as_set_up(git: Git, common: str) -> bool:
    """Return whether all that set-up made is as it was; if so, what was added since is removed."""
    try:
        with open(set_up_list(git.cwd), "rb") as file:
            first, *items = zlib.decompress(file.read()).split(b"\0")[:-1]
    except (OSError, zlib.error, ValueError):  # an older run's, or one that was cut off
        return False
    apart = bytes.fromhex(first.decode()).split(b"\0")[:-1]
    known = dict(zip(items[::2], items[1::2], strict=True))
    if is_sparse(git):  # files may be there that git looks away from again whenever it lays a commit out
        return False
    found, added = _look(git, apart, known)
    missing = known.keys() - found.keys()  # a folder may have got a file that git tracks
    is_same = all(found[path] == known[path] for path in found) and all(
        known[path].startswith(_FOLDER) and _mark_of(git, path) == known[path] for path in missing
    )
    if not is_same or (added and what_is_foreign(git.cwd, common) is not None):
        return False
    try:
        for path in added:
            _remove(os.path.join(git.cwd, os.fsdecode(path)))
    except OSError:
        return False
    return True


def _look(git: Git, apart: list[bytes], known: Marks | None = None) -> tuple[Marks, list[bytes]]:
    """Return what git does not track, ignored or not, and what of it is not `known`; that is not gone into."""
    root = os.fsencode(git.cwd)
    marks: Marks = {}
    added: list[bytes] = []
    for path, status in (walk := _WayThrough(root, git.run("ls-files", "-o", "--directory", "-z").items)):
        if apart and is_below(path, apart):
            continue
        if known is None or path in known:
            marks[path] = _mark(root, path, status)
        elif not any(name.startswith(path + b"/") for name in apart):  # else it leads to what was copied
            added.append(path)
            continue
        if stat.S_ISDIR(status.st_mode):
            walk.folders.append(path)
    return marks, added


class _WayThrough:
    """Some paths, then all that is in the folders that are asked for; what goes meanwhile is left out."""

    def __init__(self, root: bytes, paths: list[bytes]) -> None:
        self.folders: list[bytes] = []
        self._root, self._paths = root, paths

    def __iter__(self) -> Iterator[tuple[bytes, os.stat_result]]:
        for path in self._paths:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                status = os.lstat(os.path.join(self._root, path.rstrip(b"/")))
                yield path.rstrip(b"/"), status
        while self.folders:
            folder = self.folders.pop()
            for entry in self._entries(folder):
                with contextlib.suppress(FileNotFoundError):
                    yield folder + b"/" + entry.name, entry.stat(follow_symlinks=False)

    def _entries(self, folder: bytes) -> list[os.DirEntry[bytes]]:
        try:
            with os.scandir(os.path.join(self._root, folder)) as entries:
                return list(entries)
        except OSError:  # gone meanwhile, or closed to us
            return []


def _mark(root: bytes, path: bytes, status: os.stat_result) -> bytes:
    """Put what distinguishes one state of a file from another into a line."""
    if stat.S_ISDIR(status.st_mode):
        return b"%s%o" % (_FOLDER, status.st_mode)
    if stat.S_ISLNK(status.st_mode):
        try:
            return b"link " + os.readlink(os.path.join(root, path))
        except OSError:  # gone meanwhile
            return b"link"
    # No program can set back a file's change time; but a new link to it, as from a shared cache, moves it too.
    changed = status.st_ctime_ns if status.st_nlink == 1 else 0
    return b"file %o %d %d %d" % (status.st_mode, status.st_size, status.st_mtime_ns, changed)


def _mark_of(git: Git, path: bytes) -> bytes | None:
    root = os.fsencode(git.cwd)
    try:
        return _mark(root, path, os.lstat(os.path.join(root, path)))
    except OSError:
        return None


def _remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISDIR(os.lstat(path).st_mode):
            remove_tree(path)
        else:
            os.unlink(path)
