"""A folder for one call of an agent (AGT-4): private, gone afterwards, and gone too if its runner was killed.

All of a user's checkouts share one place with a short path: programs put sockets into their temporary folder, and a
socket's path may have hardly more than a hundred characters.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from aiflow.adapters.files.atomic_files import translated
from aiflow.adapters.git.worktrees.making_and_removing import remove_tree

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOCK = ".lock"


@contextlib.contextmanager
def scratch_folder(base: str) -> Iterator[str]:
    """Give a call its folder below `base`; what the calls of runners that are gone left there is removed first."""
    with translated(base):
        os.makedirs(base, mode=0o700, exist_ok=True)
        _remove_the_dead(base)
        path, lock = _make(base)
    try:
        yield path
    finally:
        _remove(path)
        os.close(lock)


def _make(base: str) -> tuple[str, int]:
    """Make a folder, after a file that is locked as long as we run."""
    while True:
        path = os.path.join(base, os.urandom(4).hex())
        with contextlib.suppress(FileExistsError):
            lock = os.open(path + _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            # Between making and locking it another process may have taken it for a leftover.
            if _is_ours(lock) and os.path.exists(path + _LOCK):
                os.mkdir(path, mode=0o700)
                return path, lock
            os.close(lock)


def _remove_the_dead(base: str) -> None:
    for name in os.listdir(base):
        if not name.endswith(_LOCK):
            continue
        with contextlib.suppress(OSError):
            lock = os.open(os.path.join(base, name), os.O_RDWR | os.O_CLOEXEC)
            try:
                if _is_ours(lock):
                    _remove(os.path.join(base, name.removesuffix(_LOCK)))
            finally:
                os.close(lock)


def _is_ours(lock: int) -> bool:
    """Lock a file if no running process holds it."""
    import fcntl

    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _remove(path: str) -> None:
    """Remove a folder, and its lock once it is gone; what cannot be removed is left to the next."""
    with contextlib.suppress(OSError):
        if os.path.isdir(path):
            remove_tree(path)
        os.unlink(path + _LOCK)
