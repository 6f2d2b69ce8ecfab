"""Guard files (LCK-2): permanent files, locked for the moment of read-check-write."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextlib.contextmanager
def guarded(guard: Path | str) -> Iterator[int]:
    """Hold a permanent guard file, open, for the moment of read-check-write; the kernel frees it if we die."""
    import fcntl

    while True:
        fd = os.open(guard, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            if not _is_at(guard, fd):  # deleted while we waited (`git clean`): the others wait at a new one
                continue
            try:
                yield fd
            finally:
                fcntl.flock(fd, fcntl.LOCK_UN)  # closing alone would leave it to a child that was forked meanwhile
            return
        finally:
            os.close(fd)


def is_held(path: Path | str) -> bool:
    """Return whether somebody, in whatever container of this machine, has a file locked as `guarded` does."""
    import fcntl

    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def _is_at(path: Path | str, fd: int) -> bool:
    """Return whether an open file is still the one that its path names."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(fd))
    except FileNotFoundError:
        return False
