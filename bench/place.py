"""Where what makes and deletes many files is measured."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

# ext4 without a journal looks for a free inode the longer the more files were deleted in the last minutes, and each
# worktree is made and deleted: that would be measured, and hide what is ours.
MEMORY = "/dev/shm"


def quiet_place(scratch: Path) -> tempfile.TemporaryDirectory[str]:
    """Give a folder in memory where there is one, else below `scratch`."""
    return tempfile.TemporaryDirectory(dir=MEMORY if os.path.isdir(MEMORY) else scratch)
