"""Starting a guard's program as a fork of the guard (AGT-4, AGT-5): in its call's cgroup from the start, and confined.

Moving a process into a cgroup takes 10 ms, because no process on the machine may fork meanwhile; starting it there
takes none. Imported by the guard, so it imports nothing slow, and of aiflow only the modules beside it.
"""

from __future__ import annotations

import _ctypes
import _signal as signal  # type: ignore[import-not-found]
import errno
import os
import sys
from _collections_abc import Callable  # noqa: TC003 (typing takes longer to import than everything here)

# The same on every architecture that has it.
CLONE3 = 435
CLONE_INTO_CGROUP = 1 << 33
# Another process that starts now may take one that we have just made for a leftover.
TRIES = 3
FAILED = 127


def start(
    cgroup: str, writable: list[bytes] | None, become: Callable[[], object], report: Callable[[str], None]
) -> int:
    """Fork; the child becomes the program, or reports why it cannot. Only without threads."""
    confine = __import__("confine").confine if writable is not None else lambda _: None
    usual = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
    # A signal that the child gets before it is itself must end it, not be taken by the handlers of its parent.
    signal.pthread_sigmask(signal.SIG_BLOCK, usual)
    child = fork_into(cgroup)
    if child:
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        return child
    is_confined = False
    try:
        os.setsid()
        for each in usual:
            signal.signal(each, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        confine(writable)
        is_confined = True
        become()
    except Exception as error:  # noqa: BLE001 (nothing else would report it)
        number = getattr(error, "errno", None) or errno.EIO
        report(f'{{"errno": {number}, "is_folder": 0, "is_unconfined": {int(not is_confined)}}}')
    finally:
        os._exit(FAILED)


def fork_into(cgroup: str) -> int:
    """Fork into a new cgroup, or normally if that is impossible. The process that started us removes the cgroup."""
    for _ in range(TRIES if cgroup else 0):
        try:
            os.mkdir(cgroup)
            child = clone_into(cgroup)
            if child >= 0:
                return child
            move_into(cgroup)
            break
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENODEV):
                break
    return os.fork()


def clone_into(cgroup: str) -> int:
    """Fork into a cgroup; -1 where the kernel (before Linux 5.7) or a container's rules know no such call."""
    folder = os.open(cgroup, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fields = (CLONE_INTO_CGROUP, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, 0, 0, folder)
        data = b"".join(field.to_bytes(8, sys.byteorder) for field in fields)
        # typeshed does not know that None is the program itself.
        syscall = _ctypes.dlsym(_ctypes.dlopen(None, 0), "syscall")  # type: ignore[arg-type]
        return int(_ctypes.call_function(syscall, (CLONE3, data, len(data))))
    finally:
        os.close(folder)


def move_into(cgroup: str) -> None:
    """Move this process into a cgroup: whatever it starts is there, too."""
    fd = os.open(f"{cgroup}/cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, b"0")
    finally:
        os.close(fd)
