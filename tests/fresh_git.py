"""A new git repository and its first commit, written as git writes them.

Five processes of git for each of a thousand tests cost more than many of these tests; `test_fresh_git.py` has git itself
look at what is written here. A git that writes something else by default (another hash, another store of references)
is asked to do it itself.
"""

from __future__ import annotations

import functools
import hashlib
import os
import struct
import subprocess
import tempfile
import time
import zlib
from collections.abc import Iterable
from pathlib import Path

AUTHOR = "Ada <ada@example.com>"
CONFIG = "[user]\n\tname = Ada\n\temail = ada@example.com\n"


def make_repository(root: Path) -> None:
    """Make an empty repository, as `git init -b main` does, but for the samples of hooks."""
    folders, files = _made_by_git()
    for folder in folders:
        os.mkdir(f"{root}/{folder}")
    for name, content in files:
        with open(f"{root}/{name}", "xb") as file:
            file.write(content)


def commit_first(root: Path, names: Iterable[str], message: str) -> bool:
    """Commit these files of an empty repository; False if git has to do it."""
    git = f"{root}/.git"
    if not _is_plain(git):
        return False
    blobs = {}
    for name in sorted(names):
        with open(f"{root}/{name}", "rb") as file:
            blobs[name] = _store(git, b"blob", file.read())
    when = f"{AUTHOR} {int(time.time())} +0000"
    tree = _store_tree(git, blobs, "").hex()
    text = f"tree {tree}\nauthor {when}\ncommitter {when}\n\n{message}\n"
    commit = _store(git, b"commit", text.encode()).hex()
    _write_index(root, blobs)
    os.makedirs(f"{git}/logs/refs/heads")
    logged = f"{'0' * 40} {commit} {when}\tcommit (initial): {message}\n"
    for name, words in (("logs/HEAD", logged), ("logs/refs/heads/main", logged), ("refs/heads/main", f"{commit}\n")):
        with open(f"{git}/{name}", "x") as file:
            file.write(words)
    return True


def _is_plain(git: str) -> bool:
    """Tell whether this is what `make_repository` makes, but for the settings of a user."""
    with open(f"{git}/config") as config, open(f"{git}/HEAD") as head:
        if "[extensions]" in config.read() or head.read() != "ref: refs/heads/main\n":
            return False
    return not os.path.exists(f"{git}/index") and not os.listdir(f"{git}/refs/heads")


@functools.cache
def _made_by_git() -> tuple[list[str], list[tuple[str, bytes]]]:
    """Let git make a repository once: its folders, parents first, and its files."""
    with tempfile.TemporaryDirectory() as made:
        subprocess.run(["git", "init", "-q", "-b", "main"], cwd=made, check=True)
        found = sorted(path for path in Path(made).rglob("*") if path.suffix != ".sample")
        names = [(path, str(path.relative_to(made))) for path in found]
        folders = [name for path, name in names if path.is_dir()]
        return folders, [(name, path.read_bytes()) for path, name in names if path.is_file()]


def _store(git: str, kind: bytes, content: bytes) -> bytes:
    data = b"%s %d\0" % (kind, len(content)) + content
    digest = hashlib.sha1(data, usedforsecurity=False)
    name = digest.hexdigest()
    os.makedirs(f"{git}/objects/{name[:2]}", exist_ok=True)
    path = f"{git}/objects/{name[:2]}/{name[2:]}"
    with open(path, "wb") as file:
        file.write(zlib.compress(data, 1))
    os.chmod(path, 0o444)
    return digest.digest()


def _store_tree(git: str, blobs: dict[str, bytes], folder: str) -> bytes:
    """Store what is below a folder; git sorts folders as if their names ended in a slash."""
    entries: dict[str, bytes] = {}
    for name, digest in blobs.items():
        here, slash, _ = name.removeprefix(folder).partition("/")
        if name.startswith(folder) and here + slash not in entries:
            stored = _store_tree(git, blobs, f"{folder}{here}/") if slash else digest
            entries[here + slash] = f"{'40000' if slash else '100644'} {here}\0".encode() + stored
    return _store(git, b"tree", b"".join(entries[name] for name in sorted(entries)))


def _write_index(root: Path, blobs: dict[str, bytes]) -> None:
    data = struct.pack(">4sII", b"DIRC", 2, len(blobs))
    for name, digest in blobs.items():
        is_so = os.lstat(f"{root}/{name}")
        times = (divmod(nanoseconds, 10**9) for nanoseconds in (is_so.st_ctime_ns, is_so.st_mtime_ns))
        numbers = (is_so.st_dev, is_so.st_ino, 0o100644, is_so.st_uid, is_so.st_gid, is_so.st_size)
        fields = [number & 0xFFFFFFFF for number in (*(part for each in times for part in each), *numbers)]
        entry = struct.pack(">10I20sH", *fields, digest, len(name.encode())) + name.encode()
        data += entry + b"\0" * (8 - len(entry) % 8)
    with open(f"{root}/.git/index", "xb") as file:
        file.write(data + hashlib.sha1(data, usedforsecurity=False).digest())
