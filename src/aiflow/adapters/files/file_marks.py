"""Finding out by `stat` alone that a file is still the one that was read (PRF-7), as git does for its index.

The time of a file is no finer than the kernel's tick, so one that was written a moment before it was read may have been
written again since, under the same mark: of such a file the mark says nothing yet.
"""

from __future__ import annotations

import stat
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os

# Much longer than any tick; a file that is younger is simply read again.
YOUNG_NS = 1_000_000_000
Mark = tuple[int, int, int, int]


def mark_of(status: os.stat_result) -> Mark:
    """Return what distinguishes one state of a file from another; a time set by hand shows in the change time."""
    return status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size


def is_telling(status: os.stat_result) -> bool:
    """Return whether a mark, taken before its file is read, shows every change: of a plain file not just written."""
    written = max(status.st_mtime_ns, status.st_ctime_ns)
    return stat.S_ISREG(status.st_mode) and time.time_ns() - written >= YOUNG_NS
