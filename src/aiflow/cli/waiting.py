"""Waiting for something that another process does: looked at again and again, for a while."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

WAIT_SECONDS = 30.0
LOOK_SECONDS = 0.1


def until_ctrl_c() -> contextlib.AbstractContextManager[None]:
    """Follow something that does not end: a person ends it with Ctrl-C, and that interrupts nothing."""
    return contextlib.suppress(KeyboardInterrupt)


def wait_until(is_so: Callable[[], bool], seconds: float = WAIT_SECONDS) -> bool:
    """Wait until something is so; False if it still is not when the time is over."""
    until = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > until:
            return False
        time.sleep(LOOK_SECONDS)
    return True
