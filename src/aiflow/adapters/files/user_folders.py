"""The user's own folders (QUE-2a): data that is kept, and a cache that may go; the same for all projects."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def data_home(environ: Mapping[str, str]) -> Path:
    """Return the user's data folder of aiflow; it must be created for the user alone."""
    return _home(environ, "XDG_DATA_HOME", ".local/share")


def cache_home(environ: Mapping[str, str]) -> Path:
    """Return the user's cache of aiflow: what is missing there is fetched again."""
    return _home(environ, "XDG_CACHE_HOME", ".cache")


def private_folder(folder: Path) -> Path:
    """Make a folder, and those above it, that only the user may look into; one that others may is closed to them."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_mode & 0o077:
        folder.chmod(0o700)
    return folder


def _home(environ: Mapping[str, str], variable: str, usual: str) -> Path:
    base = environ.get(variable, "")
    home = Path(base) if os.path.isabs(base) else Path(environ.get("HOME") or os.path.expanduser("~"), usual)
    return home / "aiflow"
