"""Confinement by the kernel (AGT-4): a program that may write below some paths only, with all that it starts.

Linux's Landlock, which needs no rights and no package. Only what changes files is handled: reading, executing and the
network stay free. A confined process cannot undo it, nor signal or trace one outside. Imported by the guard, whose
fork confines itself (`forking.py`), and a program of its own, `python -I -S confine.py PATH… -- PROGRAM ARGUMENT…`;
so the standard library only, and nothing of aiflow.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import stat
import struct
import sys
from collections.abc import Iterable  # noqa: TC003 (there already, unlike typing)

# The same on every architecture.
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
PR_SET_NO_NEW_PRIVS = 38

WRITE_FILE = 1 << 1
# Removing a folder or a file; making a device, folder, file, socket, pipe, block device, link.
ENTRIES = sum(1 << bit for bit in range(4, 13))
# To and from another folder, and cutting a file by its path: what older kernels cannot forbid (the first is then
# always refused, the second never).
REFER, TRUNCATE = 1 << 13, 1 << 14
SCOPE_SIGNAL = 1 << 1

# What many programs write that is no real file; their own terminal, and memory that processes share.
DEVICES = tuple(
    f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm", "mqueue")
)


def version() -> int:
    """Return which Landlock the kernel has, from 1 on; an OSError if it has none or does not let us."""
    if sys.platform != "linux":  # the number may be another call's there
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    return _call(CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(1))


def is_available() -> bool:
    """Return whether a program can be confined here."""
    try:
        return version() >= 1
    except OSError:
        return False


def confine(writable: Iterable[bytes | str]) -> None:
    """Let this process and all its children write below these paths only; what does not exist is left out."""
    abi = version()
    rights = WRITE_FILE | ENTRIES | (REFER if abi >= 2 else 0) | (TRUNCATE if abi >= 3 else 0)
    fields = (rights, 0, SCOPE_SIGNAL) if abi >= 6 else (rights,)
    ruleset = _call(CREATE_RULESET, *_sized(struct.pack(f"={len(fields)}Q", *fields)), ctypes.c_uint32(0))
    try:
        for path in (*DEVICES, *writable):
            # A path that a link leads out of is the link's target: links are followed now, once and for all.
            with contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError):
                _allow(ruleset, path, rights)
        _check(_LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        _call(RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: bytes | str, rights: int) -> None:
    fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        is_folder = stat.S_ISDIR(os.fstat(fd).st_mode)
        allowed = rights if is_folder else rights & (WRITE_FILE | TRUNCATE)
        _call(ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(1), struct.pack("=Qi", allowed, fd), ctypes.c_uint32(0))
    finally:
        os.close(fd)


_LIBC = ctypes.CDLL(None, use_errno=True)


def _sized(data: bytes) -> tuple[bytes, ctypes.c_size_t]:
    return data, ctypes.c_size_t(len(data))


def _call(number: int, *arguments: object) -> int:
    return _check(_LIBC.syscall(ctypes.c_long(number), *arguments))


def _check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def main(arguments: list[str]) -> None:
    """Confine ourselves, and become a program."""
    end = arguments.index("--")
    confine(arguments[:end])
    argv = arguments[end + 1 :]
    os.execvp(argv[0], argv)  # noqa: S606 (what it is for)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except OSError as error:
        sys.exit(f"aiflow: not confined, so not started: {error}")
