"""What a fast-forward writes in a user's checkout (GIT-3), and how that is put back if git fails in the middle of it.

Git looks at every file before it writes the first, so what changed while it ran was as committed before, or not there.
"""

from __future__ import annotations

import contextlib
import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from aiflow.adapters.repository_facts import readable
from aiflow.errors import AiflowError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from aiflow.adapters.git_cli import Git

_NAMED_FILES = 20
_LINK, _MODULE, _NOTHING = "120000", "160000", "000000"
_Signature = tuple[int, ...]


class _Entry(NamedTuple):
    """What a tree or the index has at a path."""

    mode: str
    id: str

    def is_at(self, found: _Entry | None) -> bool:
        """Tell whether a file has this content."""
        return found is not None and found.id == self.id and (found.mode == _LINK) == (self.mode == _LINK)


class _Piece(NamedTuple):
    """A path that differs between two commits, with what each has there."""

    name: bytes
    old: _Entry | None
    new: _Entry | None


@dataclass(frozen=True, slots=True)
class Writing:
    """The paths that git is about to write in a checkout, as they were before."""

    git: Git
    pieces: tuple[_Piece, ...]
    signatures: Mapping[bytes, _Signature | None]
    new_folders: tuple[bytes, ...]

    @classmethod
    def of(cls, git: Git, old: str, new: str) -> Writing:
        """Look at what a fast-forward from a commit to another one will write where git is called."""
        pieces = tuple(_differing(git, old, new))
        root = os.fsencode(git.cwd)
        signatures = {piece.name: _signature(os.path.join(root, piece.name)) for piece in pieces}
        folders = {folder for piece in pieces if piece.new for folder in _folders_of(piece)}
        missing = [folder for folder in folders if not os.path.isdir(os.path.join(root, folder))]
        return cls(git, pieces, signatures, tuple(sorted(missing, key=len, reverse=True)))

    def deleted(self) -> list[str]:
        """Name the files that somebody deleted and did not commit: git would bring them back without a word."""
        kept = (piece.name for piece in self.pieces if piece.old and piece.new and piece.new.mode != _MODULE)
        missing = {name for name in kept if self.signatures[name] is None}
        if missing and self.git.run("config", "--type=bool", "core.sparseCheckout", ok=(0, 1)).word == "true":
            listed = self.git.run("ls-files", "-t", "-z").items
            missing -= {item[2:] for item in listed if item.startswith(b"S ")}
        return sorted(map(readable, missing))

    def put_back(self) -> str:
        """Put back what a git that failed had written; tell what is not as it was, "" if nothing is."""
        changed = [piece for piece in self.pieces if _signature(self._path(piece)) != self.signatures[piece.name]]
        if not changed:
            self._remove_folders()
            return ""
        index = _index(self.git)
        if all(index.get(piece.name) == piece.new for piece in self.pieces):
            return "all files are written and staged, only the branch has not moved; accepting again ends it"
        files = [piece for piece in changed if _MODULE not in {each.mode for each in piece[1:] if each}]
        left: set[bytes] = set()
        for is_tracked in (False, True):  # a new folder may stand where a file was
            pieces = (piece for piece in files if bool(piece.old) is is_tracked)
            left |= {piece.name for piece in pieces if not self._clear(piece, index)}
            self._remove_folders()
        left |= self._restore([piece.name for piece in files if piece.old and piece.name not in left])
        names = sorted(map(readable, left))
        more = f" (+{len(names) - _NAMED_FILES})" if len(names) > _NAMED_FILES else ""
        return f"left half written: {', '.join(names[:_NAMED_FILES])}{more}" if names else ""

    def _clear(self, piece: _Piece, index: Mapping[bytes, _Entry]) -> bool:
        """Take away what git wrote at a path; False if something else is there now."""
        path = self._path(piece)
        if index.get(piece.name) != piece.old:
            return False
        if not os.path.lexists(path):
            return True
        found = _content(self.git, path)
        if piece.new and (piece.new.is_at(found) or _is_begun(self.git, piece, path)):
            with contextlib.suppress(OSError):
                os.unlink(path)
                return True
        return piece.old is not None and piece.old.is_at(found)

    def _restore(self, names: list[bytes]) -> set[bytes]:
        """Write files as the index has them where there is nothing now; return those that could not be written."""
        root = os.fsencode(self.git.cwd)
        missing = [name for name in names if not os.path.lexists(os.path.join(root, name))]
        with contextlib.suppress(AiflowError):  # what it did not write is named
            if missing:
                self.git.run("checkout-index", "-q", "-z", "--stdin", stdin=b"".join(name + b"\0" for name in missing))
        return {name for name in missing if not os.path.lexists(os.path.join(root, name))}

    def _remove_folders(self) -> None:
        """Remove the folders that were not there before, unless something is in them."""
        for folder in self.new_folders:
            with contextlib.suppress(OSError):
                os.rmdir(os.path.join(os.fsencode(self.git.cwd), folder))

    def _path(self, piece: _Piece) -> bytes:
        return os.path.join(os.fsencode(self.git.cwd), piece.name)


def _differing(git: Git, old: str, new: str) -> Iterator[_Piece]:
    items = iter(git.run("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", old, new).items)
    for facts, name in zip(items, items, strict=True):
        old_mode, new_mode, old_id, new_id, _ = facts.decode("ascii").removeprefix(":").split()
        before, after = _Entry(old_mode, old_id), _Entry(new_mode, new_id)
        yield _Piece(name, before if old_mode != _NOTHING else None, after if new_mode != _NOTHING else None)


def _index(git: Git) -> dict[bytes, _Entry]:
    found = {}
    for item in git.run("ls-files", "-s", "-z").items:
        facts, _, name = item.partition(b"\t")
        mode, blob, _ = facts.decode("ascii").split()
        found[name] = _Entry(mode, blob)
    return found


def _folders_of(piece: _Piece) -> Iterator[bytes]:
    """Return the folders that a path needs; a submodule is one itself."""
    if piece.new and piece.new.mode == _MODULE:
        yield piece.name
    folder = os.path.dirname(piece.name)
    while folder:
        yield folder
        folder = os.path.dirname(folder)


def _signature(path: bytes) -> _Signature | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    if stat.S_ISDIR(found.st_mode):  # changes with what is in it
        return (found.st_ino,)
    return found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _is_begun(git: Git, piece: _Piece, path: bytes) -> bool:
    """Tell whether a file is the beginning of what git was to write there: so a full disk leaves it."""
    if piece.new is None or piece.new.mode == _LINK or os.path.islink(path) or not os.path.isfile(path):
        return False
    whole = git.run("cat-file", "--filters", f"--path={os.fsdecode(piece.name)}", piece.new.id, ok=(0, 1, 128))
    try:
        with open(path, "rb") as file:
            return whole.code == 0 and whole.out.startswith(file.read(len(whole.out) + 1))
    except OSError:
        return False


def _content(git: Git, path: bytes) -> _Entry | None:
    """Return what a file would be in a commit; None if it is no file or cannot be read."""
    try:
        if os.path.islink(path):
            return _Entry(_LINK, git.run("hash-object", "--stdin", stdin=os.readlink(path)).word)
        if not os.path.isfile(path):
            return None
    except OSError:
        return None
    return _Entry("", git.run("hash-object", "--", os.fsdecode(path), ok=(0, 1, 128)).word)
