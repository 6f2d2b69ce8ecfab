"""Variables of this process that no other program reads (ISS-11): `/proc/<pid>/environ` shows them overwritten.

An agent runs as the same user, so it may read that file. The value itself stays in this process, and in whatever it
starts with its own environment.
"""

from __future__ import annotations

import ctypes
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_COVER = ord("x")


def hide_variables(names: Iterable[str]) -> None:
    """Overwrite variables where the kernel shows them, and keep their values; twice does no harm."""
    if not sys.platform.startswith("linux"):
        return
    get = ctypes.CDLL(None).getenv
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.c_char_p,)
    for name in names:
        value = os.environ.get(name)
        place = get(os.fsencode(name)) if value else None
        if value and place:
            ctypes.memset(place, _COVER, len(os.fsencode(value)))
            os.environ[name] = value  # a copy, elsewhere: what this process starts gets it as before
