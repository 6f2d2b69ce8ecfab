"""A file for the browser that leads to the sign-in.

A browser is given its address as an argument, which every user of the machine can read; a code in it would be theirs,
too. So it is given the name of a file that is the user's alone.
"""

from __future__ import annotations

import contextlib
import html
import os
from typing import TYPE_CHECKING

from aiflow.adapters.files.atomic_files import state_dir, translated

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = "server"
PAGE_FILE = "open.html"


def write_door_page(root: Path, url: str) -> str:
    """Write the file, and return its address."""
    with translated(root):
        path = state_dir(root, FOLDER) / PAGE_FILE
        path.unlink(missing_ok=True)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            link = html.escape(url, quote=True)
            file.write(f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url={link}">\n')
    return path.as_uri()


def remove_door_page(root: Path) -> None:
    """Remove the file, if there is one."""
    with contextlib.suppress(OSError):
        (root / ".aiflow" / FOLDER / PAGE_FILE).unlink(missing_ok=True)
