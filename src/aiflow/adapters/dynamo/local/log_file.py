"""The log of the store (QUE-2): its end, and what is added to it."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_LOOK_SECONDS = 0.2
_BYTES_PER_LINE = 400


def log_end(path: Path, lines: int) -> str:
    """Return the last lines; none if there is no log."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - max(65_536, lines * _BYTES_PER_LINE)))
            text = file.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
    return "".join(text.splitlines(keepends=True)[-lines:]) if lines else ""


def follow_log(path: Path, lines: int) -> Iterator[str]:
    """Give the last lines and every whole line that is added; a log that was put aside is followed by the new one."""
    end = path.stat().st_size if path.exists() else 0
    yield from log_end(path, lines).splitlines()
    while True:
        if path.exists():
            size = path.stat().st_size
            end = 0 if size < end else end
            with open(path, "rb") as file:
                file.seek(end)
                data = file.read()
            whole = data[: data.rfind(b"\n") + 1]
            end += len(whole)
            yield from whole.decode("utf-8", "replace").splitlines()
        time.sleep(_LOOK_SECONDS)
