"""What a fast-forward writes in a user's checkout (GIT-3), and how that is put back if git fails in the middle of it.

Git looks at every file before it writes the first, so what changed while it ran was as committed before, or not there.
"""

from __future__ import annotations

import contextlib
import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from aiflow.adapters.git.repository_facts import readable
from aiflow.errors import AiflowError
from aiflow.messages.details import words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from aiflow.adapters.git.git_cli import Git

_NAMED_FILES = 20
_LINK, _MODULE, _NOTHING = "120000", "160000", "000000"
_Signature = tuple[int, ...]


class _Entry(NamedTuple):
    """What a tree or the index has at a path."""

    mode: str
    id: str

    def is_at(self, found: _Entry | None) -> bool:
        """Return whether a file has this content."""
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
    def again(cls, git: Git, old: str, new: str, fields: Mapping[str, Any]) -> Writing:
        """Take up what an earlier process wrote down (`fields`) of a fast-forward that it did not bring to its end."""
        signatures = {os.fsencode(name): tuple(kept) if kept else None for name, kept in fields["signatures"].items()}
        pieces = tuple(piece for piece in _differing(git, old, new) if piece.name in signatures)
        return cls(git, pieces, signatures, tuple(map(os.fsencode, fields["new_folders"])))

    def fields(self) -> dict[str, Any]:
        """Return what cannot be found out again, for a record on disk."""
        signatures = {os.fsdecode(name): kept for name, kept in self.signatures.items()}
        return {"signatures": signatures, "new_folders": [os.fsdecode(name) for name in self.new_folders]}

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
        """Put back what a failed git had written; return what is not as it was, "" if nothing is."""
        if self._changed() and self.is_staged():
            return words("in_the_way.all_written")
        return half_written(self.restore())

    def is_staged(self, index: str | None = None) -> bool:
        """Return whether the index (or another such file) has all that was to be written: git writes it last."""
        found = _index(self.git, index)
        return bool(self.pieces) and all(found.get(piece.name) == piece.new for piece in self.pieces)

    def restore(self) -> list[str]:
        """Put back what git had written, and name what is not as it was: it is neither the old nor the new file."""
        changed = self._changed()
        if not changed:
            self._remove_folders()
            return []
        index = _index(self.git)
        files = [piece for piece in changed if _MODULE not in {each.mode for each in piece[1:] if each}]
        contents = _contents(self.git, [self._path(piece) for piece in files])
        left: set[bytes] = set()
        for is_tracked in (False, True):  # a new folder may be where a file was
            pieces = (piece for piece in files if bool(piece.old) is is_tracked)
            left |= {piece.name for piece in pieces if not self._clear(piece, index, contents)}
            self._remove_folders()
        left |= self._restore([piece.name for piece in files if piece.old and piece.name not in left])
        return sorted(map(readable, left))

    def _changed(self) -> list[_Piece]:
        return [piece for piece in self.pieces if _signature(self._path(piece)) != self.signatures[piece.name]]

    def _clear(self, piece: _Piece, index: Mapping[bytes, _Entry], contents: Mapping[bytes, _Entry]) -> bool:
        """Take away what git wrote at a path; False if something else is there now."""
        path = self._path(piece)
        if index.get(piece.name) != piece.old:
            return False
        if not os.path.lexists(path) or (piece.old is None and _is_folder(path)):  # git wrote no folder there
            return True
        found = contents.get(path)
        if piece.new and (piece.new.is_at(found) or _is_begun(self.git, piece, path)):
            with contextlib.suppress(OSError):
                os.unlink(path)
                return True
        return piece.old is not None and piece.old.is_at(found)

    def _restore(self, names: list[bytes]) -> set[bytes]:
        """Write files as the index has them where there is nothing now; return those that could not be written."""
        root = os.fsencode(self.git.cwd)
        missing = [name for name in names if not os.path.lexists(os.path.join(root, name))]
        if missing and not self._check_out(missing):
            for name in missing:  # one that cannot be written must not keep the others from it
                if not os.path.lexists(os.path.join(root, name)):
                    self._check_out([name])
        return {name for name in missing if not os.path.lexists(os.path.join(root, name))}

    def _check_out(self, names: list[bytes]) -> bool:
        given = b"".join(name + b"\0" for name in names)
        with contextlib.suppress(AiflowError):  # what it did not write is named
            self.git.run("checkout-index", "-q", "-z", "--stdin", stdin=given)
            return True
        return False

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


def half_written(names: list[str]) -> str:
    """Return which files are neither as before nor as they were to be; "" if there are none."""
    more = f" (+{len(names) - _NAMED_FILES})" if len(names) > _NAMED_FILES else ""
    return words("in_the_way.half_written", files=f"{', '.join(names[:_NAMED_FILES])}{more}") if names else ""


def _index(git: Git, path: str | None = None) -> dict[bytes, _Entry]:
    found = {}
    for item in git.run("ls-files", "-s", "-z", environ={"GIT_INDEX_FILE": path} if path else None).items:
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


def _is_folder(path: bytes) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


def _is_begun(git: Git, piece: _Piece, path: bytes) -> bool:
    """Return whether a file is the beginning of what git was to write there: so a full disk leaves it."""
    if piece.new is None or piece.new.mode == _LINK or os.path.islink(path) or not os.path.isfile(path):
        return False
    whole = git.run("cat-file", "--filters", f"--path={os.fsdecode(piece.name)}", piece.new.id, ok=(0, 1, 128))
    try:
        with open(path, "rb") as file:
            return whole.code == 0 and whole.out.startswith(file.read(len(whole.out) + 1))
    except OSError:
        return False


def _contents(git: Git, paths: list[bytes]) -> dict[bytes, _Entry]:
    """Return what files would be in a commit, all by one call of git; what is no file, or cannot be read, is not there.

    One by one where that fails: a name has a line break, or a file cannot be read.
    """
    found = {path: _Entry(_LINK, _link_id(git, path)) for path in paths if os.path.islink(path)}
    plain = [path for path in paths if path not in found and os.path.isfile(path)]
    together = [path for path in plain if b"\n" not in path]
    done = git.run("hash-object", "--stdin-paths", stdin=b"".join(path + b"\n" for path in together), ok=(0, 1, 128))
    ids = done.out.decode("ascii").split() if done.code == 0 else []
    found |= {path: _Entry("", each) for path, each in zip(together, ids, strict=False)}
    for path in plain:
        if path not in found:
            found[path] = _Entry("", git.run("hash-object", "--", os.fsdecode(path), ok=(0, 1, 128)).word)
    return found


def _link_id(git: Git, path: bytes) -> str:
    try:
        return git.run("hash-object", "--stdin", stdin=os.readlink(path)).word
    except OSError:
        return ""
