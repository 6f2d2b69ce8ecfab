"""Whether a lock's holder is running, as the kernel shows it (LCK-4), even if another container hides its process.

A holder has one byte of a file locked for as long as it holds: the byte of its fence, by a lock that belongs to the
open file and not to the process, so that neither a fork nor another open of the file gives it back. The kernel frees it
when the holder is gone, and shows it to every container of the machine, even while the holder is paused. Nothing else
locks that file: on NFS and SMB a `flock` of the guard would wait for the byte of every holder.
"""

from __future__ import annotations

import fcntl
import os
import struct

# Linux's `struct flock`: type, whence, start, length, pid.
_FORM = struct.Struct("@hhqqi4x")
_PLACES = 1 << 62


def can_keep() -> bool:
    """Return whether this system has such locks."""
    return hasattr(fcntl, "F_OFD_SETLK")


def keep(path: str, fence: int) -> int | None:
    """Lock a fence's byte and return the open file: closed, or with us, it is free; None where files have no locks."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _of(fence))
    except OSError:
        os.close(fd)
        return None
    return fd


def let_go(fd: int, fence: int) -> None:
    """Free a fence's byte: closing alone would leave it to a child that was forked meanwhile."""
    try:
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _of(fence, fcntl.F_UNLCK))
    finally:
        os.close(fd)


def is_kept(path: str, fence: int) -> bool | None:
    """Return whether somebody, in whatever container, has a fence's byte locked; None where files have no locks."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        found = fcntl.fcntl(fd, fcntl.F_OFD_GETLK, _of(fence))
    except OSError:
        return None
    finally:
        os.close(fd)
    return bool(_FORM.unpack(found)[0] != fcntl.F_UNLCK)


def _of(fence: int, kind: int = fcntl.F_WRLCK) -> bytes:
    return _FORM.pack(kind, os.SEEK_SET, fence % _PLACES, 1, 0)
