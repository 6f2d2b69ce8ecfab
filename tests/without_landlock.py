"""A machine without Landlock, on one that has it: a filter of system calls, as a container may have one."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys

# From 444 to 446: Landlock's three system calls, refused as by a kernel that does not know them.
_STEPS = [
    (0x20, 0, 0, 0),  # the number of the call
    (0x35, 0, 2, 444),
    (0x25, 1, 0, 446),
    (0x06, 0, 0, 0x00050000 | errno.ENOSYS),
    (0x06, 0, 0, 0x7FFF0000),  # anything else is allowed
]


def give_up_landlock() -> None:
    """Take Landlock away from this process and everything it starts, for good."""
    libc = ctypes.CDLL(None, use_errno=True)
    steps = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in _STEPS))
    program = struct.pack("HxxxxxxP", len(_STEPS), ctypes.addressof(steps))
    libc.prctl(38, 1, 0, 0, 0)
    if libc.prctl(22, 2, program, 0, 0):
        raise OSError(ctypes.get_errno(), "the filter is refused")


if __name__ == "__main__":
    give_up_landlock()
    os.execv(sys.argv[1], sys.argv[1:])
