"""A machine without Landlock or clone3, on one that has it: a filter of system calls, as a container may have one."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys


def give_up_landlock() -> None:
    """Take Landlock's three system calls away from this process and everything it starts, for good."""
    give_up_calls(444, 446)


def give_up_clone3() -> None:
    """Take away, for good, the system call that starts a process in a cgroup."""
    give_up_calls(435, 435)


def give_up_calls(first: int, last: int) -> None:
    """Have system calls refused as by a kernel that does not know them."""
    libc = ctypes.CDLL(None, use_errno=True)
    filter_ = [
        (0x20, 0, 0, 0),  # the number of the call
        (0x35, 0, 2, first),
        (0x25, 1, 0, last),
        (0x06, 0, 0, 0x00050000 | errno.ENOSYS),
        (0x06, 0, 0, 0x7FFF0000),  # anything else is allowed
    ]
    steps = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in filter_))
    program = struct.pack("HxxxxxxP", len(filter_), ctypes.addressof(steps))
    libc.prctl(38, 1, 0, 0, 0)
    if libc.prctl(22, 2, program, 0, 0):
        raise OSError(ctypes.get_errno(), "the filter is refused")


if __name__ == "__main__":
    give_up_landlock()
    os.execv(sys.argv[1], sys.argv[1:])
