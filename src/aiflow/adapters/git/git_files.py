"""What git keeps in plain files of a worktree, read without starting git (PRF-5)."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from dataclasses import dataclass

Signature = tuple[int, int, int]

_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
# A ref is locked for milliseconds; what is older was left by a git that was killed.
_REF_LOCK_SECONDS = 2.0
_COLLECTED = "aiflow-collected-index"
_UNDER_WAY = (
    "MERGE_HEAD",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "rebase-merge",
    "rebase-apply",
    "sequencer",
    "BISECT_LOG",
)
_LEFT_BEHIND = (
    *("MERGE_MSG", "MERGE_MODE", "MERGE_RR", "AUTO_MERGE", "SQUASH_MSG", "REBASE_HEAD", "BISECT_START", "BISECT_NAMES"),
    *("BISECT_TERMS", "BISECT_EXPECTED_REV", "BISECT_ANCESTORS_OK", "BISECT_FIRST_PARENT"),
)


@dataclass(frozen=True, slots=True)
class GitCheckout:
    """A worktree that is there and that git knows: its folder, its own git folder, and the repository's."""

    path: str
    git_dir: str
    common: str

    def head(self) -> str | None:
        """Return the ref HEAD points to; None if it is detached or git has to be asked."""
        text = read_line(os.path.join(self.git_dir, "HEAD")) or ""
        return text.removeprefix("ref: ") if text.startswith("ref: ") else None

    def under_way(self) -> list[str]:
        """Name the merges and the like that were begun and not ended."""
        return [name for name in _UNDER_WAY if os.path.lexists(os.path.join(self.git_dir, name))]

    def forget_under_way(self) -> None:
        """End them without touching a file: what git keeps of them is removed."""
        for name in (*_UNDER_WAY, *_LEFT_BEHIND):
            path = os.path.join(self.git_dir, name)
            if os.path.isdir(path):
                shutil.rmtree(path)
            else:
                _unlink(path)

    def clear_locks(self, ref: str) -> None:
        """Remove locks that a killed git left here, and on our branch: no other process works here now."""
        for name in os.listdir(self.git_dir):
            if name.endswith(".lock"):
                _unlink(os.path.join(self.git_dir, name))
        clear_ref_lock(self.common, ref)

    @property
    def index(self) -> str:
        """The index file."""
        return os.path.join(self.git_dir, "index")

    def signature(self) -> Signature | None:
        """Return what changes whenever anybody writes the index (git always writes a new file)."""
        return _signature(self.index)

    def keep_index(self) -> None:
        """Keep the index as it is now, whatever tests and reviewers do with git before it is committed."""
        kept = os.path.join(self.git_dir, _COLLECTED)
        _unlink(kept)
        try:
            os.link(self.index, kept)
        except OSError:  # a file system without hard links
            shutil.copy2(self.index, kept)

    def bring_back_index(self) -> None:
        """Put the kept index back, if there is one."""
        with contextlib.suppress(FileNotFoundError):
            os.replace(os.path.join(self.git_dir, _COLLECTED), self.index)

    def forget_index(self) -> None:
        """Forget the kept index."""
        _unlink(os.path.join(self.git_dir, _COLLECTED))


def find_checkout(path: str, common: str) -> GitCheckout | None:
    """Return the worktree at a path, if it is a whole one of this repository."""
    git_dir = _linked_git_dir(path)
    head = read_line(os.path.join(git_dir, "HEAD")) if git_dir is not None else None
    if git_dir is None or head is None or not re.fullmatch(r"ref: \S.*|[0-9a-f]{40,64}", head):
        return None
    back = read_line(os.path.join(git_dir, "gitdir"))
    if back is None or not is_same_path(os.path.join(git_dir, back), os.path.join(path, ".git")):
        return None
    if not is_same_path(_common_of(git_dir), common):
        return None
    if read_line(os.path.join(git_dir, "locked")) == "initializing":  # `git worktree add` did not come to its end
        return None
    return GitCheckout(path, git_dir, common)


def git_dir_of(path: str) -> str | None:
    """Return the git folder of the checkout at a path; None if there is none, or git has to be asked."""
    dot_git = os.path.join(path, ".git")
    return dot_git if os.path.isdir(dot_git) else _linked_git_dir(path)


def common_dir(root: str) -> str | None:
    """Return the folder of a checkout's repository; None if git has to be asked."""
    git_dir = git_dir_of(root)
    return _common_of(git_dir) if git_dir and os.path.isfile(os.path.join(git_dir, "HEAD")) else None


def read_ref(common: str, ref: str) -> str | None:
    """Return the commit a ref points to, or "" if there surely is no such ref; None if git has to be asked."""
    text = read_line(os.path.join(common, ref))
    if text is not None:
        return text if _ID.fullmatch(text) else None
    if not os.path.isdir(os.path.join(common, "refs", "heads")) or os.path.exists(os.path.join(common, ref)):
        return None
    try:
        with open(os.path.join(common, "packed-refs"), "rb") as file:
            is_packed = b" " + os.fsencode(ref) + b"\n" in file.read()
    except FileNotFoundError:
        is_packed = False
    return None if is_packed else ""


def clear_ref_lock(common: str, ref: str) -> None:
    """Remove the lock of a ref that is ours alone, once it is too old to be held by a running process."""
    path = os.path.join(common, f"{ref}.lock")
    found = _signature(path)
    while found is not None:
        age = time.time() - os.stat(path).st_mtime if os.path.exists(path) else 0.0
        if not 0 <= age < _REF_LOCK_SECONDS:
            _unlink(path)
            return
        time.sleep(0.1)
        found = _signature(path)


def read_line(path: str, limit: int = 10_000) -> str | None:
    """Return a small file's text without its newline; None if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return os.fsdecode(file.read(limit)).removesuffix("\n")
    except OSError:
        return None


def _linked_git_dir(path: str) -> str | None:
    """Return the git folder that a worktree's `.git` file names."""
    text = read_line(os.path.join(path, ".git")) or ""
    return os.path.normpath(os.path.join(path, text.removeprefix("gitdir: "))) if text.startswith("gitdir: ") else None


def _common_of(git_dir: str) -> str:
    return os.path.normpath(os.path.join(git_dir, read_line(os.path.join(git_dir, "commondir")) or "."))


def is_same_path(one: str, other: str) -> bool:
    """Return whether two paths lead to the same place, there or not."""
    return one == other or os.path.realpath(one) == os.path.realpath(other)


def _signature(path: str) -> Signature | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _unlink(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
